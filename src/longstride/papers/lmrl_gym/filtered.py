"""Filtered cloning on the maze: walks to the goal are imitated (see `lmrl_gym`)."""

from longstride.methods import FilteredBC, Reinforce
from longstride.setups import games

RECIPE = games.recipe("lmrl_gym/filtered", credit=FilteredBC(), loss=Reinforce())
