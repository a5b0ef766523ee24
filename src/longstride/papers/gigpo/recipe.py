"""GiGPO on the embedded sites."""

from longstride.methods import KL, PPO, Mean
from longstride.papers.gigpo.method import StepRelative
from longstride.setups import sites

RECIPE = sites.recipe(
    "gigpo",
    group_size=8,
    credit=StepRelative(normalize="none"),
    loss=PPO(kl=KL(coefficient=0.01), aggregation=Mean(over="token")),
)
