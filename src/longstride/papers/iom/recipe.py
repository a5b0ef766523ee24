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

FINDING = (
    "Invariant features lift the median of the proposals by .04, in 30 % of the worlds by the margin, and lower the best one by "
    ".06. The lead does not grow with the length of a step: at the longest it is gone."
)
