"""Monte Carlo returns on the maze: `lmrl_gym` with the values of the stored policy (see `lmrl_gym`)."""

from longstride.methods import AdvantageWeighted, Reinforce
from longstride.papers.lmrl_gym.method import ReturnQ
from longstride.setups import games

RECIPE = games.recipe(
    "lmrl_gym/returns",
    credit=AdvantageWeighted(),
    loss=Reinforce(),
    critic=ReturnQ(encoder="base-trials", frozen=False, batch_episodes=16, steps=200),
)
