"""What a policy says, in every environment of text: `Thought: free words Action: what is done`.

What always holds: the thought may be missing; the last `Action:` counts.
"""

MARK = "Action:"
THOUGHT = "Thought:"


def thought_of(text: str) -> str:
    """The words before the last `Action:`, without `Thought:`."""
    head, mark, _ = text.rpartition(MARK)
    return " ".join(head.replace(THOUGHT, " ").split()) if mark else ""


def said(text: str) -> str:
    """What a policy's text does: the words after its last `Action:`, or all of it where there is none."""
    return text.rpartition(MARK)[2].strip()
