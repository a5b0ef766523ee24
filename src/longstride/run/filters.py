"""Steps of episodes that succeeded, and which of them are imitated.

What always holds: a step is one turn, or one step of a search in a turn, and is read after all that stood before it; a
filter drops steps and changes none.
"""

from abc import abstractmethod
from collections.abc import Container, Sequence
from dataclasses import dataclass
from math import exp, inf
from typing import Annotated

from pydantic import Field

from longstride.core.component import Component
from longstride.core.content import Media
from longstride.core.errors import ConfigError
from longstride.core.numbers import Weight
from longstride.core.trajectory import Trajectory
from longstride.methods.base import Sample, demonstration
from longstride.strategies.searched import steps_of


@dataclass(frozen=True, eq=False, slots=True)
class FoundStep:
    """A part of an episode that succeeded, and may be imitated: a turn, or a step of a search in one."""

    trajectory: Trajectory
    prompt_ids: list[int]
    ids: list[int]
    logprob: float | None
    """Of its tokens together, by the policy that sampled them; None where that is not known."""
    usual: float | None = None
    """Reward of the policy's own first answer to the task, or the mean of all that is stored of it."""
    media: tuple[Media, ...] = ()
    error: str | None = None
    """Why its turn had no effect (`Turn.error`)."""

    @property
    def sample(self) -> Sample:
        """Each token of weight 1."""
        return demonstration(self.prompt_ids, self.ids, 1.0, self.trajectory.ordinal, self.media)


class Filter(Component):
    """Family: which steps of successful episodes are imitated."""

    @abstractmethod
    def __call__(self, steps: Sequence[FoundStep]) -> list[FoundStep]:
        """Those that are, in their order."""


class PerplexityBand(Filter):
    """Steps that are neither trivial to the policy nor noise (BFS-Prover-V2, arXiv 2509.06493): their perplexity is exp
    of the mean negative log-probability of their tokens."""

    low: Annotated[float, Field(ge=1)] = 1.0
    """Least that is imitated."""
    high: Annotated[float, Field(ge=1)] | None = None
    """Largest; no limit if left out."""

    def __call__(self, steps: Sequence[FoundStep]) -> list[FoundStep]:
        return [step for step in steps if self.low <= self._perplexity(step) <= (self.high or inf)]

    def _perplexity(self, step: FoundStep) -> float:
        if step.logprob is None:
            raise ConfigError(
                "a band of perplexity needs to know how likely the policy found its steps: take steps of a search "
                "(demonstrations.strategy.type=searched) or of turns that were sampled whole"
            )
        return exp(-step.logprob / max(1, len(step.ids)))


class Novel(Filter):
    """Of equal steps after equal beginnings the first."""

    def __call__(self, steps: Sequence[FoundStep]) -> list[FoundStep]:
        first: dict[tuple[tuple[int, ...], tuple[int, ...]], FoundStep] = {}
        for step in steps:
            first.setdefault((tuple(step.prompt_ids), tuple(step.ids)), step)
        return list(first.values())


class Effective(Filter):
    """Steps of turns that had an effect: what the environment answered with an error is not imitated."""

    def __call__(self, steps: Sequence[FoundStep]) -> list[FoundStep]:
        return [step for step in steps if step.error is None]


class Improved(Filter):
    """Episodes that earned more than is usual for the task (`FoundStep.usual`)."""

    by: Weight = 0.0
    """How much more."""

    def __call__(self, steps: Sequence[FoundStep]) -> list[FoundStep]:
        return [s for s in steps if s.usual is None or s.trajectory.reward > s.usual + self.by]


def steps_in(t: Trajectory, usual: float | None = None, companions: Container[str] = ()) -> list[FoundStep]:
    """The steps of an episode: those of a search, where it was found by one, else its turns but those of companions."""
    searched, found = steps_of(t), list[FoundStep]()
    for turn in t.turns:
        begin = turn.prompt_ids[: len(turn.prompt_ids) - turn.given]
        if not turn.ids or turn.speaker in companions:
            continue
        parts = _parts(len(turn.ids), searched)
        if not parts:
            known = sum(turn.behaviour_logprobs) if not turn.given else None
            parts = [(len(turn.ids), known)]
        at = 0
        for n, logprob in parts:
            ids, read = turn.ids[at : at + n], begin + turn.ids[:at]
            found.append(FoundStep(t, read, ids, logprob, usual, turn.media, turn.error))
            at += n
    return found


def _parts(size: int, steps: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Takes from the front of `steps` those that make up a turn of so many ids; none where they do not."""
    taken, total = 0, 0
    while taken < len(steps) and total < size:
        total += steps[taken][0]
        taken += 1
    if total != size:
        return []
    found = [step for step in steps[:taken] if step[0]]
    del steps[:taken]
    return found


def filtered(steps: Sequence[FoundStep], filters: Sequence[Filter]) -> list[Sample]:
    """What passes all filters, one after the other."""
    for each in filters:
        steps = each(steps)
    return [step.sample for step in steps]
