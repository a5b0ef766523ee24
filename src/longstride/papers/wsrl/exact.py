"""What a warm-up is for: enough new data before the first update without the old (arXiv 2412.07762).

Online without the offline data, the first updates see a few episodes and fit them: values of what these happen to hold
move, and the policy loses what it had learned. If the frozen policy collects for a while first, the updates see what the
policy meets, and it falls less. Where the offline data stays, it is all there already.

| place | choice | paper | here |
|---|---|---|---|
| problem | `LoggedWorld` | D4RL, adroit, kitchen | a table of 20 states and 5 actions, 800 transitions |
| plan | offline: Cal-QL | 1M updates | 20 iterations of 50 updates, weight 0.3 |
| plan | warm-up | 5,000 steps | 8 iterations of 2 episodes of 20 steps |
| plan | online: neither the data nor the gap | the same | 12 iterations, the same episodes |
| measure | `dip` | success after the switch | how far the value of the policy falls, computed |

Deviations: one table stands for the ensemble, and updates see all new data at once. Both arms collect as much; the cold one
learns from its first episode on. On seeds 5 to 8 it falls by 0.22, with a warm-up by 0.18, and by 0.02 with the data kept:
what costs is the data that is gone, of actions that the policy seldom takes, and a warm-up of that policy does not bring it
back. Little is expected of the claim.
"""

from longstride.claims.claim import Claim
from longstride.exact.experiment import ExactRecipe
from longstride.exact.logged import SEEDS, LoggedQ, LoggedWorld
from longstride.stats import Ordering

RECIPE = ExactRecipe(
    name="wsrl/exact",
    problem=LoggedWorld(samples=800, expert=0.6),
    method=LoggedQ(weight=0.3, calibrated=True, conservative=False, retained=False, warmup=8),
    iterations=40,
    every=4,
)

_cold = {"warmup": 0}
_kept = RECIPE.replace(method={"retained": True})

CLAIM = Claim(
    name="wsrl/exact",
    paper="arXiv 2412.07762, on warm-up",
    statement="Online without the offline data, a policy that collects before it learns loses less of what it has.",
    recipe=RECIPE,
    arms={
        "warm": RECIPE,
        "cold": RECIPE.replace(method=_cold),
        "kept_warm": _kept,
        "kept_cold": _kept.replace(method=_cold),
    },
    measure="dip",
    expected=Ordering(relations=("cold > warm by 0.05",)),
    # with the offline data kept, what a warm-up provides is there already
    control=Ordering(relations=("kept_cold > kept_warm by 0.05",)),
    reported=Ordering(relations=("warm > cold in value",)),
    seeds=SEEDS,
)

FINDING = (
    "A warm-up lowers the dip from 0.18 to 0.14, less than the margin; with the offline data kept it is 0.03 or less."
)
