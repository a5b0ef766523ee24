"""Replay: what of all that was collected is trained on.

What always holds: an episode that infrastructure ended, or that only measures, is admitted by no replay; a draw depends
on what it is given, and on nothing else. No torch.
"""

import heapq
import math
import random
from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal

import numpy as np

from longstride.core.component import Component
from longstride.core.experience import Experience
from longstride.core.trajectory import MEASURED, EpisodeRecord, Trajectory, by_group
from longstride.methods.advantages import EQUAL
from longstride.methods.base import Sample


def without_replacement(weights: Sequence[float], most: int, rng: random.Random) -> list[int]:
    """Places, ascending, of at most so many that are drawn one after the other in proportion to their weights, none
    twice. A weight of 0 is drawn where nothing else is left.

    Drawn as a race of exponential clocks with the weights as rates: the first to ring are distributed like successive
    draws (Efraimidis and Spirakis, 2006).
    """
    rings = [(rng.expovariate(weight) if weight > 0 else math.inf, k) for k, weight in enumerate(weights)]
    return sorted(k for _, k in heapq.nsmallest(most, rings))


class Replay(Component):
    """Family: what of all that was collected is trained on. Episodes, groups and turns are chosen here and nowhere
    else: a sampler says what is played, and a credit how much what was chosen weighs."""

    def admits(self, episode: EpisodeRecord) -> bool:
        """Whether the episode may ever be trained on. One that failed never is, nor one that only measures."""
        return not episode.stop.failed and episode.role != MEASURED and self.wants(episode)

    @abstractmethod
    def wants(self, episode: EpisodeRecord) -> bool:
        """The method's own say on any other episode."""

    def teaches(self, group: Sequence[EpisodeRecord]) -> bool:
        """Whether a group of episodes, none of them failed, is worth training on. `OnPolicy` leaves the others out, and
        a sampler that plays until there are enough asks this too (`rollout.DynamicSampling`)."""
        return True

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
    """Only what this iteration collected, failures of the task included, in groups that teach something."""

    def wants(self, episode: EpisodeRecord) -> bool:
        return True

    def draw(
        self, kept: Sequence[EpisodeRecord], fresh: int, rng: random.Random, experience: Experience
    ) -> list[EpisodeRecord]:
        found = list(kept[len(kept) - fresh :])
        chosen = {group[0].group for group in by_group(found) if self.teaches(group)}
        return [episode for episode in found if episode.group in chosen]


class MixedGroups(OnPolicy):
    """`OnPolicy` without the groups whose members are all alike, from which group-relative credit learns nothing (DAPO,
    arXiv 2503.14476, section 3.2). They are then in no denominator either, while advantages of 0 are."""

    by: Literal["reward", "success"] = "reward"
    """What has to differ: rewards by `EQUAL` at least, or success."""

    def teaches(self, group: Sequence[EpisodeRecord]) -> bool:
        if self.by == "success":
            return len({episode.success for episode in group}) > 1
        return float(np.std([episode.reward for episode in group])) >= EQUAL
