"""The moving anchor of `t1`, where its limit is known: a fixed anchor ends at a plateau that can be computed.

`t1` holds the policy to a moving average of itself. Under the same coefficient beta a fixed anchor has the fixed point
pi_0 exp(r / beta) / Z: a task that the start solves with chance p ends at p e^(1/beta) / (p e^(1/beta) + 1 - p) however
long training goes on. An anchor that moves allows that much again and again.

| place | choice | `t1` | here |
|---|---|---|---|
| plan | groups of one task | 64 answers | 32 answers |
| credit | `GroupRelative` | r - mean of the others | the same |
| update | `AnchoredReinforce` | KL to the anchor in the reward, coefficient 0.05 | the same, 0.5 |
| update | `MovingAverage` | decay 0.9 | the same |
| update | entropy | bonus 0.001 | none, so that the plateau is exact |

Deviations: tasks are enumerable (`exact.answers`); no answer has an unwanted pattern, and all have one token.
"""

from longstride.claims.claim import Claim
from longstride.exact.answers import SEEDS, Answers, Grouped
from longstride.exact.learner import recipe
from longstride.methods import KL, Constant, GroupRelative, Start
from longstride.methods.kl import MovingAverage
from longstride.papers.t1.method import AnchoredReinforce
from longstride.stats import Ordering

RECIPE = recipe(
    "t1/exact",
    Answers(tasks=tuple((chance,) for chance in (0.05, 0.1, 0.2, 0.4) * 2), vocabulary=16),
    Grouped(
        credit=GroupRelative(baseline="leave_one_out", normalize="none"),
        loss=AnchoredReinforce(
            aggregation=Constant(per="episode"), kl=KL(coefficient=0.5, anchor=MovingAverage(decay=0.9))
        ),
        group=32,
        rate=8.0,
    ),
    iterations=60,
)

_fixed = {"method": {"loss": {"kl": {"anchor": Start()}}}}
_short = {"iterations": 4, "every": 4}

CLAIM = Claim(
    name="t1/exact",
    paper="arXiv 2501.11651, abstract and section 2",
    statement="In a long run a policy that is held to a moving average of itself ends above one that is held to its "
    "start, by the same coefficient.",
    recipe=RECIPE,
    arms={
        "moving": RECIPE,
        "fixed": RECIPE.replace(**_fixed),
        "short_moving": RECIPE.replace(**_short),
        "short_fixed": RECIPE.replace(**_fixed, **_short),
    },
    expected=Ordering(relations=("moving > fixed by 0.1",)),
    # after four iterations both anchors are still nearly the start
    control=Ordering(relations=("short_moving > short_fixed by 0.03",)),
    seeds=SEEDS,
)
