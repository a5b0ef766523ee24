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
from longstride.claims.worlds import Between
from longstride.exact.answers import Answers, Grouped
from longstride.exact.learner import recipe
from longstride.methods import Constant, GroupRelative, Reinforce
from longstride.papers.bon_aware.method import PassAtN
from longstride.stats import Ordering

CHANCES = (0.4, 0.15, 0.1, 0.05)
ALIKE = Answers(tasks=(CHANCES,) * 4, vocabulary=32)
ALIKE_BY = {1: tuple((chance,) for chance in CHANCES * 4), 2: (CHANCES[:2], CHANCES[2:]) * 4}
"""As many tasks, of which so many look alike."""

RECIPE = recipe(
    "bon_aware/exact",
    ALIKE,
    Grouped(credit=PassAtN(n=16), loss=Reinforce(aggregation=Constant(per="episode")), group=32, rate=16.0),
    iterations=40,
)

_plain = {"method": {"credit": GroupRelative(baseline="leave_one_out", normalize="none")}}
_fewer = {f"alike_{k}": RECIPE.replace(problem={"tasks": of}) for k, of in ALIKE_BY.items()}

CLAIM = Claim(
    name="bon_aware/exact",
    paper="arXiv 2412.15287, section 5.2",
    statement="Where a policy cannot tell tasks apart, training for the best of 16 solves more of them with 16 answers than "
    "training for a single answer, each at its own best step, in most of the worlds that are drawn.",
    recipe=RECIPE,
    arms={
        "best_of_16": RECIPE,
        "single": RECIPE.replace(**_plain),
        **{f"{alike}_best_of_16": arm for alike, arm in _fewer.items()},
        **{f"{alike}_single": arm.replace(**_plain) for alike, arm in _fewer.items()},
    },
    measure="pass@16",
    expected=Ordering(relations=("best_of_16 > single by 0.1",)),
    # of tasks that look alike a single answer can be right in one
    dose=(*(f"{alike}_best_of_16 > {alike}_single" for alike in _fewer), "best_of_16 > single"),
    worlds={
        "problem.tasks": Between(low=0.02, high=0.22, shape=(4, 4)),
        "problem.spread": Between(low=0.5, high=2.0),
    },
    grid={"method.rate": (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)},
    cost="samples",
    tuning_seeds=(900, 901),
    seeds=tuple(range(1000, 1040)),
)

FINDING = (
    "It holds in 92 % of the worlds [80, 97]: pass@16 is 0.976 and 0.820 (+0.156 [0.141, 0.171]), each at the best of seven steps, "
    "and none is behind. The harder the tasks, the larger the lead; where no two tasks look alike both sides solve all."
)
