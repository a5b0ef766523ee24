"""SAW on recorded data of any Gymnasium environment with goals; see `hiql/recorded`.

Discrete actions take `agent.levels.0.policy.type=categorical_policy`.
"""

from longstride.papers.hiql.recorded import RECIPE as HIQL
from longstride.papers.hiql.recorded import TRUNK
from longstride.papers.saw.recipe import saw

RECIPE = HIQL.replace(name="saw/recorded", agent=saw(TRUNK))
