"""An episode longer than its context, read in overlapping pieces (`OverlappingPieces`)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from longstride.core.numbers import Count, CountOrZero
from longstride.rollout.context import ContextPolicy, FullHistory, Past

if TYPE_CHECKING:
    from longstride.models.chat import ChatFormat


class OverlappingPieces(ContextPolicy):
    """The goal, the first turns, and the turns of the present piece. A piece grows until a prompt would be longer than
    `most`; then a new one begins, with the newest turns of the one before.

    Within a piece every prompt continues the one before it and what was sampled, so caches and rows go on; where a new one
    begins, they fork. A prompt is longer than `most` where goal, first turns, overlap and newest page alone are.
    """

    most: Count
    """Tokens of a prompt."""
    overlap: CountOrZero = 2
    """Turns that a piece takes over from the one before it."""
    early: CountOrZero = 1
    """Turns at the beginning that every piece keeps."""

    def render(self, chat: "ChatFormat", past: Past) -> list[int]:
        first = self.begins(self._sizes(chat, past), len(chat.head(past.goal)))
        seen = [*past.observations[: self.early], *past.observations[first:]]
        sampled = [*past.sampled[: self.early], *past.sampled[first:]]
        return FullHistory().render(chat, replace(past, observations=seen, sampled=sampled))

    def begins(self, sizes: Sequence[tuple[int, int]], head: int) -> int:
        """The turn, counted from 0, that the present piece begins with after the first ones.

        Args:
            sizes: tokens of each observation, the newest one included, and of what was said to it.
            head: tokens before the first observation.
        """
        kept = head + sum(map(sum, sizes[: self.early]))
        first, length = self.early, kept
        for turn, (page, said) in enumerate(sizes[self.early :], self.early):
            if length + page > self.most:
                later = max(turn - self.overlap, first)
                length -= sum(map(sum, sizes[first:later]))
                first = later
            length += page + said
        return first

    def _sizes(self, chat: "ChatFormat", past: Past) -> list[tuple[int, int]]:
        pages = [len(chat.observation(content, first=k == 0)) for k, content in enumerate(past.observations)]
        return list(zip(pages, [*(len(chat.spoken(ids)) for ids in past.sampled), 0], strict=True))
