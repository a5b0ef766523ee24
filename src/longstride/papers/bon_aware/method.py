"""Credit for the chance that one of N answers is right (`PassAtN`)."""

from collections.abc import Sequence
from math import comb

from longstride.core.errors import ConfigError
from longstride.core.numbers import Count
from longstride.core.trajectory import Trajectory, by_group
from longstride.methods import Advantage, Credit


class PassAtN(Credit):
    """The advantage of an episode for the chance that one of `n` solves the task.

    A = n w (r - b): w is the share of sets of n - 1 other episodes of its group of which none succeeded, b the mean
    reward of the others. Neither depends on the episode, so for rewards of 0 and 1 the expected gradient of a group is
    exactly that of 1 - f^n. `n` = 1 is `leave_one_out`.
    """

    n: Count = 16
    """Answers that are drawn at test time; a group must have as many or more. One that lost some to failures of its
    environments is left out."""

    def advantages(self, played: Sequence[Trajectory]) -> Sequence[Sequence[Advantage]]:
        found: dict[int, float] = {}
        groups, least = by_group(played), max(self.n, 2)
        if groups and (largest := max(map(len, groups))) < least:
            raise ConfigError(f"pass_at_n with n = {self.n} needs groups of {least} or more, got {largest}")
        for group in groups:
            others, total = len(group) - 1, sum(t.reward for t in group)
            if others + 1 < least:
                continue
            fails = sum(not t.success for t in group)
            for t in group:
                weight = self.n * comb(fails - (not t.success), self.n - 1) / comb(others, self.n - 1)
                found[t.ordinal] = weight * (t.reward - (total - t.reward) / others)
        return [[found.get(t.ordinal)] * t.length for t in played]
