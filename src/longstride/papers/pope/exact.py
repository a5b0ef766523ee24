"""The beginnings of `pope`, on tasks that the start hardly ever solves: one answer of 1,296 is right.

Guided, an update teaches the end of an answer; then shorter beginnings have a success, and at last none is needed.
Unguided, hardly any group has a success, and little is learned.

| place | choice | `pope` | here |
|---|---|---|---|
| plan | tasks | 3 % of rollouts succeed | 0.08 % do: each of four tokens is one of six |
| plan | `OraclePrefix` | up to two of three steps, a success in 8 | up to three of four tokens, the same |
| plan | guided to unguided | each hard task in both forms | the same |
| credit | `GroupRelative`, mixed groups only | groups of 8, divided by the deviation | the same |
| update | `PPO` | steps of 48 episodes | one step on all answers, mean over episodes |

Deviations: tasks are enumerable (`exact.answers`), and a policy that is a table carries nothing from one task over to
another. That it does from a guided answer to an unguided one is because both stand at the same place after the same
tokens, which is the paper's explanation ("stitching") and here holds by construction.
"""

from longstride.claims.claim import Claim
from longstride.claims.worlds import Among, Between
from longstride.exact.answers import Answers
from longstride.exact.learner import recipe
from longstride.exact.planned import Planned
from longstride.methods import PPO, GroupRelative, Mean, MixedGroups
from longstride.papers.pope.method import OraclePrefix
from longstride.rollout.planning import Groups
from longstride.stats import Ordering

TOKENS, LENGTH = 6, 4

RECIPE = recipe(
    "pope/exact",
    Answers(tasks=((TOKENS**-LENGTH,),) * 4, vocabulary=TOKENS, length=LENGTH),
    Planned(
        sampler=OraclePrefix(share=0.75, checkpoints=3),
        replay=MixedGroups(),
        credit=GroupRelative(),
        loss=PPO(aggregation=Mean(over="episode")),
        rate=8.0,
    ),
    iterations=40,
    evaluations=20,
)

_plain = {"sampler": Groups(), "group": 32}
_easier = {
    name: RECIPE.replace(problem={"tasks": ((chance,),) * 4}) for name, chance in (("easy", 0.3), ("harder", 0.02))
}

# without guidance groups are as large as all that a guided task can play: the search has at most 32 answers
CLAIM = Claim(
    name="pope/exact",
    paper="arXiv 2601.18779, abstract",
    statement="Tasks that are hardly ever solved from their start are learned better with beginnings of solutions than "
    "without, by as many answers, each at its own best step, in most of the worlds that are drawn.",
    recipe=RECIPE,
    arms={
        "pope": RECIPE,
        "guided_only": RECIPE.replace(method={"sampler": {"unguided": False}}),
        "hard_only": RECIPE.replace(method=_plain),
        **{f"{name}_pope": arm for name, arm in _easier.items()},
        **{f"{name}_only": arm.replace(method=_plain) for name, arm in _easier.items()},
    },
    expected=Ordering(relations=("pope > hard_only by 0.2",)),
    # what is solved without guidance needs none
    dose=(*(f"{name}_pope > {name}_only" for name in _easier), "pope > hard_only"),
    reported=Ordering(relations=("pope > guided_only",)),
    worlds={
        "problem.tasks": Between(low=2e-4, high=3e-3, log=True, shape=(4, 1)),
        "problem.vocabulary": Among(values=(5, 6, 7)),
        "problem.spread": Between(low=0.5, high=2.0),
    },
    grid={"method.rate": (4.0, 12.0, 40.0, 120.0, 400.0, 1200.0, 4000.0, 12000.0)},
    cost="samples",
    equal_cost=True,
    tuning_seeds=(900, 901, 902),
    seeds=tuple(range(1000, 1024)),
)

FINDING = (
    "It holds in 92 % of the worlds [74, 98]: by as many answers beginnings solve 0.948 of the tasks and groups without them 0.286 (+0.662 "
    "[0.545, 0.769]), each at its own best of eight steps; after three times as many answers these come to 0.636. Where one answer "
    "in 50 is right there is nothing between them."
)
