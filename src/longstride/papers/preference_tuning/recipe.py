"""Preference fine-tuning on puzzles, whose verifier says which of two answers is better: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.envs.puzzles import ModularChain
from longstride.methods import DPO, Mean, Reinforce, SiblingPairs
from longstride.rewards import Duels
from longstride.setups import puzzles
from longstride.stats import Ordering

ITERATIONS, EPISODES = 16, 128
"""Of an arm."""

RECIPE = puzzles.recipe(
    "preference_tuning", reward=Duels(labels=False), credit=SiblingPairs(), loss=DPO(beta=0.1), learner={"epochs": 1}
)

ARM = puzzles.arm(RECIPE).replace(iterations=ITERATIONS, episodes_per_iteration=EPISODES, evaluation={"start": False})
LIKELIHOOD = {"loss": Reinforce(aggregation=Mean(over="token"))}
"""Of the preferred answer alone."""
OFFLINE = {"iterations": 1, "episodes_per_iteration": ITERATIONS * EPISODES}
"""All pairs are the start's, and are there before the first step."""
_neither = ARM.replace(**OFFLINE, **LIKELIHOOD)
_lengths = {f"chains_{n}": ModularChain(lengths=(n, n, n)) for n in (2, 3, 5)}
"""Easy, medium and hard ones: the longer a chain, the less likely is a right answer under the start."""

CLAIM = Claim(
    name="preference_tuning",
    paper="arXiv 2404.14367, abstract",
    statement="Pairs of the policy's own answers with a negative gradient end with more success than the likelihood of "
    "what is preferred among the start's answers, for as many answers, each at its own best rate, and by the more the "
    "less likely a right answer is under the start.",
    recipe=ARM,
    arms={
        "both": ARM,
        "neither": _neither,
        **{f"{name}_both": ARM.replace(tasks=of) for name, of in _lengths.items()},
        **{f"{name}_neither": _neither.replace(tasks=of) for name, of in _lengths.items()},
    },
    expected=Ordering(relations=("both > neither by 0.05",)),
    # a control on the shortest alone could not fail: GRPO's arms are at .98 on them, the ceiling (claim `grpo`)
    dose=tuple(f"{name}_both > {name}_neither" for name in _lengths),
    seeds=tuple(range(1200, 1212)),
    tuning_seeds=(920, 921),
    grid={"learner.lr": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)},
    tuning={"evaluation.tasks": 400},
    cost="env_steps",
)
