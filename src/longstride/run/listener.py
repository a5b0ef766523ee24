"""Whoever watches a run: its rows of metrics, and how far it is."""

from typing import Any, Protocol


class Listener(Protocol):
    """Whoever watches a run."""

    def __call__(self, row: dict[str, Any]) -> None:
        """Takes a metrics row."""
        ...

    def progress(self, phase: str, done: int, total: int) -> None:
        """Takes how far a phase (`rollout`, `train`, `eval`) is."""
        ...


class Silent:
    """A listener to nothing."""

    def __call__(self, row: dict[str, Any]) -> None:
        pass

    def progress(self, phase: str, done: int, total: int) -> None:
        pass
