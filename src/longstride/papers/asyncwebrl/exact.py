"""The decoupled ratio of `asyncwebrl`, on answers whose success is computed: where samples are old.

With one ratio for both, a sample that an older policy made is out of the clip range before the first step, and every
step is held to that older policy. Decoupled, the clip is around the policy at the start of the update, and what lies
between the two is a weight.

| place | choice | `asyncwebrl` | here |
|---|---|---|---|
| roll out | staleness | at most 2 versions | always 4 |
| credit | `GroupRelative` | (r - mean) / deviation, mixed groups only | the same |
| update | `PPO` with `ImportanceCorrection` | clip 0.2, dual 3; w masked above 5; mean over tokens | the same |
| update | passes | 3 epochs of 2 minibatches | 6 steps on the whole batch |

Deviations: tasks are enumerable (`exact.answers`), an episode is one answer of one token. The paper's other part, a
constant in place of an episode's length, is in `asyncwebrl/length`.
"""

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.exact.answers import Answers, Grouped
from longstride.exact.learner import recipe
from longstride.methods import PPO, GroupRelative, ImportanceCorrection, Mean, MixedGroups
from longstride.stats import Ordering

RECIPE = recipe(
    "asyncwebrl/exact",
    Answers(tasks=tuple((chance,) for chance in (0.05, 0.1, 0.2, 0.4) * 2)),
    Grouped(
        replay=MixedGroups(),
        credit=GroupRelative(),
        loss=PPO(dual_clip=3.0, correction=ImportanceCorrection(mode="mask", max=5.0), aggregation=Mean(over="token")),
        rate=4.0,
        passes=6,
        staleness=4,
    ),
    iterations=24,
)

_coupled = {"loss": {"correction": None}}
_younger = {f"age_{k}": RECIPE.replace(method={"staleness": k}) for k in (1, 2)}

CLAIM = Claim(
    name="asyncwebrl/exact",
    paper="arXiv 2606.05597, abstract",
    statement="Where rollouts are four updates old, the decoupled ratio ends with more success than one ratio for both, "
    "each at its own best step, in most of the worlds that are drawn.",
    recipe=RECIPE,
    arms={
        "decoupled": RECIPE,
        "coupled": RECIPE.replace(method=_coupled),
        **{f"{age}_decoupled": arm for age, arm in _younger.items()},
        **{f"{age}_coupled": arm.replace(method=_coupled) for age, arm in _younger.items()},
    },
    expected=Ordering(relations=("decoupled > coupled by 0.03",)),
    # what one ratio clips away is how far the policy has come since the rollouts
    dose=(*(f"{age}_decoupled > {age}_coupled" for age in _younger), "decoupled > coupled"),
    worlds={
        "problem.tasks": Between(low=0.03, high=0.4, log=True, shape=(8, 1)),
        "problem.spread": Between(low=0.5, high=2.0),
    },
    grid={"method.rate": (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)},
    cost="samples",
    tuning_seeds=(900, 901),
    seeds=tuple(range(1000, 1040)),
)

FINDING = (
    "Nothing is left to tell: with tuned steps both sides solve all tasks (1.000). The lead that was kept at one step was the "
    "length of the step, and in a table of answers a long one costs nothing."
)
