"""DAPO on puzzles."""

from longstride.methods import PPO, Mean, MixedGroups
from longstride.papers.dapo.method import OverlongFiltered, SoftOverlong
from longstride.rollout import DynamicSampling
from longstride.setups import puzzles

RECIPE = puzzles.recipe(
    "dapo",
    iterations=30,
    sampler=DynamicSampling(rounds=4),
    reward=SoftOverlong(cache=32),
    replay=MixedGroups(by="success"),
    credit=OverlongFiltered(),
    loss=PPO(clip_high=0.28, aggregation=Mean(over="token")),
)
