"""LCOM on designs and scores of the user's own: `tasks.data=FILE`."""

from longstride.papers.lcom.method import LatentConservativeModel
from longstride.setups import design

RECIPE = design.recorded("lcom/recorded", LatentConservativeModel(trunk=design.TRUNK))
