"""The thoughts of reasoning models: what stands between their tags is thought, and never said to an environment."""

THINK, THOUGHT_END = "<think>", "</think>"


def spoken(text: str) -> str:
    """The words of a turn after its last `</think>`, and none of a thought that was not ended; all of a turn without
    tags."""
    _, end, after = text.rpartition(THOUGHT_END)
    speech, begin, _ = after.partition(THINK)
    return speech.strip() if end or begin else text
