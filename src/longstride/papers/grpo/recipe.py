"""GRPO on puzzles: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.envs.puzzles import ModularChain
from longstride.methods import PPO, GroupRelative, Mean
from longstride.setups import puzzles
from longstride.setups.puzzles import SPREAD
from longstride.stats import Ordering

RECIPE = puzzles.recipe("grpo", credit=GroupRelative(), loss=PPO(aggregation=Mean(over="episode")))
ARM = puzzles.arm(RECIPE).replace(credit={"normalize": "none"})

CLAIM = Claim(
    name="grpo",
    paper="arXiv 2402.03300, section 4.1",
    statement="Where tasks differ in difficulty, the mean of a task's own group is a better baseline than the mean of the batch, "
    "each at its own best rate, and by the more the more they differ.",
    recipe=ARM,
    arms={
        f"{of}_{name}": ARM.replace(tasks=ModularChain(lengths=lengths), credit={"baseline": baseline})
        for of, lengths in SPREAD.items()
        for name, baseline in (("group", "mean"), ("batch", "batch"))
    },
    expected=Ordering(relations=("wide_group > wide_batch by 0.02",)),
    # where all tasks are alike, the batch knows their mean as well, from more episodes
    dose=tuple(f"{of}_group > {of}_batch" for of in SPREAD),
    seeds=tuple(range(1300, 1312)),
    tuning_seeds=(920, 921),
    grid={"learner.lr": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)},
    tuning={"iterations": 8, "evaluation.tasks": 400},
    cost="env_steps",
)
