"""Cal-QL: calibrated values for going on online. Nakamoto et al., 2023, arXiv 2303.05479.

CQL's values are far too low where it stops, so that the first steps online look like a discovery and what was learnt is
lost. Cal-QL pushes no action of the policy below the return that the data got from that state: values stay on the scale
of returns, and going on online costs nothing.

| place | choice | paper and released code | here |
|---|---|---|---|
| plan | offline, then online | 1M updates in antmaze, then online | 600 updates, then 8 times 10 episodes |
| plan | online on what is tested | the same start and goal | the five test tasks |
| value | `Conservative(calibrated=True)` | the policy's actions alone are calibrated | the same |
| value | return to go | of the data's episodes; failures: r / (1 - gamma) | the same |
| update | online: half of a batch is offline data | one update a step | 250 updates after 10 episodes |
| the rest | | as in `cql` | as in `cql`; Adam 3e-4, U-maze, 20 walks |

Deviations: those of `cql`; updates come after whole episodes, since a return is known at the end only. A smaller maze
than that of `cql` can be learnt in the few thousand steps that there are online; few walks leave something to learn.
At this size CQL's values do end further below the returns, but they lose nothing online, so its claim stands undecided.
"""

from longstride.claims.claim import Claim
from longstride.control import Phase, algorithms
from longstride.control.envs import PointMaze
from longstride.control.recipe import ControlRecipe
from longstride.core.config import override
from longstride.curriculum import Fixed
from longstride.recipes import cql
from longstride.stats import Ordering

HORIZON = Fixed(limit=100)
"""Steps: ten a cell, and the longest of the shortest ways has six cells."""

RECIPE = ControlRecipe(
    **(dict(cql.RECIPE) | {
        "name": "cal_ql",
        "tasks": PointMaze(maze="umaze", walks="reach", episodes=20, length=HORIZON.limit, practice="tests"),
        "horizon": HORIZON,
        "test_horizon": HORIZON,
        "agent": cql.agent(cql.conservative(calibrated=True)),
        "phases": (algorithms.offline(4, updates=150), Phase(iterations=8, episodes=10, updates=250, retained=0.5)),
    })
)  # fmt: skip


def _weighed(calibrated: bool, weight: float) -> str:
    return override("agent", cql.agent(cql.conservative(calibrated, weight)))


CLAIM = Claim(
    name="cal_ql",
    paper="arXiv 2303.05479",
    statement="Going online after offline training, calibrated values lose less than those of CQL.",
    measure="online_success",
    arms={
        "cal_ql": (),
        "cql": (_weighed(calibrated=False, weight=1.0),),
        "slight_cal_ql": (_weighed(calibrated=True, weight=0.01),),
        "slight_cql": (_weighed(calibrated=False, weight=0.01),),
    },
    expected=Ordering(relations=("cal_ql > cql by 0.02",)),
    # what is hardly pushed down has nothing to be held up from
    control=Ordering(relations=("slight_cal_ql > slight_cql by 0.02",)),
    seeds=(0, 1, 2, 3, 4),
)
