"""The cycle of `siri` on walks whose success and length are computed: turns saved at equal success.

Under a long limit nothing is lost by a wasted turn, so waste stays; under a short one it is unlearned where the limit
is reached, and the tasks that need more are never solved. Taken in turns, both are learned.

| place | choice | `siri` | here |
|---|---|---|---|
| plan | `Cosine` | 128 to 48 tokens, cycles of 12 iterations, three of them | 40 to 10 turns, the same |
| plan | groups of one task | 8 answers | 16 episodes, four tasks of 2 to 14 useful turns |
| credit | `GroupRelative` | (r - mean) / deviation | the same |
| update | `PPO` | mean over tokens, two passes | the same, one step |
| measure | `success`, `length` | | exact, within 40 turns |

Deviations: an episode is a walk (`exact.walks.SearchWalk`) of useful turns, wasted ones and an answer, by a policy that
sees how many useful turns it took.

The control is undecided. On seeds 100 to 139 its limits were 30 and 40 turns (0.363, -0.012 to 0.814, where the effect was
2.810); with limits of 160 and 200, on the seeds that are kept, 2 of 40 seeds still differ: where nothing presses, waste
wanders by chance, and in these an episode met a limit.
"""

from longstride.claims.claim import Claim
from longstride.curriculum import Fixed
from longstride.exact.learner import recipe
from longstride.exact.walks import SearchWalk, Walked
from longstride.methods import PPO, GroupRelative, Mean
from longstride.papers.siri.method import Cosine, Stair
from longstride.papers.siri.recipe import CYCLE
from longstride.stats import Ordering

LONG, SHORT = 40, 10

RECIPE = recipe(
    "siri/exact",
    SearchWalk(depths=(2, 4, 8, 14), wastes=0.6, horizon=LONG),
    Walked(
        turns=Cosine(high=LONG, low=SHORT, period=CYCLE),
        credit=GroupRelative(),
        loss=PPO(clip_high=0.28, aggregation=Mean(over="token")),
        group=16,
        rate=30.0,
    ),
    iterations=3 * CYCLE,
)

_long = {"turns": Fixed(limit=LONG)}
_free = {"problem": {"depths": (1, 2), "wastes": 0.2, "horizon": 5 * LONG}}

CLAIM = Claim(
    name="siri/exact",
    paper="arXiv 2509.25176, abstract and figure 1",
    statement="A limit that goes down and up ends with shorter episodes than a constant long one, at equal success, and "
    "with more success than a constant short one.",
    recipe=RECIPE,
    arms={
        "siri": RECIPE,
        "stair": RECIPE.replace(method={"turns": Stair(high=LONG, low=SHORT, period=CYCLE)}),
        "long": RECIPE.replace(method=_long),
        "short": RECIPE.replace(method={"turns": Fixed(limit=SHORT)}),
        "free_siri": RECIPE.replace(**_free, method={"turns": {"high": 5 * LONG, "low": 4 * LONG}}),
        "free_long": RECIPE.replace(**_free, method={"turns": Fixed(limit=5 * LONG)}),
    },
    measure="length",
    expected=Ordering(relations=("long > siri by 0.5",)),
    # a cycle of limits that never bind: two useful turns at most, within 160
    control=Ordering(relations=("free_long > free_siri by 0.2",)),
    reported=Ordering(relations=("long > siri by 0.05 in success", "siri > short in success", "long > stair")),
    seeds=tuple(range(200, 240)),
)
