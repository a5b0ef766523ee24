"""Preference fine-tuning on puzzles, whose verifier says which of two answers is better: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.methods import DPO, Mean, Reinforce, SiblingPairs
from longstride.rewards import Duels
from longstride.setups import puzzles
from longstride.setups.puzzles import ALIKE
from longstride.stats import Ordering

ITERATIONS, EPISODES = 16, 128
"""Of an arm."""

RECIPE = puzzles.recipe(
    "preference_tuning", reward=Duels(labels=False), credit=SiblingPairs(), loss=DPO(beta=0.1), learner={"epochs": 1}
)

ARM = puzzles.arm(RECIPE).replace(iterations=ITERATIONS, episodes_per_iteration=EPISODES)
LIKELIHOOD = {"loss": Reinforce(aggregation=Mean(over="token"))}
"""Of the preferred answer alone."""
OFFLINE = {"iterations": 1, "episodes_per_iteration": ITERATIONS * EPISODES}
"""All pairs are the start's, and are there before the first step."""

CLAIM = Claim(
    name="preference_tuning",
    paper="arXiv 2404.14367, abstract",
    statement="Pairs of the policy's own answers with a negative gradient end with more success than the likelihood of "
    "what is preferred among the start's answers, for as many answers and steps, each at its own best rate.",
    recipe=ARM,
    arms={
        "both": ARM,
        "on_policy": ARM.replace(**LIKELIHOOD),
        "negative": ARM.replace(**OFFLINE),
        "neither": ARM.replace(**OFFLINE, **LIKELIHOOD),
        "alike_both": ARM.replace(tasks=ALIKE),
        "alike_neither": ARM.replace(tasks=ALIKE, **OFFLINE, **LIKELIHOOD),
    },
    expected=Ordering(relations=("both > neither by 0.05",)),
    # chains of two steps are what the start is best at
    control=Ordering(relations=("alike_both > alike_neither by 0.05",)),
    reported=Ordering(relations=("both > on_policy", "both > negative", "on_policy > neither", "negative > neither")),
    seeds=tuple(range(1200, 1212)),
    tuning_seeds=(920, 921),
    grid={"learner.lr": (1e-4, 3e-4, 6e-4, 1.2e-3, 2.4e-3)},
    cost="env_steps",
)
