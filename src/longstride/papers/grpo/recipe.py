"""GRPO on puzzles: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.methods import PPO, GroupRelative, Mean
from longstride.setups import puzzles
from longstride.setups.puzzles import ALIKE
from longstride.stats import Ordering

RECIPE = puzzles.recipe("grpo", credit=GroupRelative(), loss=PPO(aggregation=Mean(over="episode")))
ARM = puzzles.arm(RECIPE).replace(credit={"normalize": "none"})

CLAIM = Claim(
    name="grpo",
    paper="arXiv 2402.03300, section 4.1",
    statement="Where tasks differ in difficulty, the mean of a task's own group is the better baseline: better than the "
    "mean of the batch, and better than none.",
    recipe=ARM,
    arms={
        "group": ARM,
        "batch": ARM.replace(credit={"baseline": "batch"}),
        "none": ARM.replace(credit={"baseline": "none"}),
        "alike_group": ARM.replace(tasks=ALIKE),
        "alike_batch": ARM.replace(tasks=ALIKE, credit={"baseline": "batch"}),
    },
    expected=Ordering(relations=("group > batch",)),
    # where all tasks are alike, the batch knows their mean as well, from more episodes
    control=Ordering(relations=("alike_group > alike_batch by 0.03",)),
    reported=Ordering(relations=("group > none",)),
)
