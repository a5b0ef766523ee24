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
from longstride.exact.answers import SEEDS, Answers, Grouped
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
_fresh = {"staleness": 0}

CLAIM = Claim(
    name="asyncwebrl/exact",
    paper="arXiv 2606.05597, abstract",
    statement="Where rollouts are four updates old, the decoupled ratio ends with more success than one ratio for both.",
    recipe=RECIPE,
    arms={
        "decoupled": RECIPE,
        "coupled": RECIPE.replace(method=_coupled),
        "fresh_decoupled": RECIPE.replace(method=_fresh),
        "fresh_coupled": RECIPE.replace(method={**_coupled, **_fresh}),
    },
    expected=Ordering(relations=("decoupled > coupled by 0.03",)),
    # samples of the policy itself: both ratios are one
    control=Ordering(relations=("fresh_decoupled > fresh_coupled by 0.001",)),
    reported=Ordering(relations=("fresh_coupled > decoupled",)),
    seeds=SEEDS,
)
