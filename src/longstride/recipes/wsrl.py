"""WSRL: online after offline without keeping the offline data. Zhou et al., 2024, arXiv 2412.07762.

Whoever drops the offline data at the start of online training sees the values collapse: the data that would correct
them is gone, and the new data is not there yet. WSRL lets the frozen policy collect for a while first; then plain SAC
at a high ratio of updates to steps goes on, on new data alone.

| place | choice | paper and released code | here |
|---|---|---|---|
| plan | offline: Cal-QL's losses | 1M updates in antmaze | 240 updates of four critic steps |
| plan | warm-up: collect, learn nothing | 5,000 steps | 20 episodes, at most 2,000 steps |
| plan | online: no offline data, no conservatism | the same | 8 times 10 episodes |
| value | ensemble, the least of two at random | 10 critics | 4 critics |
| value | `Conservative(calibrated=True)` | 10 actions of each of three sources | 2 of each |
| update | four critic steps a policy step | batch 1024 in slices of 256, once a step | 128 in 32, 250 after 10 episodes |
| the rest | | | as in `cal_ql` |

Deviations: those of `cal_ql`. Over seeds 0 to 4 it goes online at 0.82, 0.80, 0.80, 0.60 and 1.00 of the test episodes
and ends at 0.96, 1.00, 0.92, 0.86 and 1.00. That the warm-up pays, and pays more than keeping the data, is undecided.
"""

from longstride.claims.claim import Claim
from longstride.control import Phase, algorithms
from longstride.control.recipe import ControlRecipe
from longstride.recipes import cal_ql, cql
from longstride.stats import Ordering

RECIPE = ControlRecipe(
    **(dict(cal_ql.RECIPE) | {
        "name": "wsrl",
        "agent": cql.agent(cql.conservative(calibrated=True), ensemble=4, subset=2, slices=4),
        "phases": (
            algorithms.offline(4, updates=60),
            Phase(iterations=2, episodes=10),
            Phase(iterations=8, episodes=10, updates=250, retained=0.0, conservative=False),
        ),
    })
)  # fmt: skip


def _phases(warmup: int, retained: float, conservative: bool) -> str:
    """The override of what comes after offline training: ten times 10 episodes and 2,000 updates in all."""
    online = 10 - warmup
    warm = f"{{iterations={warmup}, episodes=10}}, " if warmup else ""
    return (
        f"phases=[{{iterations=4, updates=60}}, {warm}{{iterations={online}, episodes=10, updates={2000 // online}, "
        f"retained={retained}, conservative={str(conservative).lower()}}}]"
    )


CLAIM = Claim(
    name="wsrl",
    paper="arXiv 2412.07762",
    statement="Without offline data, collecting with the frozen policy before learning online avoids a collapse, and "
    "beats Cal-QL with the offline data.",
    measure="online_success",
    arms={
        "warm": (),
        "cold": (_phases(warmup=0, retained=0.0, conservative=False),),
        "retaining": (_phases(warmup=0, retained=0.5, conservative=True),),
        "retaining_warm": (_phases(warmup=2, retained=0.5, conservative=True),),
    },
    expected=Ordering(relations=("warm > cold by 0.02", "warm > retaining")),
    # who keeps the data has the states that a warm-up stands for
    control=Ordering(relations=("retaining_warm > retaining by 0.05",)),
    seeds=(0, 1, 2, 3, 4),
)
