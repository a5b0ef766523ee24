"""ECHO on the embedded sites: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.methods import PPO, Constant, GroupRelative
from longstride.papers.echo.method import EchoPPO, WithObservations
from longstride.setups import sites
from longstride.setups.sites import SHEET
from longstride.stats import Ordering

RECIPE = sites.recipe(
    "echo",
    iterations=16,
    group_size=8,
    credit=WithObservations(),
    loss=EchoPPO(aggregation=Constant(length=24, per="episode")),
    learner={"batch_samples": 768},
)

ARM = sites.arm(RECIPE, every=1)
GRPO = {
    "credit": GroupRelative(),
    "loss": PPO(aggregation=Constant(length=24, per="episode")),
    # each turn but the last has an observation that is a sample too: half as many samples are as many episodes
    "learner": {"batch_samples": 384},
}

CLAIM = Claim(
    name="echo",
    paper="arXiv 2605.24517, abstract",
    statement="By equal environment steps, predicting observations beside GRPO ends with more success than GRPO alone.",
    recipe=ARM,
    arms={
        "echo": ARM,
        "grpo": ARM.replace(**GRPO),
        "sheet_echo": ARM.replace(tasks=SHEET),
        "sheet_grpo": ARM.replace(tasks=SHEET, **GRPO),
    },
    expected=Ordering(relations=("echo > grpo by 0.03",)),
    # everything is on the first page of a sheet: there is nothing to predict that an answer depends on
    control=Ordering(relations=("sheet_echo > sheet_grpo by 0.03",)),
    seeds=tuple(range(300, 308)),
    tuning_seeds=(900, 901),
    grid={"learner.lr": (5e-5, 1e-4, 3e-4, 6e-4, 1.2e-3)},
    tuning={"iterations": 4, "evaluation.every": 4},
    cost="env_steps",
    equal_cost=True,
)
