"""TTI, mended: growing the horizon where cloning favours no action (see `tti`).

Shen et al. (2025, arXiv 2506.07976) grow the horizon because a fixed short one never sees what takes long, and a fixed long one clones
arbitrary actions. `tti` weighs all tokens alike and clones no turn that moved nothing, which is what a fixed long horizon suffers from; the
short one still stops before hard tasks are done. So of the paper's two relations one is expected here.

| place | choice | paper | here |
|---|---|---|---|
| all | `tti` as `make train` runs it | 1 over the length of a turn | equal weights, idle turns left out |
| plan | episodes | 15 iterations of 512 | arms of the claim: 12 of 128 |

Deviations: those of `tti`. Between the claims of `tti` and of `tti/mended` the replay, the rate and the batch differ too.
"""

from longstride.claims.claim import Claim
from longstride.papers.tti import recipe as tti
from longstride.stats import Ordering

RECIPE = tti.RECIPE.replace(name="tti/mended")

ARM = tti.SMALL.replace(name="tti/mended")

CLAIM = Claim(
    name="tti/mended",
    paper="arXiv 2506.07976, section 5 and table 1",
    statement=(
        "Mended, a fixed long horizon is level with a growing one, and the mends gain more than any schedule; growing beats "
        "the fixed short horizon that it begins with."
    ),
    measure="supported",
    recipe=ARM,
    arms={
        "growing": ARM,
        "short": ARM.replace(budget=tti.FIXED_SHORT),
        "long": ARM.replace(budget=tti.FIXED_LONG),
    },
    expected=Ordering(relations=("growing > short by 0.03",)),
    reported=Ordering(
        relations=("growing > long", "growing > short in success", "growing > long in success", "long > short")
    ),
    seeds=(30, 31, 32, 33),
)
