"""Which tokens are trained with which weight: the two families that every algorithm is made of.

What always holds: a sample has one weight and one behaviour log-probability a sampled token and none for any other,
so a token that the policy did not sample cannot be trained; an episode that infrastructure ended is admitted by no
replay. Credit says how much each token weighs (its advantage), a `losses.Loss` what is done with that, and the learner
is blind to both.
"""

import random
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from longstride.core.component import Component
from longstride.core.trajectory import Entry, Trajectory, Turn

E = TypeVar("E", Trajectory, Entry)
"""What a replay draws from: trajectories, or entries that stand for them."""


@dataclass(slots=True)
class Sample:
    """One prompt and what the policy said to it."""

    prompt_ids: list[int]
    """Exactly what the policy read."""
    sampled_ids: list[int]
    weights: list[float]
    """Weight of each sampled token in the loss: its advantage."""
    logprobs: list[float]
    """Log-probability of each sampled token under the policy that sampled it."""
    episode: int = 0
    """Ordinal of the trajectory."""
    group: int = 0
    """Group of the trajectory."""
    turn: int = 0
    """Number of the turn in its trajectory, from 0."""
    proximal: list[float] = field(default_factory=list)
    """Log-probability of each sampled token under the weights at the start of the update; the learner fills it in where
    the loss asks for it."""
    reference: list[float] = field(default_factory=list)
    """The same under the policy that the loss holds on to; filled in likewise."""

    def __post_init__(self) -> None:
        if not len(self.sampled_ids) == len(self.weights) == len(self.logprobs):
            raise ValueError(
                f"one weight and one log-probability a sampled token: {len(self.sampled_ids)} tokens, "
                f"{len(self.weights)} weights, {len(self.logprobs)} log-probabilities"
            )

    @staticmethod
    def of(trajectory: Trajectory, turn: Turn, weights: list[float]) -> "Sample":
        """A turn of a trajectory, with a weight for each sampled token."""
        number = [id(t) for t in trajectory.turns].index(id(turn))  # turns may be equal
        return Sample(
            turn.prompt_ids, turn.sampled_ids, weights, turn.logprobs, trajectory.ordinal, trajectory.group, number
        )


class Credit(Component):
    """Family: turns trajectories into weighted samples."""

    @abstractmethod
    def __call__(self, trajectories: Sequence[Trajectory]) -> list[Sample]:
        """The samples of one update, in the order of trajectories and turns."""


class Replay(Component):
    """Family: what of all that was collected is trained on. Entries are drawn like the trajectories they stand for."""

    def admits(self, episode: Trajectory | Entry) -> bool:
        """Whether the episode may ever be trained on. A failed one never is."""
        return not episode.stop.failed and self._wants(episode)

    @abstractmethod
    def _wants(self, episode: Trajectory | Entry) -> bool:
        """The algorithm's own say on an episode that did not fail."""

    @abstractmethod
    def draw(self, kept: Sequence[E], fresh: int, rng: random.Random) -> list[E]:
        """What is trained on now, oldest first.

        Args:
            kept: all that was admitted so far, oldest first.
            fresh: how many at the end of `kept` are of this iteration.
            rng: the draw's own stream.
        """


class OnPolicy(Replay):
    """Only what this iteration collected, failures of the task included."""

    def _wants(self, episode: Trajectory | Entry) -> bool:
        return True

    def draw(self, kept: Sequence[E], fresh: int, rng: random.Random) -> list[E]:
        return list(kept[len(kept) - fresh :])
