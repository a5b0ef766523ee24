"""IOM on designs and scores of the user's own: `tasks.data=FILE`."""

from longstride.papers.iom.method import InvariantModel
from longstride.setups import design

RECIPE = design.recorded("iom/recorded", InvariantModel(trunk=design.TRUNK))
