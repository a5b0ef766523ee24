"""IOM on controllers of an environment."""

from longstride.papers.iom.method import InvariantModel
from longstride.setups import design

RECIPE = design.controllers("iom", InvariantModel(trunk=design.TRUNK))

CLAIM = design.claim(
    RECIPE,
    paper="arXiv 2211.11349, abstract and table 1",
    what="a model with invariant features are worth more than those of the same model without",
    plain={"weight": 0.0},
)
