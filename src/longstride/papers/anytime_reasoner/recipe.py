"""AnytimeReasoner on puzzles: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.methods import PPO, Constant, GroupRelative
from longstride.papers.anytime_reasoner.method import AtBudgets, BudgetRelative
from longstride.rollout.planning import Groups
from longstride.setups import puzzles
from longstride.setups.puzzles import ALIKE, TOKENS
from longstride.stats import Ordering
from longstride.strategies.anytime import Anytime

RECIPE = puzzles.recipe(
    "anytime_reasoner",
    model="base-thoughts",
    episodes_per_iteration=64,
    sampler=AtBudgets(),
    credit=BudgetRelative(),
    loss=PPO(aggregation=Constant(length=TOKENS, per="episode")),
    learner={"epochs": 1, "batch_samples": 1088},
    evaluation={"strategies": (Anytime(within=(TOKENS // 4, TOKENS // 2)),)},
)

ARM = RECIPE.replace(iterations=16, evaluation={"every": 4, "tasks": 400})
GRPO = ARM.replace(
    sampler=Groups(),
    episodes_per_iteration=128,
    credit=GroupRelative(normalize="none"),
    learner={"batch_samples": 128},
)
"""Paid for the answer that a thought comes to by itself, in about as many sampled tokens; no other answer is trained."""

BASE = ARM.replace(credit={"prior": "base"})
"""Paid for the answer at the last budget; answers at the others are trained as well."""

CLAIM = Claim(
    name="anytime_reasoner",
    paper="arXiv 2505.13438, section 4",
    statement="Paid by BRPO for the answers at four budgets, thoughts are right earlier than when paid for the answer at the "
    "last alone, in as many sampled tokens and each at its own best rate: the mean accuracy over budgets is higher.",
    recipe=ARM,
    arms={
        "brpo": ARM,
        "brpo_base": BASE,
        "grpo": GRPO,
        "alike_brpo": ARM.replace(tasks=ALIKE),
        "alike_base": BASE.replace(tasks=ALIKE),
    },
    measure="anytime",
    expected=Ordering(relations=("brpo > brpo_base by 0.02",)),
    # chains of two steps have said all that there is to say before the first budget
    control=Ordering(relations=("alike_brpo > alike_base by 0.02",)),
    reported=Ordering(relations=("brpo > grpo", "brpo > grpo in success")),
    seeds=tuple(range(1200, 1212)),
    tuning_seeds=(920, 921),
    grid={"learner.lr": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)},
    tuning={"iterations": 8},
    cost="sampled_tokens",
    equal_cost=True,
)
