"""Online difficulty filtering on puzzles."""

from longstride.methods import PPO, GroupRelative
from longstride.papers.difficulty_filter.method import InBand
from longstride.rollout import DynamicSampling
from longstride.setups import puzzles

RECIPE = puzzles.recipe(
    "difficulty_filter",
    iterations=30,
    sampler=DynamicSampling(rounds=4),
    replay=InBand(),
    credit=GroupRelative(),
    loss=PPO(),
)
