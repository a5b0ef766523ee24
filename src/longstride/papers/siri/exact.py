"""The cycle of `siri` on walks whose success and length are computed: turns saved at equal success.

Under a long limit nothing is lost by a wasted turn, so waste stays; under a short one it is unlearned where the limit
is reached, and the tasks that need more are never solved. Taken in turns, both are learned.

| place | choice | `siri` | here |
|---|---|---|---|
| plan | `Cosine` | 128 to 48 tokens, cycles of 12 iterations, three of them | 40 to 10 turns, the same |
| plan | groups of one task | 8 answers | 16 episodes, four tasks of 1 to 16 useful turns |
| credit | `GroupRelative` | (r - mean) / deviation | the same |
| update | `PPO` | mean over tokens, two passes | the same, one step |
| measure | `success`, `length` | | exact, within 40 turns |

Deviations: an episode is a walk (`exact.walks.SearchWalk`) of useful turns, wasted ones and an answer, by a policy that
sees how many useful turns it took.
"""

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.curriculum import Fixed
from longstride.exact.learner import recipe
from longstride.exact.walks import SearchWalk, Walked
from longstride.methods import PPO, GroupRelative, Mean
from longstride.papers.siri.method import Cosine
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

_higher = {f"low_{low}": RECIPE.replace(method={"turns": {"low": low}}) for low in (30, 20)}

CLAIM = Claim(
    name="siri/exact",
    paper="arXiv 2509.25176, abstract and figure 1",
    statement="A limit that goes down and up ends with shorter episodes than a constant long one, each at the step with "
    "which it succeeds most, in most of the worlds that are drawn, at equal success, and with more success than a constant "
    "short one.",
    recipe=RECIPE,
    arms={
        "siri": RECIPE,
        "long": RECIPE.replace(method={"turns": Fixed(limit=LONG)}),
        "short": RECIPE.replace(method={"turns": Fixed(limit=SHORT)}),
        **_higher,
    },
    measure="length",
    expected=Ordering(relations=("long > siri by 0.5",)),
    # the lower the limit goes, the more it presses
    dose=(*(f"long > {low}" for low in _higher), "long > siri"),
    reported=Ordering(relations=("long > siri by 0.05 in success", "siri > short in success")),
    worlds={
        "problem.depths": Between(low=1, high=16, shape=(4,)),
        "problem.wastes": Between(low=0.3, high=0.75),
        "problem.quits": Between(low=0.05, high=0.2, log=True),
    },
    grid={"method.rate": (4.0, 8.0, 16.0, 32.0, 64.0, 128.0)},
    tuned_by="success",
    # episodes; a limit that goes down takes fewer turns for as many
    cost="samples",
    tuning_seeds=(900, 901, 902),
    seeds=tuple(range(1000, 1024)),
)

FINDING = (
    "It holds in all 24 worlds [86, 100]: after as many episodes the cycle ends with 9.60 turns and a constant long limit with 11.72 "
    "(2.118 fewer [1.558, 2.758]), each at the step with which it succeeds most, at equal success (0.965 and 0.978). It rises "
    "with how low the limit goes: 0.434 at 30 turns, 1.563 at 20. A constant short limit solves 0.541."
)
