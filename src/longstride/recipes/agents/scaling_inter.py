"""ScalingInter-RL: GRPO under a horizon that grows in stages. Xi et al., 2025, "AgentGym-RL", arXiv 2509.08755.

First few turns, to learn to use what is known; then more, to explore. At many turns from the start training is reported to collapse after
a fast beginning, at few it stays where they end.

| place | choice | paper and released scripts | here |
|---|---|---|---|
| plan | groups of one task | 8 episodes (4 on WebArena), 32 tasks | 8, 32 |
| plan | `StepSchedule` | WebArena 8, 12, 15 turns, every 80 updates; BabyAI 6, 13, 20, every 100 | 8, 16, 24, every 8; tests at 24 |
| roll out | sampling | temperature 1, 512 tokens a turn | temperature 1 |
| score | `TaskReward` | the environment's | programmatic, exact |
| credit | `GroupRelative` | (r - mean) / std over the group | the same |
| update | `PPO` | clip 0.2, mean over tokens, KL 1e-3 to the start | the same |
| update | passes, rate | minibatches of 8 prompts, 2 epochs, 1e-6 | 2 epochs in 4 minibatches and more, 3e-4 |

Deviations: a model of about a million parameters on embedded sites. The rate was chosen of 3e-4, 5e-4 and 1e-3 by held-out success: at
5e-4 and above ever more actions become invalid after some 10 to 20 iterations, and what was won is lost.
"""

from typing import Annotated

from pydantic import Field

from longstride.claims.claim import Claim
from longstride.core.numbers import Count
from longstride.core.task import Difficulty
from longstride.curriculum import Schedule
from longstride.methods import KL, PPO, GroupRelative, Mean
from longstride.recipes.setups import sites
from longstride.recipes.setups.sites import LONG, MEDIUM, SHEET, SHORT
from longstride.stats import Ordering


class StepSchedule(Schedule):
    """h(i) = steps[min(floor(i / every), n - 1)] (section 3; WebArena: [8, 12, 15] every 80).

    As in the released scheduler the division is of the update's own number, so the first step lasts `every` - 1 updates
    counted from 1.
    """

    steps: Annotated[tuple[Count, ...], Field(min_length=1)]
    """The limits, one after the other."""
    every: Count
    """Updates between two of them."""

    def at(self, iteration: int, difficulty: Difficulty = "easy") -> int:
        return self.steps[min(iteration // self.every, len(self.steps) - 1)]


RECIPE = sites.recipe(
    "scaling_inter",
    iterations=24,
    group_size=8,
    budget={"turns": StepSchedule(steps=(SHORT, MEDIUM, LONG), every=8)},
    credit=GroupRelative(),
    loss=PPO(kl=KL(coefficient=1e-3), aggregation=Mean(over="token")),
)

ARM = sites.arm(RECIPE).replace(budget={"turns": StepSchedule(steps=(SHORT, MEDIUM, LONG), every=3)})

CLAIM = Claim(
    name="scaling_inter",
    paper="arXiv 2509.08755, table 1",
    statement="Growing the horizon in stages beats training at a fixed short horizon.",
    recipe=ARM,
    arms={
        "staged": ARM,
        "fixed_short": ARM.replace(budget={"turns": SHORT}),
        "fixed_long": ARM.replace(budget={"turns": LONG}),
        "sheet_staged": ARM.replace(tasks=SHEET),
        "sheet_fixed_short": ARM.replace(tasks=SHEET, budget={"turns": SHORT}),
    },
    expected=Ordering(relations=("staged > fixed_short by 0.02",)),
    # everything is on the first page of a sheet: there is nothing to explore, so the longer horizon must not pay
    control=Ordering(relations=("sheet_staged > sheet_fixed_short by 0.05",)),
    reported=Ordering(relations=("staged > fixed_long by 0.02",)),
    seeds=(0, 1, 2, 3, 4),
)
