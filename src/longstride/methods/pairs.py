"""Credit of preferences: which episodes are a pair, and which of the two is preferred. No torch.

What always holds: both are of one group; a pair of which one side has no sampled token is left out. The samples of the
preferred side have advantage 1 and those of the other 0, so that `Reinforce` on them is the likelihood of what is
preferred, and a loss of pairs (`methods.preferences`) lowers the other side too.
"""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Literal

from longstride.core.errors import ConfigError
from longstride.core.trajectory import DUELS, Trajectory, by_group
from longstride.methods.base import Advantage, Credit, Sample
from longstride.methods.preferences import sides

Pair = tuple[Trajectory, Trajectory]
"""What is preferred, and what it is preferred to."""


class PairCredit(Credit):
    """Family: pairs of episodes."""

    @abstractmethod
    def pairs(self, group: Sequence[Trajectory]) -> Iterable[Pair]:
        """The pairs of a group of episodes, none of which failed."""

    def advantages(self, played: Sequence[Trajectory]) -> Sequence[Sequence[Advantage]]:
        return [[1.0] * t.length for t in played]

    def __call__(self, trajectories: Sequence[Trajectory]) -> list[Sample]:
        turns: dict[int, list[Sample]] = {}
        for s in super().__call__(trajectories):
            turns.setdefault(s.episode, []).append(s)
        found = [
            (turns[first.ordinal], turns[second.ordinal])
            for group in by_group(trajectories)
            for first, second in self.pairs(group)
            if first.ordinal in turns and second.ordinal in turns
        ]
        return [s for number, (first, second) in enumerate(found) for s in sides(first, second, number)]


class SiblingPairs(PairCredit):
    """Siblings as pairs, by the duels between them (`rewards.Duels`); a duel that nobody won, or that could not be
    judged, is no pair."""

    which: Literal["neighbours", "all", "extremes"] = "neighbours"
    """`neighbours`: the first with the second, the third with the fourth, so that pairs are independent, as an analysis
    has them. `all`: each with each. `extremes`: the one that won most against the one that won least (as INPO takes
    pairs of eight answers)."""

    def pairs(self, group: Sequence[Trajectory]) -> list[Pair]:
        if self.which == "extremes":
            best, worst = max(group, key=lambda t: t.reward), min(group, key=lambda t: t.reward)
            return [(best, worst)] if best.reward > worst.reward else []
        two = combinations(group, 2) if self.which == "all" else zip(group[::2], group[1::2], strict=False)
        found: list[Pair] = []
        for first, second in two:
            if DUELS not in first.evidence:
                raise ConfigError(
                    "sibling_pairs goes by the duels between siblings, and the reward has none; set reward.type=duels"
                )
            won = first.evidence[DUELS].get(str(second.ordinal), 0.5)
            if won != 0.5:
                found.append((first, second) if won > 0.5 else (second, first))
        return found
