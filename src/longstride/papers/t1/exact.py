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
from longstride.claims.worlds import Between
from longstride.exact.answers import Answers, Grouped
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
_held = {f"beta_{beta}": RECIPE.replace(method={"loss": {"kl": {"coefficient": beta}}}) for beta in (0.02, 0.1, 0.4)}

CLAIM = Claim(
    name="t1/exact",
    paper="arXiv 2501.11651, abstract and section 2",
    statement="In a long run a policy that is held to a moving average of itself ends above one that is held to its "
    "start, by the same coefficient, in most of the worlds and coefficients that are drawn, the paper's 2e-4 among them.",
    recipe=RECIPE,
    arms={
        "moving": RECIPE,
        "fixed": RECIPE.replace(**_fixed),
        **{f"{name}_moving": arm for name, arm in _held.items()},
        **{f"{name}_fixed": arm.replace(**_fixed) for name, arm in _held.items()},
    },
    expected=Ordering(relations=("moving > fixed by 0.03",)),
    # the more both are held, the lower is the plateau of the fixed anchor
    dose=tuple(f"{name}_moving > {name}_fixed" for name in _held),
    worlds={
        "problem.tasks": Between(low=0.02, high=0.4, log=True, shape=(8, 1)),
        "method.loss.kl.coefficient": Between(low=2e-4, high=0.5, log=True),
        "problem.spread": Between(low=0.5, high=2.0),
    },
    grid={"method.rate": (2.0, 4.0, 8.0, 16.0, 32.0)},
    cost="samples",
    tuning_seeds=(900, 901),
    seeds=tuple(range(1000, 1040)),
)

FINDING = (
    "The effect is there under a strong hold alone: it holds in 20 % of the worlds [10, 35], all of them with a "
    "coefficient above 0.06 (+0.12); below that, the paper's 2e-4 among them, the moving anchor is level (0.000 "
    "to 0.001)."
)
