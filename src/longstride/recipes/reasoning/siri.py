"""SIRI: reinforcement learning under a length limit that goes down and up. Wen et al., 2025, arXiv 2509.25176.

Under a tight limit only an early answer earns anything, so the model learns to think in few tokens; under a wide
one it learns to search. Taken in turns, each cycle begins from a denser policy than the one before.

| place | choice | paper (section 5.1: R1-Distill-Qwen-1.5B) | here |
|---|---|---|---|
| plan | groups of one task | 128 prompts an update | 32 tasks, 8 answers each |
| plan | `Cosine` over tokens | 16,384 down to 8,192 and back, cycles of 640 updates | 128 to 48, cycles of 12 iterations |
| roll out | sampling | temperature 1 | the same |
| score | `TaskReward` | 1 if the answer within the limit is right | the same: what is cut has no answer |
| credit | `GroupRelative` | GRPO | (r - mean) / deviation |
| update | `PPO` | clip 0.2 and 0.28, no KL | the same, mean over tokens |
| update | rate | 1e-6 | 3e-4, as `grpo` |

Deviations: model and tasks are those of `grpo`; three cycles in all, as in the paper. The released models were
trained with the cosine; stair and stair-cosine, which the paper compares with it, are arms of the claim. The limit binds
what is sampled in training; evaluation allows 160 tokens always, and 64 beside it.
"""

from abc import abstractmethod
from math import cos, pi
from typing import Annotated, Self

from pydantic import Field, model_validator

from longstride.claims.claim import Claim
from longstride.core.numbers import Count
from longstride.core.task import Difficulty
from longstride.curriculum import Schedule
from longstride.methods import PPO, GroupRelative, Mean
from longstride.recipes.setups import puzzles
from longstride.recipes.setups.puzzles import ALIKE
from longstride.stats import Ordering
from longstride.strategies import Direct


class Cyclic(Schedule):
    """Family of limits that go down and up again. The first iteration stands at the beginning of a cycle; a limit stays
    between `low` and `high`."""

    high: Count
    """At the beginning, the middle of an expansion."""
    low: Count
    """Half a cycle later."""
    period: Annotated[int, Field(ge=2)]
    """Iterations of a cycle."""

    @model_validator(mode="after")
    def _falls(self) -> Self:
        if self.high < self.low:
            raise ValueError(f"high must be at least low ({self.low}), got {self.high}")
        return self

    def at(self, iteration: int, difficulty: Difficulty = "easy") -> int:
        share = self._share(((iteration - 1) % self.period) / self.period)
        return round(self.low + (self.high - self.low) * share)

    @abstractmethod
    def _share(self, phase: float) -> float:
        """How far above `low`, 0 to 1, at a phase in [0, 1)."""


class Cosine(Cyclic):
    """A cosine from `high` to `low` and back."""

    def _share(self, phase: float) -> float:
        return (1 + cos(2 * pi * phase)) / 2


class Stair(Cyclic):
    """`high` for half a cycle, `low` for the other half."""

    def _share(self, phase: float) -> float:
        return float(phase < 0.5)


class StairCosine(Cyclic):
    """A quarter of the cycle at `high`, around its beginning, a quarter at `low`, and half a cosine on the way down and
    on the way up."""

    def _share(self, phase: float) -> float:
        from_start = min(phase, 1 - phase)
        return (1 + cos(2 * pi * min(max(2 * from_start - 0.25, 0.0), 0.5))) / 2


LONG, SHORT, CYCLE = 128, 48, 12
"""Tokens of an answer at the two ends of a cycle, and its iterations."""

RECIPE = puzzles.recipe(
    "siri",
    iterations=3 * CYCLE,
    budget={"tokens": Cosine(high=LONG, low=SHORT, period=CYCLE)},
    credit=GroupRelative(),
    loss=PPO(clip_high=0.28, aggregation=Mean(over="token")),
    evaluation={"every": CYCLE // 2, "strategies": (Direct(), Direct(tokens=64))},
)


def _within(cycle: type[Cyclic]) -> dict[str, Cyclic]:
    """The change of the budget to a cycle of a claim's length."""
    return {"tokens": cycle(high=LONG, low=SHORT, period=8)}


ARM = puzzles.arm(RECIPE).replace(budget=_within(Cosine))

CLAIM = Claim(
    name="siri",
    paper="arXiv 2509.25176, abstract and figure 1",
    statement="A limit that goes down and up ends more accurate within few tokens than a constant long one, and more "
    "accurate with many than a constant short one.",
    recipe=ARM,
    arms={
        "siri": ARM,
        "stair": ARM.replace(budget=_within(Stair)),
        "stair_cosine": ARM.replace(budget=_within(StairCosine)),
        "long": ARM.replace(budget={"tokens": LONG}),
        "short": ARM.replace(budget={"tokens": SHORT}),
        "alike_siri": ARM.replace(tasks=ALIKE),
        "alike_long": ARM.replace(tasks=ALIKE, budget={"tokens": LONG}),
    },
    expected=Ordering(relations=("siri@direct_64_tokens > long@direct_64_tokens",)),
    # two steps need 20 tokens: no limit binds
    control=Ordering(relations=("alike_siri > alike_long by 0.03",)),
    reported=Ordering(relations=("siri > short",)),
)
