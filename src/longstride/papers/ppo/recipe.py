"""PPO on puzzles."""

from longstride.learner.critics import TurnValue
from longstride.methods import PPO
from longstride.methods.advantages import GAE
from longstride.setups import puzzles

RECIPE = puzzles.recipe(
    "ppo",
    credit=GAE(values="critic", lam=0.95, whiten=True),
    critic=TurnValue(warmup=1),
    loss=PPO(dual_clip=3.0),
)
