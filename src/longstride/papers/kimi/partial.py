"""Kimi k1.5 with answers in pieces: an iteration samples 40 tokens of an answer at most, and what is cut goes on in the
next one. Groups are trained on when all of their answers have ended."""

from longstride.papers.kimi import recipe
from longstride.papers.kimi.method import WholeGroups
from longstride.rewards import TaskReward
from longstride.rollout import PartialRollouts

RECIPE = recipe.RECIPE.replace(
    name="kimi/partial",
    sampler=PartialRollouts(tokens=40),
    replay=WholeGroups(reward=recipe.RECIPE.reward),  # siblings end in different iterations, and are compared then
    reward=TaskReward(),
)
