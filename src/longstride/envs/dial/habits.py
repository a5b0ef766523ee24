"""Habits of a policy on trails, counted in its episodes: what the exact model `tti_map` computes success from.

A turn is *wasted* where it brings the episode no nearer to its goal than it ever was: an action that moves nothing, a
wrong link, each step of the way back. What always holds: counts add up over episodes, and a habit that nothing was seen
of is None; failed episodes count in none.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Self
from urllib.parse import urlsplit

from longstride.core.trajectory import Trajectory, Turn
from longstride.envs.dial.trail import Trail
from longstride.envs.sites.actions import parse
from longstride.envs.text import said


@dataclass(frozen=True, slots=True)
class Habits:
    """Counts of turns."""

    turns: int = 0
    wasted: int = 0
    idle: int = 0
    """Turns that moved nothing."""
    wrong: int = 0
    """Turns that followed a wrong link."""
    fresh: int = 0
    """Turns after one that was not wasted, and first ones."""
    begun: int = 0
    """Wasted ones of them."""
    continued: int = 0
    """Wasted turns after a wasted one."""
    asked: int = 0
    """Turns on the way, the first page left out, that were not wasted."""
    quit: int = 0
    """Those of them that answered before the last page."""
    said: int = 0
    """Links that were followed by their name, and answers on the last page."""
    misread: int = 0
    """Those of them whose words, or whose number beside these words, do not stand on the page."""

    @property
    def begins(self) -> float | None:
        """Probability of a wasted turn after one that was not."""
        return _share(self.begun, self.fresh)

    @property
    def goes_on(self) -> float | None:
        """Probability of a wasted turn after a wasted one."""
        return _share(self.continued, self.turns - self.fresh)

    @property
    def quits(self) -> float | None:
        """Probability of answering on a page of the way, where no turn is wasted."""
        return _share(self.quit, self.asked)

    @property
    def misreads(self) -> float | None:
        """Share of names and codes that were copied wrongly: not a habit, but what looks like one where words are
        new."""
        return _share(self.misread, self.said)

    def table(self) -> dict[str, float | None]:
        """The habits, and the shares of turns that are wasted, idle and wrong."""
        shares = {name: _share(getattr(self, name), self.turns) for name in ("wasted", "idle", "wrong")}
        return {n: getattr(self, n) for n in ("begins", "goes_on", "quits", "misreads")} | shares

    def __add__(self, other: "Habits") -> "Habits":
        return Habits(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @classmethod
    def of(cls, trajectories: Iterable[Trajectory]) -> Self:
        """The habits in episodes on trails."""
        counts: dict[str, int] = defaultdict(int)
        for t in trajectories:
            if t.stop.failed:
                continue
            for name, value in _counts(t).items():
                counts[name] += value
        return cls(**counts)


def by_distance(trajectories: Iterable[Trajectory]) -> dict[int, Habits]:
    """The habits by goal distance, ascending."""
    groups: dict[int, list[Trajectory]] = defaultdict(list)
    for t in trajectories:
        groups[Trail.of(t.task).distance].append(t)
    return {distance: Habits.of(groups[distance]) for distance in sorted(groups)}


def _counts(t: Trajectory) -> dict[str, int]:
    trail, counts = Trail.of(t.task), defaultdict(int)
    farthest, was_wasted = 0, False
    for k, turn in enumerate(t.turns):
        last = k + 1 == len(t.turns)
        here = trail.place(urlsplit(turn.url).path) or (0,)
        after = here if last else trail.place(urlsplit(t.turns[k + 1].url).path) or (0,)
        answers = turn.verb in ("answer", "infeasible")
        # what the last turn of an episode that a limit cut did is not seen in a later address
        if last and not answers:
            after = _after(trail, here, turn)
        wasted = not answers and not (len(after) == 1 and after[0] > farthest)
        farthest = max(farthest, after[0] if len(after) == 1 else 0)
        counts["turns"] += 1
        counts["wasted"] += wasted
        counts["idle"] += after == here and not answers
        counts["wrong"] += len(after) > len(here)
        counts["fresh"] += not was_wasted
        counts["begun"] += wasted and not was_wasted
        counts["continued"] += wasted and was_wasted
        early = answers and not trail.is_last(here)
        if not wasted and here != (0,) and not trail.is_last(here):
            counts["asked"] += 1
            counts["quit"] += early
        counts["said"] += (named := _named(turn)) is not None and not early
        counts["misread"] += named is not None and not early and not _stands(trail, here, *named)
        was_wasted = wasted
    return counts


def _after(trail: Trail, here: tuple[int, ...], turn: Turn) -> tuple[int, ...]:
    """Where a turn led, as far as the page that it was taken on says."""
    action = parse(turn.text)
    shown = trail.page(here)
    if turn.error or isinstance(action, str) or action.verb != "click" or action.element is None:
        return here
    link = action.element - shown.help
    return trail.after(here, link) if 1 <= link <= len(shown.links) else here


def _named(turn: Turn) -> tuple[str, int | None] | None:
    """The words of a link or an answer that a turn says, and the link's number."""
    action = parse(turn.text)
    if isinstance(action, str):
        return None
    if action.verb == "answer":
        return action.text, None
    words = said(turn.text).partition("[")[0].split()[1:]
    return (" ".join(words), action.element) if action.verb == "click" and words else None


def _stands(trail: Trail, here: tuple[int, ...], words: str, number: int | None) -> bool:
    """Whether the page has these words, beside this number where it is a link."""
    shown = trail.page(here)
    if number is None:
        return words == (trail.answer if trail.is_last(here) else shown.sign[1])
    return shown.elements[number - 1 : number] == (words,)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
