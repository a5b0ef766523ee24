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
