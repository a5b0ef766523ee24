"""ECHO on the embedded sites: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.methods import PPO, Constant, GroupRelative
from longstride.papers.echo.method import EchoPPO, WithObservations
from longstride.setups import sites
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

_LESS = {"tenth": 0.005, "half": 0.025}
"""Weights of an observation, of the 0.05 that the recipe has."""

CLAIM = Claim(
    name="echo",
    paper="arXiv 2605.24517, abstract",
    statement="By equal environment steps, predicting observations beside GRPO ends with more success than GRPO alone.",
    recipe=ARM,
    arms={
        "echo": ARM,
        "grpo": ARM.replace(**GRPO),
        **{f"echo_{of}": ARM.replace(credit={"weight": weight}) for of, weight in _LESS.items()},
    },
    expected=Ordering(relations=("echo > grpo by 0.03",)),
    # the less observations weigh, the nearer it is to GRPO
    dose=(*(f"echo_{of} > grpo" for of in _LESS), "echo > grpo"),
    seeds=tuple(range(300, 308)),
    tuning_seeds=(900, 901),
    grid={"learner.lr": (5e-5, 1e-4, 3e-4, 6e-4, 1.2e-3)},
    tuning={"iterations": 4, "evaluation.every": 4},
    cost="env_steps",
    equal_cost=True,
)
