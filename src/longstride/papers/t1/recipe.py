"""T1 on puzzles: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.engines.base import Sampling
from longstride.methods import KL, GroupRelative, Start
from longstride.methods.kl import MovingAverage
from longstride.papers.t1.method import AnchoredReinforce, Penalised
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

ARM = RECIPE.replace(
    iterations=40,
    episodes_per_iteration=256,
    group_size=32,
    loss={"kl": {"coefficient": 0.5}},
    evaluation={"every": 40, "tasks": 300},
)
_fixed = {"loss": {"kl": {"anchor": Start()}}}
_slower = {f"moving_{decay}": ARM.replace(loss={"kl": {"anchor": {"decay": decay}}}) for decay in (0.99, 0.97)}
"""Anchors that go 0.33 and 0.70 of the way to a policy in 40 updates; with a decay of 0.9 they go 0.99 of it."""

CLAIM = Claim(
    name="t1",
    paper="arXiv 2501.11651, abstract",
    statement="In a long run a policy that is held to a moving average of itself ends above one that is held to its start, "
    "each by its best coefficient.",
    recipe=ARM,
    arms={
        "moving": ARM,
        "fixed": ARM.replace(**_fixed),
        **_slower,
    },
    expected=Ordering(relations=("moving > fixed by 0.03",)),
    # the slower an anchor moves, the nearer it is to the start
    dose=("moving_0.99 > fixed", "moving_0.97 > fixed", "moving > fixed"),
    seeds=(10, 11, 12, 13, 14),
    tuning_seeds=(900, 901),
    grid={"loss.kl.coefficient": (0.0005, 0.005, 0.05, 0.5, 5.0)},
    cost="env_steps",  # an episode is one turn, so arms cost alike
)
