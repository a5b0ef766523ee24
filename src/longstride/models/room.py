"""Room: memory that runs out, known by what it says, and noted with what was being done.

What always holds: the error itself goes on as it was raised, and its notes with it, from one thread to another too.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

NO_MEMORY = "can't allocate memory", "out of memory", "STATUS_ALLOC_FAILED"
"""What a CPU, MPS and the CUDA driver, and CUDA's libraries say where torch has no type of its own for it."""
WHILE = "while "
"""What a note begins with."""


def ran_out(error: BaseException) -> bool:
    """Whether an error says that there is no more memory."""
    return isinstance(error, torch.OutOfMemoryError) or any(words in str(error) for words in NO_MEMORY)


@contextmanager
def doing(what: str, instead: str) -> Iterator[None]:
    """Notes on an error by which memory runs out meanwhile what was being done, and what would take less."""
    try:
        yield
    except RuntimeError as e:
        if ran_out(e):
            e.add_note(f"{WHILE}{what}; {instead}")
        raise


def what_was_done(error: BaseException) -> str:
    """What the innermost `doing` noted on an error."""
    notes = error.__notes__ if hasattr(error, "__notes__") else []
    return next(
        (n for n in notes if n.startswith(WHILE)), f"{WHILE}computing; take a smaller model, or learner.lora={{}}"
    )
