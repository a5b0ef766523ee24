"""What further turns are worth: episodes that go on past their limit (`Onward`), the gain that this measures (`gains`),
and a schedule that goes by it (`Worth`).

What always holds: whether an episode goes on is drawn with a known probability and nothing of the episode, so those that
do stand for all that were cut; nothing that only measures is trained on, and no token is counted twice (the turns that
are taken again are environment steps, and are counted as such).
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import takewhile
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from longstride.core.budget import StopReason
from longstride.core.experience import Experience
from longstride.core.numbers import Count
from longstride.core.task import Difficulty
from longstride.core.trajectory import MEASURED, EpisodeRecord, Trajectory
from longstride.curriculum import Adaptive
from longstride.rollout.planning import Groups, Planner, Sampler, Stages

_log = logging.getLogger(__name__)
FEW = 5
"""Episodes that have to be watched at a turn for it to say anything."""
MANY = 64
"""Cut episodes of which one should have gone on."""


class Onward(Sampler):
    """Another sampler's episodes; then, in a second round, a share of those that their turns cut without a success goes on
    for more.

    An episode that goes on begins with the turns that were taken, in an environment of the same seed, and the policy is
    the one that took them. So what it comes to is what the episode would have come to under the longer limit, as long
    as no limit is in view (`rollout.context`). It is an episode of its own that only measures: what is trained on is
    exactly what was played under the limit, without a bias to correct. To train on its later turns too would add to the
    objective of the limit a part of that of the longer one, of which the earlier turns would get no credit.

    Drawing a share of longer limits beforehand would save the turns that are taken again. But then a part of what is
    trained on is played under another limit than the schedule's, and what an episode had when it was cut is not known.
    """

    adaptive: ClassVar[bool] = True

    sampler: Sampler = Groups()
    """What is played in the first round."""
    share: Annotated[float, Field(gt=0, le=1)] = 0.125
    """Probability that such an episode goes on."""
    turns: Count = 8
    """How many turns more it may take."""

    def plan(self, planner: Planner) -> Stages:
        played = yield from self.sampler.plan(planner)
        chosen = [t for t in played if _may_go_on(t) and planner.rng.random() < self.share]
        further = yield [planner.onward(t, self.turns) for t in chosen]
        if other := sum(not _goes_on(t, b) for t, b in zip(further, chosen, strict=True) if not t.stop.failed):
            _log.warning(
                "%d of %d episodes that went on saw something else when their turns were taken again: their environment "
                "does not repeat itself, and what further turns are worth is not measured there",
                other,
                len(further),
            )
        return played + further


def _may_go_on(t: Trajectory) -> bool:
    """Whether a limit cut it that is not its task's own, and it has something to gain."""
    return t.stop is StopReason.TURNS and not t.success and (t.task.horizon is None or t.length < t.task.horizon)


def _goes_on(t: Trajectory, before: Trajectory) -> bool:
    """Whether an episode saw again what the one before it saw."""
    return [turn.observation for turn in t.turns[: before.length]] == [turn.observation for turn in before.turns]


class TurnGain(NamedTuple):
    """What so many turns more bring to an episode that was cut without a success."""

    episodes: int
    """That went on."""
    mean: float
    """How many of them succeeded."""
    error: float
    """Standard error of the mean; not a number for a single episode."""


def gains(
    played: Iterable[Trajectory],
    turns: Sequence[int] = (1, 2, 4, 8),
    by: Callable[[Trajectory], Hashable] = lambda t: t.task.difficulty,
) -> dict[Hashable, dict[int, TurnGain]]:
    """What further turns bring to episodes that were cut, by difficulty or whatever else `by` says, and by how many turns.

    Given how many went on, those that did are a simple random sample of all that were cut; so the mean is an unbiased
    estimate of the mean gain of all. Times the share of episodes that were cut it is what the limit's success would
    rise by. For fewer turns than were played the gain is read off the same episode: a success counts when the episode
    had ended by then, which is right wherever a success ends it.

    Args:
        played: the episodes of an iteration, or of several, with those of `Onward`.
        turns: how many more.
        by: the band of an episode.
    """
    cut: dict[Hashable, Trajectory] = {}
    further: dict[Hashable, list[Trajectory]] = defaultdict(list)
    for t in played:
        if t.role != MEASURED:
            cut[_beginning(t, t.length)] = t
        elif not t.stop.failed and (before := cut.get(_beginning(t, t.history))) and _goes_on(t, before):
            further[by(t)].append(t)
    return {
        band: {k: _gain([t.success and t.length <= t.history + k for t in found]) for k in turns}
        for band, found in further.items()
    }


def _beginning(t: Trajectory, turns: int) -> Hashable:
    return t.iteration, t.task.id, t.seed, tuple(tuple(turn.ids) for turn in t.turns[:turns])


def _gain(values: Sequence[bool]) -> TurnGain:
    n = len(values)
    return TurnGain(n, float(np.mean(values)), float(np.std(values, ddof=1)) / n**0.5 if n > 1 else float("nan"))


class WatchedEpisodes(NamedTuple):
    """Episodes of one band, as far as each was watched: [N] arrays."""

    after: np.ndarray
    """Turns after which it was watched: 0, or where it was cut before it went on."""
    length: np.ndarray
    """Turns until it ended, or until it was cut."""
    success: np.ndarray
    ended: np.ndarray
    """Whether it ended then; else its limit cut it."""


def curves(seen: WatchedEpisodes) -> tuple[np.ndarray, np.ndarray]:
    """f and c: for the limits h = 1, 2, ... the share of episodes that succeed within h turns, and the mean number of
    turns that they take; as far as `FEW` were watched.

    The product-limit estimate of Kaplan and Meier (1958), with the two ways to end apart and with late entries: of the
    n_t episodes that are watched in turn t, s_t succeed and e_t end, and

        f(h) = sum over t <= h of S_t s_t / n_t,  c(h) = sum over t <= h of S_t,  S_t = prod over u < t of (1 - e_u / n_u)

    It is consistent since where an episode stops to be watched is up to its limit and a draw, and not to the episode.
    """
    longest = int(seen.length.max(initial=0))
    count = lambda at: np.bincount(at, minlength=longest + 1)[: longest + 1]  # noqa: E731
    watched = np.cumsum(count(seen.after) - count(seen.length))[:-1]  # in turns 1, 2, ...
    watched = watched[: int(np.argmax(np.append(watched, 0) < FEW))]
    succeed, end = (count(seen.length[which])[1 : len(watched) + 1] / watched for which in (seen.success, seen.ended))
    going = np.cumprod(np.append(1.0, 1 - end))[:-1]
    return np.cumsum(going * succeed), np.cumsum(going)


class Worth(Adaptive):
    """The limit, by difficulty, under which an environment step teaches most, as measured on the episodes of the last
    iterations and on those that went on (`sampler.type` is `Onward`). It moves by at most `step` an iteration, and never
    passes `limit`; episodes that go on may take the sampler's `turns` more.

    Under a limit of h turns a share f(h) of a band's episodes succeeds, and an episode takes c(h) turns; so B steps buy
    B / c(h) episodes. An update learns from an episode how its outcome differs from what was to be expected: the
    mean gradient of log pi over the policy's own actions is 0, so an outcome that is certain teaches nothing, cloned or
    reinforced. The variance of the outcome is v(h) = f(h) (1 - f(h)), and what is sought is the largest v(h) / c(h).
    A limit is too short as long as further turns bring more a step than the limit does now,

        (v(h + k) - v(h)) / (c(h + k) - c(h))  >  v(h) / c(h),

    and too long where its last turns bring less: the marginal value theorem (Charnov, 1976), by which a forager leaves
    a patch. As the policy learns, f rises and the limit falls to what a task needs without waste.

    Of two equal limits the longer one is taken, so a band without a success gets more turns as long as they are
    measured. That takes `FEW` episodes that go on, by band and window: a share that is too small cannot raise a limit.
    Difficulties should be bands of distance: within one, a limit serves all of its tasks or few.
    """

    step: Count = 8
    """Most that the limit moves in an iteration."""
    window: Count = 3
    """Iterations that are read."""
    seeks: Literal["signal", "success"] = "signal"
    """What a step is to bring: f (1 - f), or f, the plain number of successes."""

    def after_episodes(self, iteration: int, difficulty: Difficulty, experience: Experience) -> int:
        limits: list[int] = experience.memory(self).setdefault(difficulty, [])
        while len(limits) < iteration:
            limits.append(
                self.after(limits[-1], self._watched(limits, difficulty, experience)) if limits else self.start
            )
        return limits[iteration - 1]

    def after(self, limit: int, seen: WatchedEpisodes) -> int:
        """The limit that follows one under which, and under those shortly before it, these episodes were watched."""
        f, c = curves(seen)
        first, last = max(1, limit - self.step), min(limit + self.step, self.limit, len(f))
        if last < first:
            return limit
        worth = (f * (1 - f) if self.seeks == "signal" else f) / c
        return last - int(np.argmax(worth[first - 1 : last][::-1]))

    def _watched(self, limits: list[int], difficulty: Difficulty, experience: Experience) -> WatchedEpisodes:
        """The episodes of a band in the window before the iteration that comes after so many limits."""
        now = len(limits) + 1
        newest = takewhile(lambda r: r.iteration >= now - self.window, reversed(experience.records))
        band = [r for r in newest if r.iteration < now and r.task.difficulty == difficulty and not r.stop.failed]
        band = [r for r in band if r.role != MEASURED or r.length > limits[r.iteration - 1]]
        after = [limits[r.iteration - 1] if r.role == MEASURED else 0 for r in band]
        if not any(after) and sum(map(_cut, band)) >= MANY:
            _log.warning("no episode went on past its limit, so %s cannot rise; set the sampler", self.type_name())
        return WatchedEpisodes(
            np.array(after, int),
            np.array([r.length for r in band], int),
            np.array([r.success for r in band], bool),
            np.array([not _cut(r) for r in band], bool),
        )


def _cut(episode: EpisodeRecord) -> bool:
    """Whether more turns might have brought a success."""
    return episode.stop is StopReason.TURNS and not episode.success
