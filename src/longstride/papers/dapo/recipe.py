"""DAPO on puzzles."""

from longstride.methods import PPO, Mean
from longstride.papers.dapo.method import DynamicSampling, OverlongFiltered, SoftOverlong
from longstride.setups import puzzles

RECIPE = puzzles.recipe(
    "dapo",
    iterations=30,
    sampler=DynamicSampling(rounds=4),
    reward=SoftOverlong(cache=32),
    credit=OverlongFiltered(),
    loss=PPO(clip_high=0.28, aggregation=Mean(over="token")),
)
