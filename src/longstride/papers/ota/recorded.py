"""OTA on recorded data of any Gymnasium environment with goals; see `hiql/recorded`.

Where goals are farther: `tasks.id=ogbench:pointmaze-giant-v0 tasks.data=pointmaze-giant-navigate-v0.npz`.
"""

from longstride.papers.hiql.recipe import hiql
from longstride.papers.hiql.recorded import RECIPE as HIQL
from longstride.papers.hiql.recorded import TRUNK
from longstride.papers.ota.recipe import N

RECIPE = HIQL.replace(name="ota/recorded", agent=hiql(TRUNK, options=N))
