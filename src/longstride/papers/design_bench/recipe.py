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

FINDING = (
    "Conservative models overrate their proposals less (by .66), and propose worse designs: .14 less in the median at the usual step, "
    "and the more so the longer a step is. In no world do they lead by the margin."
)
