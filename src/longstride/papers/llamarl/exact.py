"""LlamaRL on enumerable answers: samples that are eight versions old.

| place | choice | `llamarl` | here |
|---|---|---|---|
| roll out | staleness | up to 8 iterations | exactly 8 |
| plan | groups of one task | 8 answers, 32 puzzles | 8 answers, 16 tasks |
| score | | right or wrong | 1, 0, and 0.5 for one answer that is good and not right |
| credit, update | `GroupRelative`, `CISPO` | rho 4 | the same |

The good answer is likely at first, and the right ones are rare.
"""

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.exact.answers import Answers, Grouped
from longstride.exact.learner import recipe
from longstride.methods import Constant, GroupRelative, Reinforce
from longstride.methods.ratios import CISPO
from longstride.stats import Ordering

RECIPE = recipe(
    "llamarl/exact",
    Answers(tasks=tuple((chance,) for chance in (0.02, 0.05, 0.1, 0.1) * 4), vocabulary=32, decoy=0.7),
    Grouped(
        credit=GroupRelative(normalize="none"),
        loss=CISPO(aggregation=Constant(per="episode"), max=4.0),
        rate=64.0,
        staleness=8,
    ),
    iterations=60,
)

_uncorrected = {"loss": Reinforce(aggregation=Constant(per="episode"))}
_stale = {f"stale_{n}": RECIPE.replace(method={"staleness": n}) for n in (1, 4)}

CLAIM = Claim(
    name="llamarl/exact",
    paper="arXiv 2505.24034, section 6",
    statement="On samples eight versions old, AIPO ends with more success than the uncorrected policy gradient, each at "
    "its own best step, in most of the worlds that are drawn.",
    recipe=RECIPE,
    arms={
        "aipo": RECIPE,
        "uncorrected": RECIPE.replace(method=_uncorrected),
        **{f"{name}_aipo": arm for name, arm in _stale.items()},
        **{f"{name}_uncorrected": arm.replace(method=_uncorrected) for name, arm in _stale.items()},
    },
    expected=Ordering(relations=("aipo > uncorrected by 0.02",)),
    # a policy that samples for itself has ratio 1; the older its samples, the more there is to correct
    dose=("stale_1_aipo > stale_1_uncorrected", "stale_4_aipo > stale_4_uncorrected", "aipo > uncorrected"),
    worlds={
        "problem.tasks": Between(low=0.02, high=0.2, log=True, shape=(16, 1)),
        "problem.decoy": Between(low=0.1, high=0.75),
        "problem.spread": Between(low=0.5, high=2.0),
    },
    grid={"method.rate": (16.0, 32.0, 64.0, 128.0, 256.0)},
    cost="samples",
    tuning_seeds=(900, 901),
    seeds=tuple(range(1000, 1060)),
)

FINDING = (
    "Not decided. Each at its own best of five steps, the correction ends ahead by 0.012 [-0.007, 0.030] on samples eight "
    "versions old, in 40 % of the worlds [29, 53]; that is 0.042 [0.020, 0.066] more than on samples one version old, so what "
    "there is comes with age, as it should."
)
