"""The sampler of `dars`, where its effect is large: a base that is weak at tasks which it cannot tell from easier ones.

A group's part of the gradient grows with p (1 - p), so of two tasks that look alike to the policy the easier one wins
and the answer to the other is lost. More rollouts of the hard one hold the balance, and pass@k rises.

| place | choice | `dars` | here |
|---|---|---|---|
| plan | `DifficultyAdaptive` | 8 answers, then more, 32 at most (hardness weighted) | the same |
| plan | tasks | 32 an update | 8, two for each thing that the policy can see |
| credit | `GroupRelative`, mixed groups only | r - mean | the same |
| update | `PPO` over the whole batch | two passes, mean over tokens | one step, the same |

Deviations: tasks are enumerable (`exact.answers`), an answer is one token. The arm that is compared plays 32 answers of
every task: never fewer than the sampler. What the sampler raises is pass@k alone: the share of single answers that are
right is lower with it, as it has to be where the policy splits its answers between two tasks.
"""

from longstride.claims.claim import Claim
from longstride.exact.answers import SEEDS, Answers
from longstride.exact.learner import recipe
from longstride.exact.planned import Planned
from longstride.methods import PPO, GroupRelative, MixedGroups
from longstride.papers.dars.method import DifficultyAdaptive
from longstride.rollout.planning import Groups
from longstride.stats import Ordering

RECIPE = recipe(
    "dars/exact",
    Answers(tasks=((0.3, 0.05),) * 4, attempts=(32,)),
    Planned(
        sampler=DifficultyAdaptive(target="hardness", most=32),
        replay=MixedGroups(),
        credit=GroupRelative(normalize="none"),
        loss=PPO(),
        rate=4.0,
    ),
    iterations=30,
)

_uniform = {"sampler": Groups()}
_apart = {"problem": {"tasks": ((0.3,), (0.05,)) * 4}}

CLAIM = Claim(
    name="dars/exact",
    paper="arXiv 2508.13755, abstract",
    statement="Where hard tasks look like easier ones, more rollouts for the hard ones raise pass@k, and more rollouts "
    "for all of them lower it.",
    recipe=RECIPE,
    arms={
        "dars": RECIPE,
        "equal": RECIPE.replace(method={"sampler": {"target": "equal"}}),
        "uniform_32": RECIPE.replace(method={"group": 32, **_uniform}),
        "uniform_8": RECIPE.replace(method=_uniform),
        # hardly moved: what the start could do
        "still": RECIPE.replace(method={"rate": 0.01, **_uniform}),
        "apart_dars": RECIPE.replace(**_apart),
        "apart_uniform_32": RECIPE.replace(**_apart, method={"group": 32, **_uniform}),
    },
    measure="pass@32",
    expected=Ordering(relations=("dars > uniform_32 by 0.1",)),
    # tasks that the policy can tell apart do not drown one another
    control=Ordering(relations=("apart_dars > apart_uniform_32 by 0.02",)),
    reported=Ordering(relations=("dars > still", "still > uniform_32", "uniform_32 > dars in success", "dars > equal")),
    seeds=SEEDS,
)
