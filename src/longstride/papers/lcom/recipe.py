"""LCOM on controllers of an environment."""

from longstride.papers.lcom.method import LatentConservativeModel
from longstride.setups import design

RECIPE = design.controllers("lcom", LatentConservativeModel(trunk=design.TRUNK))

CLAIM = design.claim(
    RECIPE,
    paper="arXiv 2310.10056, abstract",
    what="a conservative model of latent vectors are worth more than those of a plain one",
    plain={"type": "longstride.papers.lcom.method:LatentModel"},
)

FINDING = (
    "The conservative model overrates its proposals far less (by -.16 against .54), and at the longest step it does not overrate them "
    "at all where the plain one does by 3.1. But its proposals are worth .07 less in the median (.18 against .26), at every step."
)
