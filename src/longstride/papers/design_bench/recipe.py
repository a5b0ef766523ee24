"""COMs on controllers of an environment; `model.type=least_squares` is gradient ascent."""

from longstride.design import ConservativeModel
from longstride.setups import design

RECIPE = design.controllers("design_bench", ConservativeModel(trunk=design.TRUNK))

CLAIM = design.claim(
    RECIPE,
    paper="arXiv 2202.08450, table 2; arXiv 2107.06882",
    what="a conservative model are worth more than those of least squares",
    plain={"type": "least_squares"},
)
