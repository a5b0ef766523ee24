"""T1 on puzzles: the recipe and its claim."""

from typing import Any

from longstride.claims.claim import Claim
from longstride.engines.base import Sampling
from longstride.methods import KL, GroupRelative, Start
from longstride.methods.kl import MovingAverage
from longstride.papers.t1.method import AnchoredReinforce, Penalised
from longstride.run.recipe import Recipe
from longstride.setups import puzzles
from longstride.stats import Ordering

RECIPE = puzzles.recipe(
    "t1",
    iterations=20,
    episodes_per_iteration=1024,
    group_size=64,
    sampling=Sampling(temperature=1.2),
    reward=Penalised(),
    credit=GroupRelative(baseline="leave_one_out", normalize="none"),
    loss=AnchoredReinforce(entropy=0.001, kl=KL(coefficient=0.05, anchor=MovingAverage(decay=0.9))),
    learner={"lr": 1e-3, "epochs": 1, "batch_samples": 100_000},
    evaluation={"sampling": Sampling()},
)

_HELD = {"quarter": 0.25, "half": 0.5, "whole": 1.0}
"""Coefficients of the KL term: how strongly both are held."""


def _held(coefficient: float, **anchor: Any) -> Recipe:
    return RECIPE.replace(
        iterations=24,
        episodes_per_iteration=256,
        group_size=32,
        loss={"kl": {"coefficient": coefficient, **anchor}},
        evaluation={"every": 24, "tasks": 300},
    )


ARM = _held(_HELD["whole"])

CLAIM = Claim(
    name="t1",
    paper="arXiv 2501.11651, abstract",
    statement="Held by the same coefficient, a policy that is held to a moving average of itself ends above one that is held "
    "to its start, each at its own best rate, and by the more the larger the coefficient is.",
    recipe=ARM,
    arms={f"moving_{of}": _held(coefficient) for of, coefficient in _HELD.items()}
    | {f"fixed_{of}": _held(coefficient, anchor=Start()) for of, coefficient in _HELD.items()},
    expected=Ordering(relations=("moving_whole > fixed_whole by 0.03",)),
    # held by less, neither feels its anchor
    dose=tuple(f"moving_{of} > fixed_{of}" for of in _HELD),
    seeds=tuple(range(1010, 1022)),
    tuning_seeds=(900, 901),
    grid={"learner.lr": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)},
    cost="env_steps",  # an episode is one turn, so arms cost alike
)
