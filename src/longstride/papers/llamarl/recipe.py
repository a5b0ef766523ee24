"""LlamaRL's importance weight on puzzles whose answers are several versions old: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.methods import GroupRelative, Mean, Reinforce
from longstride.methods.ratios import CISPO
from longstride.rollout.scheduler import PoolConfig
from longstride.setups import puzzles
from longstride.stats import Ordering

RECIPE = puzzles.recipe(
    "llamarl",
    pool=PoolConfig(staleness=8),
    credit=GroupRelative(normalize="none"),
    loss=CISPO(aggregation=Mean(over="token"), max=4.0),
    learner={"epochs": 1},
)

ARM = puzzles.arm(RECIPE).replace(iterations=24, evaluation={"every": 24, "start": False})
_uncorrected = {"loss": Reinforce(aggregation=Mean(over="token"))}
_by = {n: ARM.replace(pool={"staleness": n}) for n in (1, 2, 4)}

CLAIM = Claim(
    name="llamarl",
    paper="arXiv 2505.24034, section 6",
    statement="Trained on answers that are up to four versions old, a policy ends with more success by AIPO than by the "
    "uncorrected policy gradient, each at its own best rate.",
    recipe=ARM,
    arms={
        **{f"aipo_{n}": arm for n, arm in _by.items()},
        **{f"uncorrected_{n}": arm.replace(**_uncorrected) for n, arm in _by.items()},
    },
    expected=Ordering(relations=("aipo_4 > uncorrected_4 by 0.02",)),
    # the older its samples, the more there is to correct
    dose=tuple(f"aipo_{n} > uncorrected_{n}" for n in _by),
    seeds=tuple(range(1200, 1224)),
    tuning_seeds=(920, 921),
    grid={"learner.lr": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)},
    cost="env_steps",
)
