"""BroRL on puzzles: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.methods import PPO, Constant, GroupRelative, Mean, MixedGroups, Reinforce
from longstride.papers.brorl.method import DistinctMass, broadened
from longstride.run.recipe import Recipe
from longstride.setups import puzzles
from longstride.stats import Ordering

NARROW, BROAD = 16, 512
"""Rollouts a prompt, before and after."""

BASE = puzzles.recipe(
    "brorl",
    iterations=128,
    episodes_per_iteration=8 * NARROW,
    group_size=NARROW,
    replay=MixedGroups(),
    credit=GroupRelative(),
    loss=PPO(clip_high=0.28, aggregation=Mean(over="token")),
    learner={"lr": 3.5e-4, "warmup_steps": 0, "epochs": 1, "batch_samples": 32},
    evaluation={"every": 32},
)
"""What a run before it did: DAPO's clip and filter, 16 rollouts of 8 prompts an iteration."""

RECIPE = broadened(BASE, BROAD)

_arm = BASE.replace(iterations=24, evaluation={"every": 24, "tasks": 600})


def _broad(rollouts: int) -> Recipe:
    """An arm of as many iterations of as many steps, with more rollouts of each prompt."""
    factor = rollouts // NARROW
    return _arm.replace(
        group_size=rollouts,
        episodes_per_iteration=factor * _arm.episodes_per_iteration,
        learner={"batch_samples": factor * _arm.learner.batch_samples},
    )


_distinct = {"credit": DistinctMass(), "loss": Reinforce(aggregation=Constant(length=puzzles.TOKENS, per="episode"))}

CLAIM = Claim(
    name="brorl",
    paper="arXiv 2510.01180, sections 3 and 4",
    statement="For as many updates of eight prompts each, 128 rollouts of a prompt end with more success than 16, each at its own "
    "best rate, and the more rollouts, the more.",
    recipe=_arm,
    arms={
        **{f"rollouts_{n}": _broad(n) for n in (NARROW, 32, 64, 128)},
        "distinct_128": _broad(128).replace(**_distinct),
        f"distinct_{NARROW}": _arm.replace(**_distinct),
    },
    expected=Ordering(relations=("rollouts_128 > rollouts_16 by 0.02",)),
    # the broader, the better
    dose=tuple(f"rollouts_{n} > rollouts_16" for n in (32, 64, 128)),
    reported=Ordering(relations=("distinct_128 > distinct_16",)),
    seeds=tuple(range(1200, 1212)),
    tuning_seeds=(920, 921),
    grid={"learner.lr": (1e-4, 3.5e-4, 1e-3, 3e-3, 1e-2)},
    cost="iterations",
)
