"""The rollout scheduler: how far rolling out may be ahead of the update, whoever plays.

How stale a token may be is decided by when its plan is submitted: `iterations` submits those of iteration i + S when
the policy is at version i - 1, and not before. What always holds: iterations are returned complete and in their order;
under a bound of 0 nothing is left to play when an iteration is returned: that is the synchronous loop, and the same
code.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence

from longstride.core.component import Component
from longstride.core.errors import ConfigError
from longstride.core.numbers import CountOrZero, Seconds
from longstride.core.trajectory import Trajectory
from longstride.rollout.episode import Plan
from longstride.rollout.planning import Stages


class PoolConfig(Component):
    """How episodes are played side by side."""

    staleness: CountOrZero = 0
    """Updates by which the policy that is trained may be ahead of the one that sampled a token, at most. 0 rolls out
    and trains in turn; above it the next iterations are rolled out while one is trained."""
    lockstep: bool | None = None
    """Whether tokens are sampled when no environment is at work any more, so that it does not depend on their
    latencies which episodes are computed together, and the last bits of a run with them; slow environments hold all
    others up. Engine processes go in a lockstep each. Left out: where `staleness` is 0."""
    step_deadline: Seconds = 60.0
    """Seconds that an environment and a judge have for one turn; who is late is named, and failed."""
    retries: CountOrZero = 1
    """How often a failed episode is tried again."""

    @property
    def together(self) -> bool:
        """Whether it plays in lockstep."""
        return self.staleness == 0 if self.lockstep is None else self.lockstep


class RolloutScheduler(ABC):
    """Whatever plays plans in iterations, under a bound on staleness."""

    config: PoolConfig

    def __init__(self) -> None:
        self._changed = threading.Condition()
        """Guards `_done` and `_error`, and whatever else the member says."""
        self._done: dict[int, Trajectory] = {}
        self._error: BaseException | None = None
        self._held: dict[int, list[Plan]] = {}
        """Plans by the ordinal of the episode that comes before them in their trial, until it has ended."""

    @abstractmethod
    def submit(self, plans: Sequence[Plan]) -> None:
        """Takes plans in; they are played as soon as there is room, later episodes of a trial as soon as the one before
        has ended. Ordinals must be new.

        Raises:
            ConfigError: a plan comes after one that is neither among them nor played.
        """

    @abstractmethod
    def collect(self, ordinals: Sequence[int], progress: Callable[[int, int], None] | None = None) -> list[Trajectory]:
        """Waits for the trajectories of plans that were submitted, and returns them in this order."""

    def iterations(
        self,
        stages: Callable[[int], Stages],
        first: int,
        last: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> Iterator[tuple[int, list[Trajectory]]]:
        """The iterations from `first` to `last` with what their stages return, while up to `staleness` later ones are
        played. Whoever takes one makes the next version of the policy of it before taking another.

        Args:
            stages: the plans of an iteration; asked `staleness` iterations before it is returned.
            first: iteration.
            last: iteration; none after it is started.
            progress: called with (plans done, plans) of the stage that is waited for.
        """
        begun: dict[int, tuple[Stages, list[int]]] = {}
        for i in range(first, last + 1):
            for k in range(i + len(begun), min(i + self.config.staleness, last) + 1):
                new = stages(k)
                begun[k] = new, self._submitted(next(new))
            yield i, self._ended(*begun.pop(i), progress)

    def _ended(
        self, stages: Stages, ordinals: list[int], progress: Callable[[int, int], None] | None
    ) -> list[Trajectory]:
        """Plays the stages that are left, after the one that was submitted."""
        while True:
            found = self.collect(ordinals, progress)
            try:
                ordinals = self._submitted(stages.send(found))
            except StopIteration as e:
                return e.value

    def _submitted(self, plans: Sequence[Plan]) -> list[int]:
        self.submit(plans)
        return [plan.ordinal for plan in plans]

    def _ready_of(self, plans: Sequence[Plan]) -> list[Plan]:
        """Those of new plans that can be played; the others are held."""
        given, ready = {plan.ordinal for plan in plans}, []
        for plan in plans:
            before = plan.after[-1] if plan.after and plan.earlier is None else None
            if plan.ordinal in self._done:
                continue
            if before is None:
                ready.append(plan)
            elif before in given or before in self._done:
                self._held.setdefault(before, []).append(plan)
            else:
                raise ConfigError(f"episode {plan.ordinal} comes after episode {before}, which is not played")
        return ready + [plan for ordinal in list(self._held) if ordinal in self._done for plan in self._freed(ordinal)]

    def _freed(self, ordinal: int) -> list[Plan]:
        """The plans that were held until this episode, which is in `_done` now, had ended."""
        return [plan.following([self._done[n] for n in plan.after]) for plan in self._held.pop(ordinal, [])]

    def finished(self) -> list[Trajectory]:
        """What was played to its end and not collected yet, by ordinal."""
        with self._changed:
            return [self._done[ordinal] for ordinal in sorted(self._done)]

    def restore(self, trajectories: Sequence[Trajectory]) -> None:
        """Takes back what `finished` gave: their plans are not played again. To be called before they are submitted."""
        with self._changed:
            self._done |= {t.ordinal: t for t in trajectories}
