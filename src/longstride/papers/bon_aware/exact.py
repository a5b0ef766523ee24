"""BoN-aware fine-tuning on enumerable answers, where the success of the best of N is computed.

| place | choice | `bon_aware` | here |
|---|---|---|---|
| plan | groups of one task | 32 answers, 8 puzzles | 32 answers to each of sixteen tasks |
| credit | `PassAtN` | N 16 | the same |
| update | `Reinforce` | with a KL to the start, mean over answers | without, the sum over tokens |
| test | `pass@16` | 16 answers | computed from the policy |

Tasks stand four to a context, which the policy cannot tell apart, and have different right answers.
"""

from longstride.claims.claim import Claim
from longstride.exact.answers import SEEDS, Answers, Grouped
from longstride.exact.learner import recipe
from longstride.methods import Constant, GroupRelative, Reinforce
from longstride.papers.bon_aware.method import PassAtN
from longstride.stats import Ordering

CHANCES = (0.4, 0.15, 0.1, 0.05)
ALIKE = Answers(tasks=(CHANCES,) * 4, vocabulary=32)
APART = ALIKE.replace(tasks=tuple((chance,) for chance in CHANCES * 4))

RECIPE = recipe(
    "bon_aware/exact",
    ALIKE,
    Grouped(credit=PassAtN(n=16), loss=Reinforce(aggregation=Constant(per="episode")), group=32, rate=16.0),
    iterations=40,
)

_plain = {"method": {"credit": GroupRelative(baseline="leave_one_out", normalize="none")}}

CLAIM = Claim(
    name="bon_aware/exact",
    paper="arXiv 2412.15287, section 5.2",
    statement="Trained for the best of 16, a policy solves more tasks with 16 answers than one that was trained for a "
    "single answer.",
    recipe=RECIPE,
    arms={
        "best_of_16": RECIPE,
        "single": RECIPE.replace(**_plain),
        "apart_best_of_16": RECIPE.replace(problem=APART),
        "apart_single": RECIPE.replace(problem=APART, **_plain),
    },
    measure="pass@16",
    expected=Ordering(relations=("best_of_16 > single by 0.3",)),
    # a policy that can tell tasks apart has no reason to try several answers: success and pass@16 rise together
    control=Ordering(relations=("apart_best_of_16 > apart_single by 0.05",)),
    seeds=SEEDS,
)
