"""What a policy says, in every environment of text: `Thought: free words Action: what is done`.

What always holds: the thought may be missing; the last `Action:` counts.
"""

MARK = "Action:"
THOUGHT = "Thought:"
STEP_END = ";"
"""What ends a step of a thought, in the words of the shipped puzzles and of the models that are made for them."""
ANSWERING = f"{MARK} answer"
"""What ends a thought and begins an answer to a puzzle."""
AGAIN = "check again"
"""The observation before another attempt."""


def thought_of(text: str) -> str:
    """The words before the last `Action:`, without `Thought:`."""
    head, mark, _ = text.rpartition(MARK)
    return " ".join(head.replace(THOUGHT, " ").split()) if mark else ""


def lines_in(text: str) -> list[str]:
    """The lines of a thought: what stands between its marks of a step, but for nothing."""
    return [line.strip() for line in thought_of(text).split(STEP_END) if line.strip()]


def said(text: str) -> str:
    """What a policy's text does: the words after its last `Action:`, or all of it where there is none."""
    return text.rpartition(MARK)[2].strip()
