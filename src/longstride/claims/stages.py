"""What a claim takes: the runs of its tuning, of its pilot and of its own seeds, before any of them is begun."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal

from longstride.claims.claim import Claim, nested
from longstride.claims.tuning import axes

Stage = Literal["tuning", "pilot", "seeds"]


@dataclass(frozen=True, slots=True)
class Load:
    """The runs of a stage."""

    runs: int
    """How many there are, without those that an earlier stage has made."""
    iterations: int
    """Of all of them together."""


def stages(claim: Claim) -> Mapping[Stage, Load]:
    """By stage, what it takes: nothing of tuning and pilot where there are no tuning seeds.

    Raises:
        ConfigError: an arm refuses what it has otherwise while it is tuned.
    """
    seeds, tries = len(claim.tuning_seeds), {arm: _tries(claim, arm) for arm in claim.arms}
    # an arm that is tuned at its full length has its pilot among the runs of its tuning
    fresh = [arm for arm, n in tries.items() if claim.tuning or not n]
    short = {arm: run.replace(**nested(claim.tuning)).iterations for arm, run in claim.arms.items()}
    long = {arm: run.iterations for arm, run in claim.arms.items()}
    return {
        "tuning": Load(seeds * sum(tries.values()), seeds * sum(n * short[arm] for arm, n in tries.items())),
        "pilot": Load(seeds * len(fresh), seeds * sum(long[arm] for arm in fresh)),
        "seeds": Load(len(claim.seeds) * len(long), len(claim.seeds) * sum(long.values())),
    }


def _tries(claim: Claim, arm: str) -> int:
    """Combinations of the grid that an arm is tried under; 0 where it has none."""
    return prod(map(len, found.values())) if (found := axes(claim, arm)) else 0
