"""Branching: episodes that begin in the middle of a thought.

What always holds: a thought is cut *before* a mark that divides its steps, so that whether to go on is still the
policy's to say; what an episode begins with is read and never trained. For tasks of a single turn.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Protocol

from longstride.core.errors import ConfigError
from longstride.rollout.episode import Plan


class Codec(Protocol):
    """What makes ids of texts and texts of ids, such as a `models.chat.ChatFormat`."""

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: Sequence[int]) -> str: ...

    def verbatim(self, ids: Sequence[int]) -> str: ...


def cuts(chat: Codec, ids: Sequence[int], marks: Sequence[str]) -> list[int]:
    """How many ids stand before each token in which one of the marks begins. A mark may be a token, several, or a part
    of one, as an empty line is of `.\\n\\n`; spaces do not count, which not every vocabulary keeps."""
    pieces = [chat.verbatim([i]).replace(" ", "") for i in ids]
    begins, text = list(accumulate(map(len, pieces), initial=0)), "".join(pieces)
    words = [re.escape(mark.replace(" ", "")) for mark in marks]
    places = {found.start() for mark in filter(None, words) for found in re.finditer(mark, text)}
    return sorted({bisect_right(begins, place) - 1 for place in places})


def ending(chat: Codec, ids: Sequence[int], words: str) -> tuple[int, int]:
    """How many ids stand before the first place where the text says `words`, and how many there are with them; all of
    them, twice, where it does not. The words may be one token or several."""
    text = chat.decode(ids)
    if (place := text.find(words)) < 0:
        return len(ids), len(ids)
    lengths = range(len(ids) + 1)
    before = bisect_right(lengths, place, key=lambda k: len(chat.decode(ids[:k]))) - 1
    return before, bisect_left(lengths, True, key=lambda k: words in chat.decode(ids[:k]))


def check_single_turn(plans: Sequence[Plan], what: str, budget: str = "budget") -> None:
    """Refuses plans of episodes of several turns, whose limit `budget` names; `what` cannot be done there."""
    if (turns := max((plan.turns for plan in plans), default=1)) > 1:
        raise ConfigError(
            f"{what} in an only turn, and episodes may take {turns}; take tasks of a single turn, with {budget}.turns=1"
        )


def answer_plan(plan: Plan, prefix: tuple[int, ...], longest: int, role: str = "forced") -> Plan:
    """The plan of an answer at once, after a prefix that asks for it: it has room of its own (`longest`, in tokens),
    whatever the budget."""
    budget = plan.budget.model_copy(update={"tokens": None, "turn_tokens": len(prefix) + longest})
    return replace(plan, prefix=prefix, budget=budget, role=role)
