"""RISE on puzzles: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.methods import Constant, Reinforce
from longstride.papers.rise.method import ATTEMPTS, OUTCOMES, After, BestOfGroup, Introspection, ParallelAttempts
from longstride.rewards import Attempts
from longstride.rollout.context import RecentTurns
from longstride.setups import puzzles
from longstride.stats import Ordering
from longstride.strategies import Direct

RECIPE = puzzles.recipe(
    "rise",
    iterations=10,
    episodes_per_iteration=512,
    group_size=4,
    tasks=Attempts(attempts=ATTEMPTS),
    budget={"turns": ATTEMPTS},
    test_budget={"turns": ATTEMPTS},
    sampler=Introspection(),
    context=RecentTurns(),
    credit=BestOfGroup(),
    loss=Reinforce(aggregation=Constant()),
    learner={"lr": 5e-4, "batch_samples": 32},
    evaluation={
        "strategies": (Direct(), ParallelAttempts()),
        "measures": (*(After(attempts=n, by="last") for n in range(1, ATTEMPTS + 1)), *OUTCOMES),
    },
)

ARM = RECIPE.replace(iterations=8, evaluation={"every": 4, "tasks": 400})

CLAIM = Claim(
    name="rise",
    paper="arXiv 2407.18219, abstract",
    statement="By equal sampled tokens, a policy that is trained on its own failed attempts solves more tasks in five attempts, one "
    "after the other, than one that is trained on first attempts alone.",
    recipe=ARM,
    arms={"rise": ARM, "first_attempts": ARM.replace(sampler={"attempts": 1}, episodes_per_iteration=960)},
    measure=f"any_{ATTEMPTS}",
    expected=Ordering(relations=("rise > first_attempts by 0.03",)),
    # where only one attempt is made there is nothing to learn from
    control=Ordering(relations=("rise > first_attempts by 0.03 in last_1",)),
    reported=Ordering(relations=(f"rise > rise@{ParallelAttempts().name}",)),
    seeds=tuple(range(1880, 1896)),
    tuning_seeds=(900, 901),
    grid={"learner.lr": (5e-5, 1.5e-4, 5e-4, 1.5e-3, 5e-3)},
    # ranked by what is judged: the first strategy
    tuning={"iterations": 4, "evaluation.every": 4, "evaluation.strategies": [Direct().as_data()]},
    # attempts that are played again are steps of the environment, and cost nothing
    cost="sampled_tokens",
    equal_cost=True,
)
