"""Branching: episodes that begin in the middle of a thought.

What always holds: a thought is cut *before* a mark that divides its steps, so that whether to go on is still the
policy's to say; what an episode begins with is read and never trained. For tasks of a single turn.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from longstride.core.errors import ConfigError
from longstride.models.thoughts import THINK
from longstride.rollout.episode import Plan


class Codec(Protocol):
    """What makes ids of texts and texts of ids, such as a `models.chat.ChatFormat`."""

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: Sequence[int]) -> str: ...


def cuts(chat: Codec, ids: Sequence[int], marks: Sequence[str]) -> list[int]:
    """How many ids stand before each place where the text says one of the marks. A mark may be a token, several, or a
    part of one, such as an empty line in `.\\n\\n`; then that token stands behind the cut."""

    def text(part: Sequence[int]) -> str:
        return chat.decode(part).removeprefix(THINK)  # the tag of a thought that the template began

    def says(k: int, token: str, mark: str) -> bool:
        begun = token.lstrip(" ")
        if mark in token or not begun or not mark.startswith(begun):
            return mark in token
        return text(ids[k : k + len(mark)]).lstrip(" ").startswith(mark)

    tokens = [text([i]) for i in ids]
    return [k for k, token in enumerate(tokens) if any(says(k, token, mark) for mark in marks)]


def ending(chat: Codec, ids: Sequence[int], words: str) -> tuple[int, int]:
    """How many ids stand before the first place where the text says `words`, and how many there are with them; all of
    them, twice, where it does not. The words may be one token or several."""
    text = chat.decode(ids)
    if (place := text.find(words)) < 0:
        return len(ids), len(ids)
    lengths = range(len(ids) + 1)
    before = bisect_right(lengths, place, key=lambda k: len(chat.decode(ids[:k]))) - 1
    return before, bisect_left(lengths, True, key=lambda k: words in chat.decode(ids[:k]))


def check_single_turn(plans: Sequence[Plan], what: str) -> None:
    """Refuses plans of episodes of several turns; `what` cannot be done there."""
    if (turns := max((plan.turns for plan in plans), default=1)) > 1:
        raise ConfigError(
            f"{what} in an only turn, and episodes may take {turns}; take tasks of a single turn, with budget.turns=1"
        )


def answer_plan(plan: Plan, prefix: tuple[int, ...], longest: int, role: str = "forced") -> Plan:
    """The plan of an answer at once, after a prefix that asks for it: it has room of its own (`longest`, in tokens),
    whatever the budget."""
    budget = plan.budget.model_copy(update={"tokens": None, "turn_tokens": len(prefix) + longest})
    return replace(plan, prefix=prefix, budget=budget, role=role)
