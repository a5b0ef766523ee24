"""Replay of the successes of the last iterations, newer ones more often (`RecentSuccesses`)."""

import random
from collections.abc import Sequence

from longstride.core.experience import Experience
from longstride.core.numbers import Count
from longstride.core.trajectory import EpisodeRecord
from longstride.methods import Replay
from longstride.methods.replay import without_replacement


class RecentSuccesses(Replay):
    """Successes of the last iterations, drawn without replacement with probabilities ~ (k + 1)^2, k = 0, 1, ... being the
    position in time."""

    iterations: Count = 4
    """How many iterations back, the present one included."""
    keep: Count = 256
    """Most episodes of an update."""

    def wants(self, episode: EpisodeRecord) -> bool:
        return episode.success and not episode.infeasible

    def draw(
        self, kept: Sequence[EpisodeRecord], fresh: int, rng: random.Random, experience: Experience
    ) -> list[EpisodeRecord]:
        now = experience.records[-1].iteration if experience.records else 0
        recent = [r for r in kept if r.iteration > now - self.iterations]
        weights = [(k + 1) ** 2 for k in range(len(recent))]
        return [recent[k] for k in without_replacement(weights, self.keep, rng)]
