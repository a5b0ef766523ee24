"""Samples, credit and replay: what is trained, with which weight, and what of all that was collected is used.

What always holds: a sample has one number a sampled token in each of its streams and none for any other token, so a
token that the policy did not sample cannot be trained; an episode that infrastructure ended is admitted by no replay.

A stream is a list of numbers, one a sampled token, under a name. Credit gives `ADVANTAGES`; `BEHAVIOUR` comes from
sampling; the learner adds `PROXIMAL` and `REFERENCE` where a loss needs them. A paper adds a stream by giving it a name
in its credit and reading that name in its loss: nothing between the two knows of it.
"""

import random
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from longstride.core.component import Component
from longstride.core.experience import Experience
from longstride.core.trajectory import EpisodeRecord, Trajectory, Turn

ADVANTAGES = "advantages"
"""How much each token weighs in the loss."""
BEHAVIOUR = "behaviour_logprobs"
"""Log-probability under the policy that sampled the token."""
PROXIMAL = "proximal_logprobs"
"""Log-probability under the weights at the start of the update."""
REFERENCE = "reference_logprobs"
"""Log-probability under the policy that the loss holds on to."""


@dataclass(slots=True)
class Sample:
    """One prompt and what the policy sampled after it."""

    prompt_ids: list[int]
    """Exactly what the policy read."""
    sampled_ids: list[int]
    streams: dict[str, list[float]]
    """By name, one number a sampled token; `ADVANTAGES` always."""
    episode: int = 0
    """Ordinal of the trajectory."""
    group: int = 0
    """Group of the trajectory."""
    turn: int = 0
    """Number of the turn in its trajectory, from 0."""
    pair: int = -1
    """Samples with the same number are compared with one another, and stay in one optimiser step; -1 is none."""

    def __post_init__(self) -> None:
        for name in (ADVANTAGES, *self.streams):
            if len(self.streams.get(name, ())) != len(self.sampled_ids):
                raise ValueError(
                    f"a stream has one number a sampled token: {name} has {len(self.streams.get(name, ()))} for "
                    f"{len(self.sampled_ids)} tokens"
                )

    @property
    def advantages(self) -> list[float]:
        return self.streams[ADVANTAGES]

    @staticmethod
    def of(trajectory: Trajectory, turn: Turn, advantages: list[float], **streams: list[float]) -> "Sample":
        """A turn of a trajectory, with an advantage for each sampled token, and further streams."""
        number = [id(t) for t in trajectory.turns].index(id(turn))  # turns may be equal
        return Sample(
            turn.prompt_ids,
            turn.sampled_ids,
            {ADVANTAGES: advantages, BEHAVIOUR: turn.behaviour_logprobs, **streams},
            trajectory.ordinal,
            trajectory.group,
            number,
        )


def demonstration(prompt_ids: list[int], ids: list[int], weight: float = 1.0, episode: int = 0) -> Sample:
    """What is to be imitated: ids that need not have been sampled by the policy. Each of them weighs `weight`."""
    return Sample(prompt_ids, ids, {ADVANTAGES: [weight] * len(ids)}, episode, episode)


def turn_rewards(trajectory: Trajectory) -> list[float]:
    """What each turn earned; the last one also what the evaluator gave for the whole."""
    rewards = [turn.reward for turn in trajectory.turns]
    if rewards:
        rewards[-1] += trajectory.reward - sum(rewards)
    return rewards


class Credit(Component):
    """Family: turns trajectories into weighted samples."""

    @property
    def estimates(self) -> frozenset[str]:
        """Names of the estimates in `Turn.estimates` that a critic has to provide."""
        return frozenset()

    @abstractmethod
    def __call__(self, trajectories: Sequence[Trajectory]) -> list[Sample]:
        """The samples of one update, in the order of trajectories and turns."""

    def targets(self, trajectories: Sequence[Trajectory]) -> list[list[float]]:
        """Of each trajectory, what a value before each of its turns should have been; `[]` for a failed one. Unless a
        credit says otherwise it is what was earned from that turn on."""
        return [[] if t.stop.failed else list(accumulate(reversed(turn_rewards(t))))[::-1] for t in trajectories]


class Replay(Component):
    """Family: what of all that was collected is trained on."""

    def admits(self, episode: EpisodeRecord) -> bool:
        """Whether the episode may ever be trained on. A failed one never is."""
        return not episode.stop.failed and self.wants(episode)

    @abstractmethod
    def wants(self, episode: EpisodeRecord) -> bool:
        """The method's own say on an episode that did not fail."""

    @abstractmethod
    def draw(
        self, kept: Sequence[EpisodeRecord], fresh: int, rng: random.Random, experience: Experience
    ) -> list[EpisodeRecord]:
        """What is trained on now, oldest first.

        Args:
            kept: all that was admitted so far, oldest first.
            fresh: how many at the end of `kept` are of this iteration.
            rng: the draw's own stream.
            experience: what was collected, this iteration included, and the models as they are now.
        """

    def renew(self, drawn: list[Trajectory], rng: random.Random, experience: Experience) -> list[Trajectory]:
        """The drawn episodes as they are trained on: as they were played, unless a method asks the policy as it is now
        what it would do in their turns (`Experience.propose`). Every process of several is asked.

        Args:
            drawn: what `draw` chose; not changed.
            rng: the stream of the draw, after it.
            experience: as in `draw`.
        """
        return drawn

    def select(self, samples: Sequence[Sample], experience: Experience) -> Sequence[Sample]:
        """Which of the samples that credit made of these episodes are trained on: all of them, unless a method looks at
        single turns. Every process of several is asked, with the same samples.

        Args:
            samples: what credit made.
            experience: as in `draw`.
        """
        return samples


class OnPolicy(Replay):
    """Only what this iteration collected, failures of the task included."""

    def wants(self, episode: EpisodeRecord) -> bool:
        return True

    def draw(
        self, kept: Sequence[EpisodeRecord], fresh: int, rng: random.Random, experience: Experience
    ) -> list[EpisodeRecord]:
        return list(kept[len(kept) - fresh :])
