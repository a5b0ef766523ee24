"""LaMer on puzzles."""

from longstride.methods import PPO, GroupRelative
from longstride.methods.trials import TrialReturn
from longstride.rollout.context import TrialHistory
from longstride.rollout.trial import Trial
from longstride.setups import puzzles

RECIPE = puzzles.recipe(
    "lamer",
    episodes_per_iteration=240,
    trial=Trial(episodes=3, until_success=True),
    context=TrialHistory(),
    credit=TrialReturn(credit=GroupRelative(), discount=0.6),
    loss=PPO(),
)
