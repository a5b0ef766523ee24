"""MRT on puzzles: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.methods import PPO, Constant, GroupRelative
from longstride.papers.mrt.method import ForcedTermination, LengthPenalty, ProgressCredit
from longstride.rollout.planning import Groups
from longstride.setups import puzzles
from longstride.setups.puzzles import ALIKE
from longstride.stats import Ordering
from longstride.strategies import Direct
from longstride.strategies.anytime import Anytime

TOKENS = 80
"""Sampled tokens of a training episode; those of a test are twice as many."""
HALF = TOKENS // 2
BUDGETS = (Anytime(within=(HALF,)), Direct(tokens=HALF))
"""The whole budget of a turn, twice that of training, and half that of training."""

RECIPE = puzzles.recipe(
    "mrt",
    iterations=60,
    budget={"tokens": TOKENS},
    sampler=ForcedTermination(),
    credit=ProgressCredit(bonus=1.0),
    loss=PPO(aggregation=Constant(length=puzzles.TOKENS, per="episode")),
    evaluation={"every": 20, "strategies": BUDGETS},
)

ARM = puzzles.arm(RECIPE, tasks=200).replace(evaluation={"every": 8})
_outcome = GroupRelative(normalize="none")
GRPO = ARM.replace(sampler=Groups(), episodes_per_iteration=72, credit=_outcome)
"""Outcome reward alone, from the start of every task, in about as many sampled tokens: GRPO as in `dr_grpo`."""

CLAIM = Claim(
    name="mrt",
    paper="arXiv 2503.07572",
    statement="By equal sampled tokens, paying for progress leads to less regret than paying for the outcome, and to more right answers, at half "
    "the tokens of training and at twice as many; a penalty on length leads to fewer.",
    recipe=ARM,
    arms={
        "mrt": ARM,
        "branches": ARM.replace(credit={"bonus": 0.0}),
        "grpo": GRPO,
        "short": GRPO.replace(reward=LengthPenalty(weight=0.4)),
        "alike_mrt": ARM.replace(tasks=ALIKE),
        "alike_grpo": GRPO.replace(tasks=ALIKE),
    },
    measure="anytime",
    expected=Ordering(relations=("mrt > grpo by 0.02",)),
    # a thought of two steps has one place at which it could go on
    control=Ordering(relations=("alike_mrt > alike_grpo by 0.02",)),
    reported=Ordering(
        relations=(
            f"mrt > grpo in anytime@{HALF}",
            "mrt > branches",
            "mrt > grpo in success",
            f"mrt@direct_{HALF}_tokens > grpo@direct_{HALF}_tokens in success",
            "mrt > short in success",
        )
    ),
    seeds=tuple(range(1740, 1765)),
    tuning_seeds=(974, 975),
    grid={"learner.lr": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)},
    tuning={"iterations": 8, "evaluation.every": 8},
    cost="sampled_tokens",
    equal_cost=True,
)

FINDING = (
    "It stays open: by as many sampled tokens 1 - regret ends 0.02 [-0.01, 0.05] higher than of outcome rewards, at half the tokens by 0.01 [0.00, 0.02]. "
    "The branches alone, without the bonus for progress, come to as much. MRT ends 0.04 [0.00, 0.07] of success above GRPO with a penalty on length."
)
