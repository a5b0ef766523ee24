"""Dr. GRPO on puzzles."""

from longstride.methods import PPO, Constant, GroupRelative
from longstride.setups import puzzles

RECIPE = puzzles.recipe(
    "dr_grpo",
    credit=GroupRelative(normalize="none"),
    loss=PPO(aggregation=Constant(length=puzzles.TOKENS, per="episode")),
)
