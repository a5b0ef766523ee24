"""Lite PPO on enumerable answers: the deviation of the batch against that of the group."""

from longstride.claims.claim import Claim
from longstride.exact.answers import SEEDS, Answers, Grouped
from longstride.exact.learner import recipe
from longstride.methods import PPO, GroupRelative
from longstride.stats import Ordering

HARD = Answers(tasks=tuple((chance,) for chance in (0.01, 0.02, 0.05, 0.1) * 4), vocabulary=32)
MIXED = HARD.replace(tasks=tuple((chance,) for chance in (0.05, 0.3, 0.6, 0.9) * 4))

RECIPE = recipe(
    "lite_ppo/exact", HARD, Grouped(credit=GroupRelative(normalize="batch_std"), loss=PPO(), rate=4.0), iterations=30
)

_group = {"credit": GroupRelative(normalize="std")}

CLAIM = Claim(
    name="lite_ppo/exact",
    paper="arXiv 2508.08221, sections 4.1 and 5",
    statement="Where tasks are alike in difficulty, and hard, the deviation of the batch ends with more success than "
    "that of the group; but not if steps are as long.",
    recipe=RECIPE,
    arms={
        "batch": RECIPE,
        "group": RECIPE.replace(method=_group),
        "longer_group": RECIPE.replace(method={"rate": 6.4, **_group}),
        "mixed_batch": RECIPE.replace(problem=MIXED),
        "mixed_group": RECIPE.replace(problem=MIXED, method=_group),
    },
    expected=Ordering(relations=("batch > group by 0.03",)),
    # mixed tasks have a batch whose deviation is that of a mixed group; longer steps take the cause away
    control=Ordering(relations=("mixed_batch > mixed_group by 0.03", "batch > longer_group by 0.03")),
    seeds=SEEDS,
)
