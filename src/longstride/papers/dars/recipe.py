"""DARS-B on puzzles: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.methods import PPO, GroupRelative, MixedGroups
from longstride.papers.dars.method import DifficultyAdaptive
from longstride.rollout.planning import Groups
from longstride.setups import puzzles
from longstride.setups.puzzles import ALIKE
from longstride.stats import Ordering

BREADTH = 100_000
"""Samples of an optimiser step: all that an iteration has."""

RECIPE = puzzles.recipe(
    "dars",
    iterations=30,
    sampler=DifficultyAdaptive(target="hardness", most=32),
    replay=MixedGroups(),
    credit=GroupRelative(normalize="none"),
    loss=PPO(),
    learner={"lr": 5e-4, "batch_samples": BREADTH},
)

ARM = RECIPE.replace(
    iterations=16,
    episodes_per_iteration=128,
    learner={"batch_samples": 64, "lr": 3e-4},
    evaluation={"every": 16, "tasks": 100, "attempts": 32},
)

CLAIM = Claim(
    name="dars",
    paper="arXiv 2508.13755, abstract",
    statement="More rollouts for hard tasks raise pass@k more than more rollouts for all.",
    recipe=ARM,
    arms={
        "dars": ARM,
        "uniform": ARM.replace(sampler=Groups()),
        "uniform_24": ARM.replace(sampler=Groups(), group_size=24, episodes_per_iteration=384),
        "alike_dars": ARM.replace(tasks=ALIKE),
        "alike_uniform": ARM.replace(tasks=ALIKE, sampler=Groups()),
    },
    measure="pass@32",
    expected=Ordering(relations=("dars > uniform",)),
    # of tasks of one middling difficulty none is drowned
    control=Ordering(relations=("alike_dars > alike_uniform by 0.03",)),
    reported=Ordering(relations=("dars > uniform_24",)),
    seeds=(20, 21, 22),
)
