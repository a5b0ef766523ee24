"""A text that is made in a child process: how much of a processor it may take, and of the clock."""

import time

import pytest

from longstride.core import bounded
from longstride.core.bounded import LimitError, text_of


def test_a_child_that_waits_has_its_time_of_a_processor_all_the_same() -> None:
    def late() -> str:
        time.sleep(0.5)  # as on a machine where others have the processors
        return "made"

    assert text_of(late, 0.1, 64) == "made"


def test_a_child_that_takes_more_of_a_processor_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "PATIENCE", 3000)  # the clock decides nothing

    def busy() -> str:
        while True:
            pass

    with pytest.raises(LimitError, match=r"takes more than 0\.1 s"):
        text_of(busy, 0.1, 64)


def test_a_child_that_waits_forever_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    def idle() -> str:
        time.sleep(600)
        return ""

    monkeypatch.setattr(bounded, "PATIENCE", 2)
    with pytest.raises(LimitError, match=r"takes more than 0\.2 s"):
        text_of(idle, 0.1, 64)
