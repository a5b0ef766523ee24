"""The sampler of `dars`, where it has something to do: a base that is weak at tasks which it cannot tell from easier ones.

A group's part of the gradient grows with p (1 - p), so of two tasks that look alike to the policy the easier one wins
and the answer to the other is lost. More rollouts of the hard one hold the balance, and pass@k rises.

| place | choice | `dars` | here |
|---|---|---|---|
| plan | `DifficultyAdaptive` | 8 answers, then more, 32 at most (hardness weighted) | the same |
| plan | tasks | 32 an update | 8, two for each thing that the policy can see |
| credit | `GroupRelative`, mixed groups only | r - mean | the same |
| update | `PPO` over the whole batch | two passes, mean over tokens | one step, the same |

Deviations: tasks are enumerable (`exact.answers`), an answer is one token. The arm that is compared plays 32 answers of
every task, and is read where it has played as many as the sampler. At one step the sampler raises pass@k alone, and the
share of single answers that are right is lower with it, as it has to be where the policy splits its answers between two
tasks; at its own best step, which is longer, it is higher.
"""

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.exact.answers import Answers
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
    evaluations=15,
)

_uniform = {"sampler": Groups()}
_easy, _hard = 0.3, 0.05
_fewer = {
    "apart": ((_easy,), (_hard,)) * 4,
    "half": ((_easy, _hard),) * 2 + ((_easy,), (_hard,)) * 2,
}
"""As many tasks, of which none look like another, and half of them."""
_told = {name: {"problem": {"tasks": tasks}} for name, tasks in _fewer.items()}
_largest = {"group": 32, **_uniform}

CLAIM = Claim(
    name="dars/exact",
    paper="arXiv 2508.13755, abstract",
    statement="Where hard tasks look like easier ones, more rollouts for the hard ones raise pass@k above what as many "
    "rollouts leave of it that are spread evenly, each at its own best step, in most of the worlds that are drawn.",
    recipe=RECIPE,
    arms={
        "dars": RECIPE,
        "uniform_32": RECIPE.replace(method=_largest),
        "uniform_8": RECIPE.replace(method=_uniform),
        # hardly moved: what the start could do
        "still": RECIPE.replace(method={"rate": 1e-3, **_uniform}),
        **{f"{name}_dars": RECIPE.replace(**of) for name, of in _told.items()},
        **{f"{name}_uniform_32": RECIPE.replace(**of, method=_largest) for name, of in _told.items()},
    },
    measure="pass@32",
    expected=Ordering(relations=("dars > uniform_32 by 0.03",)),
    # tasks that the policy can tell apart do not drown one another
    dose=(*(f"{name}_dars > {name}_uniform_32" for name in _told), "dars > uniform_32"),
    reported=Ordering(
        relations=("dars > still", "still > uniform_32", "uniform_32 > dars in success", "dars > uniform_8")
    ),
    worlds={
        "problem.tasks": Between(low=0.02, high=0.45, log=True, shape=(4, 2)),
        "problem.vocabulary": Between(low=8, high=32),
        "problem.spread": Between(low=0.5, high=2.0),
    },
    grid={"method.rate": (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)},
    cost="samples",
    equal_cost=True,
    tuning_seeds=(900, 901, 902),
    seeds=tuple(range(1000, 1024)),
)

FINDING = (
    "It stays open: by as many answers more rollouts of hard tasks end 0.043 [0.030, 0.056] above uniform groups of 32 in pass@32, "
    "each at its own best of six steps, and by the margin of 0.03 in 58 % of the worlds [39, 76]. At its own best step, a quarter of "
    "the one at which it lost the hard tasks, a uniform group raises pass@32 a little too (0.880 at the end, 0.865 where nothing is "
    "learned; the sampler 0.924). The harder the tasks, the larger the lead; it does not rise all the way with the share of tasks that "
    "look alike (0.006, 0.073, 0.043)."
)
