"""Lite PPO on puzzles of unequal difficulty: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.methods import PPO, GroupRelative, Mean
from longstride.setups import puzzles
from longstride.setups.puzzles import ALIKE
from longstride.stats import Ordering

RECIPE = puzzles.recipe(
    "lite_ppo", credit=GroupRelative(normalize="batch_std"), loss=PPO(aggregation=Mean(over="token"))
)

ARM = puzzles.arm(RECIPE)
GRPO = {"credit": GroupRelative(normalize="std"), "loss": PPO(aggregation=Mean(over="sequence"))}

CLAIM = Claim(
    name="lite_ppo",
    paper="arXiv 2508.08221, section 5",
    statement="On puzzles of unequal difficulty, the deviation of the batch and a mean over tokens end with more success "
    "than GRPO's deviation of the group and mean over answers, each at its own best rate.",
    recipe=ARM,
    arms={
        "lite_ppo": ARM,
        "grpo": ARM.replace(**GRPO),
        "batch_deviation": ARM.replace(loss=GRPO["loss"]),
        "token_mean": ARM.replace(credit=GRPO["credit"]),
        "alike_lite_ppo": ARM.replace(tasks=ALIKE),
        "alike_grpo": ARM.replace(tasks=ALIKE, **GRPO),
    },
    expected=Ordering(relations=("lite_ppo > grpo by 0.02",)),
    # tasks of one difficulty and one length have groups of one deviation, and answers of one number of tokens
    control=Ordering(relations=("alike_lite_ppo > alike_grpo by 0.02",)),
    reported=Ordering(relations=("batch_deviation > grpo", "token_mean > grpo")),
    seeds=tuple(range(1200, 1212)),
    tuning_seeds=(920, 921),
    grid={"learner.lr": (3e-5, 1e-4, 3e-4, 6e-4, 1.2e-3)},
    tuning={"iterations": 8},
    cost="env_steps",
)
