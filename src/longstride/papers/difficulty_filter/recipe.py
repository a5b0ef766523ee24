"""Online difficulty filtering on puzzles."""

from longstride.methods import PPO
from longstride.papers.difficulty_filter.method import Balanced, InBand
from longstride.setups import puzzles

RECIPE = puzzles.recipe("difficulty_filter", iterations=30, sampler=Balanced(), credit=InBand(), loss=PPO())
