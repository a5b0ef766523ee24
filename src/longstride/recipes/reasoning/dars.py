"""DARS-B: more rollouts for hard tasks, and full batches. Yang et al., 2025, arXiv 2508.13755.

What a group adds to the gradient grows with p (1 - p): tasks of middling difficulty drown the hard ones, whose success
is what widens what the model can do at all. So a first group shows how hard a task is, and hard ones are played more
often; and updates take the whole batch, for noise in them costs exploration.

| place | choice | paper and released code (Qwen2.5-Math) | here |
|---|---|---|---|
| plan | `DifficultyAdaptive` | 8 answers, then more, 64 at most (hardness weighted) | 8, then more, 32 at most |
| plan | tasks | 3,072 an update | 32 |
| roll out | sampling | temperature 1, 3,072 tokens | temperature 1, 160 tokens |
| score | `TaskReward` | right or wrong | the same |
| credit | `GroupRelative`, mixed groups only | r - mean | the same |
| update | `PPO` over the whole batch | two passes, clip 0.2, no KL; tokens summed, divided by a constant | the same, mean over tokens |
| update | rate | 5e-6 | 5e-4, for two steps an iteration (1e-3 lost what it had won) |

Deviations: model and tasks are those of `grpo`; the release's entropy bonus, 0.001 by default, is left out. Both stages
are one group for the advantage, as in the release.
"""

from math import ceil
from typing import Literal

from longstride.claims.claim import Claim
from longstride.core.numbers import Count
from longstride.methods import PPO, GroupRelative
from longstride.recipes.setups import puzzles
from longstride.recipes.setups.puzzles import ALIKE
from longstride.rollout.episode import Plan
from longstride.rollout.planning import Groups, Planner, Sampler, Stages, by_group
from longstride.stats import Ordering


class DifficultyAdaptive(Sampler):
    """Groups whose first episodes show a hard task get more, so that hard tasks are not drowned by those of middling
    difficulty.

    The sum of |A| over a group of N episodes with accuracy a is N S, S = 2 a (1 - a), for advantages that are not
    divided by a deviation. More are played until it is N / 2, as at a = 1/2 (`equal`), or N (1 - a) (`hardness`).
    """

    target: Literal["equal", "hardness"] = "hardness"
    """What hard tasks are raised to: the paper's equal treatment, or hardness weighted."""
    most: Count = 64
    """Most episodes of a group; the paper has 32 with `equal` and 64 with `hardness`."""

    def extra(self, n: int, solved: int) -> int:
        """How many more for a group of `n` episodes of which `solved` were; a group without any counts as half a
        success."""
        accuracy = max(solved, 0.5) / n
        if accuracy >= 0.5:
            return 0
        each = 2 * accuracy * (1 - accuracy)
        wanted = 0.5 * n if self.target == "equal" else (1 - accuracy) * n
        return max(0, min(ceil((wanted - n * each) / each), self.most - n))

    def plan(self, planner: Planner) -> Stages:
        first = yield [plan for task in planner.tasks(planner.groups) for plan in planner.group(task)]
        more: list[Plan] = []
        for group in by_group(first):
            if extra := self.extra(len(group), sum(t.success for t in group)):
                more += planner.more(group[0], extra)
        return first + (yield more)


BREADTH = 100_000
"""Samples of an optimiser step: all that an iteration has."""

RECIPE = puzzles.recipe(
    "dars",
    iterations=30,
    sampler=DifficultyAdaptive(target="hardness", most=32),
    credit=GroupRelative(normalize="none", drop_zero_variance=True),
    loss=PPO(),
    learner={"lr": 5e-4, "batch_samples": BREADTH},
)

ARM = RECIPE.replace(
    iterations=16,
    episodes_per_iteration=128,
    learner={"batch_samples": 64, "lr": 3e-4},
    evaluation={"every": 16, "tasks": 100, "samples": 32},
)

CLAIM = Claim(
    name="dars",
    paper="arXiv 2508.13755, abstract",
    statement="More rollouts for hard tasks raise pass@k more than more rollouts for all.",
    recipe=ARM,
    arms={
        "dars": ARM,
        "uniform": ARM.replace(sampler=Groups()),
        "uniform_24": ARM.replace(sampler=Groups(), group_size=24, episodes_per_iteration=384),
        "alike_dars": ARM.replace(tasks=ALIKE),
        "alike_uniform": ARM.replace(tasks=ALIKE, sampler=Groups()),
    },
    measure="pass@32",
    expected=Ordering(relations=("dars > uniform",)),
    # of tasks of one middling difficulty none is drowned
    control=Ordering(relations=("alike_dars > alike_uniform by 0.03",)),
    reported=Ordering(relations=("dars > uniform_24",)),
    seeds=(20, 21, 22),
)
