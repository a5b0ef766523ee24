"""REINFORCE++ on puzzles."""

from longstride.methods import PPO
from longstride.methods.advantages import GAE
from longstride.setups import puzzles

RECIPE = puzzles.recipe("reinforce_pp", credit=GAE(whiten=True), loss=PPO())
