"""WSRL: online after offline without keeping the offline data. Zhou et al., 2024, arXiv 2412.07762.

Whoever drops the offline data at the start of online training sees the values collapse: the data that would correct
them is gone, and the new data is not there yet. WSRL lets the frozen policy collect for a while first; then plain SAC
at a high ratio of updates to steps goes on, on new data alone.

| place | choice | paper and released code | here |
|---|---|---|---|
| plan | offline: Cal-QL's losses | 1M updates in antmaze | 1,800 updates of four critic steps |
| plan | warm-up: collect, learn nothing | 5,000 steps | 20 episodes, at most 5,000 steps |
| plan | online: no offline data, no conservatism | the same | 10 times 4 episodes |
| value | ensemble, the least of two at random | 10 critics | 4 critics |
| value | `Conservative(calibrated=True)` | 10 actions of each of three sources | 2 of each |
| update | four critic steps a policy step, one of these a step | batch 1024 in slices of 256 | 256 in slices of 64 |
| the rest | | | as in `cql` |

Deviations: those of `cql`; updates come after whole episodes. At this size the online part does not gain on what was
pre-trained, as the paper's does (seed 0: 0.42 of the test episodes before it, 0.28 after it).
"""

from longstride.recipes import cql
from longstride.recipes.sharsa import SMALL
from longstride.training.control import ControlRecipe
from longstride.value import Agent, Conservative, PolicyValue, algorithms

CRITIC = PolicyValue(ensemble=4, subset=2, conservative=Conservative(actions=2, calibrated=True))

RECIPE = ControlRecipe(
    **(dict(cql.RECIPE) | {
        "name": "wsrl",
        "agent": algorithms.sized(
            Agent(levels=(cql.level(CRITIC),), policy_lr=1e-4, batch=256, slices=4), SMALL
        ),
        "phases": (algorithms.offline(6, updates=300), *algorithms.warm_started(5, 10, episodes=4)),
    })
)  # fmt: skip
