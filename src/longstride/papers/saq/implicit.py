"""SAQ with IQL in mazes: no code is valued that the data do not have."""

from longstride.control import AWR, Expectile, ImplicitQ
from longstride.papers.saq.recipe import RECIPE as SAQ
from longstride.papers.saq.recipe import saq
from longstride.setups import maze

_critic = ImplicitQ(trunk=maze.TRUNK, tau=maze.CRITIC.tau, maximiser=Expectile(expectile=0.9))
RECIPE = SAQ.replace(name="saq/implicit", agent=saq(critic=_critic, extraction=AWR(temperature=1 / 3, largest=100.0)))
