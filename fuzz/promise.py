"""The promise that fuzzing tries to break: a typed error with one clear message, and nothing else."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from longstride.core.errors import LongstrideError

MESSAGE = 2000
"""Characters of a message about what others wrote; one about a user's own recipe may repeat it."""


@contextmanager
def typed(most: int = MESSAGE) -> Iterator[None]:
    """Within it only typed errors may be raised, each with a message of bounded size that can be printed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except LongstrideError as e:
        assert 0 < len(str(e)) <= most, f"a message of {len(str(e))} characters: {str(e)[:300]}"
