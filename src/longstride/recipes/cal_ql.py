"""Cal-QL: calibrated values for going on online. Nakamoto et al., 2023, arXiv 2303.05479.

CQL's values are far too low where it stops, so that the first steps online look like a discovery and what was learnt is
lost. Cal-QL pushes no action of the policy below the return that the data got from that state: values stay on the scale
of returns, and going on online costs nothing.

| place | choice | paper and released code | here |
|---|---|---|---|
| plan | offline, then online | 1M updates in antmaze, then online | 4,000 updates, then 10 times 4 episodes |
| value | `Conservative(calibrated=True)` | the policy's actions alone are calibrated | the same |
| value | return to go | of the data's episodes; failures: r / (1 - gamma) | the same |
| update | online: half of a batch is offline data | one update a step | the same |
| the rest | | as in `cql` | as in `cql` |

Deviations: those of `cql`; updates come after whole episodes, since a return is known at the end only.
"""

from longstride.recipes import cql
from longstride.training.control import ControlRecipe
from longstride.value import Conservative, algorithms

RECIPE = ControlRecipe(
    **(dict(cql.RECIPE) | {
        "name": "cal_ql",
        "agent": cql.agent(Conservative(actions=4, calibrated=True)),
        "phases": (algorithms.offline(4), algorithms.retaining(10, episodes=4)),
    })
)  # fmt: skip
