"""RLOO on puzzles."""

from longstride.methods import Constant, GroupRelative, Reinforce
from longstride.setups import puzzles

RECIPE = puzzles.recipe(
    "rloo",
    credit=GroupRelative(baseline="leave_one_out", normalize="none"),
    loss=Reinforce(aggregation=Constant(per="episode")),
    learner={"epochs": 1},
)
