"""MiroThinker on the embedded sites: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.methods import PPO, GroupRelative
from longstride.papers.mirothinker.method import Formatted
from longstride.rollout.context import RecentObservations
from longstride.setups import sites
from longstride.stats import Ordering
from longstride.strategies import Direct

RECIPE = sites.recipe(
    "mirothinker",
    iterations=12,
    group_size=8,
    model="base-wander",
    context=RecentObservations(keep=5),
    reward=Formatted(),
    credit=GroupRelative(),
    loss=PPO(),
    evaluation={"every": 4, "strategies": tuple(Direct(turns=n) for n in (24, 12, 6))},
)

ARM = sites.arm(RECIPE, iterations=8, every=8)
_more = "trained > trained@direct_6_turns"

CLAIM = Claim(
    name="mirothinker",
    paper="arXiv 2511.11793, on interactive scaling",
    statement="Reinforcement learning adds more success in 24 turns than in six, and by the more the harder a task.",
    recipe=ARM,
    arms={"trained": ARM},
    measure="gained_success",
    # the gain of more turns after training, minus that of the start
    expected=Ordering(relations=(f"{_more} by 0.02",)),
    dose=tuple(f"{_more} in gained_success_{tasks}" for tasks in ("easy", "medium", "hard")),
    reported=Ordering(relations=("trained > trained@direct_6_turns in success", "trained > trained@direct_12_turns")),
    seeds=tuple(range(1800, 1812)),
    tuning_seeds=(980, 981),
    grid={"learner.lr": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)},
    tuning={"iterations": 4, "evaluation.every": 4, "evaluation.strategies": [Direct(turns=24).as_data()]},
    tuned_by="success",
    cost="sampled_tokens",
    scale=(-1.0, 1.0),
)

FINDING = "In an earlier form turns were worth nearly as much before training (0.022) as after it (0.028)."
