"""COMs on designs and scores of the user's own: `tasks.data=FILE`; `model.type=least_squares` is gradient ascent."""

from longstride.design import ConservativeModel
from longstride.setups import design

RECIPE = design.recorded("design_bench/recorded", ConservativeModel(trunk=design.TRUNK))
