"""RLAD on Countdown: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.envs.base import Mix
from longstride.envs.puzzles import Countdown
from longstride.learner.config import LearnerConfig
from longstride.methods import PPO, GroupRelative, Mean, MixedGroups
from longstride.papers.rlad.method import Abstracted, Abstracting, AbstractionForm, AbstractionsShown
from longstride.rollout import Groups
from longstride.run.imitation import Cloning, SolverDemonstrations
from longstride.run.recipe import Recipe
from longstride.setups import puzzles
from longstride.setups.small import FAST
from longstride.stats import Ordering
from longstride.strategies import Direct, Strategy
from longstride.strategies.best_of import BestOf, Verifier

FORM = AbstractionForm(ask=" ; start", words=" ; start {abstraction}", tokens=9)
"""In words that the start knows; a step of Countdown is five tokens, its mark and the end two."""
SAMPLES = 16
"""Solutions of a task: in training, and at the test."""

RECIPE = puzzles.recipe(
    "rlad",
    iterations=16,
    episodes_per_iteration=128,
    group_size=SAMPLES,
    cloning=Cloning(
        demonstrations=AbstractionsShown(form=FORM),
        episodes=6000,
        learner=LearnerConfig(lr=2e-3, warmup_steps=20, batch_samples=64).replace(**FAST),
    ),
    # held-out tasks have three numbers or four too: of two there is no first step that is not the solution
    tasks=Countdown(numbers=(3, 3, 4), largest=10, most=30, mix=Mix(easy=0, medium=1, hard=1)),
    sampler=Abstracted(form=FORM),
    replay=MixedGroups(),
    credit=GroupRelative(),
    loss=PPO(aggregation=Mean(over="token")),
    learner={"batch_samples": 64} | FAST,
    evaluation={
        "every": 16,
        "tasks": 60,
        "strategies": (
            Direct(),
            BestOf(attempts=SAMPLES, by=Verifier()),
            *(Abstracting(form=FORM, abstractions=m, attempts=SAMPLES // m, by=Verifier()) for m in (1, 4, 16)),
        ),
    },
).replace(engine={"processes": "auto"})

ALONE, *_ABSTRACTING = RECIPE.evaluation.strategies[1:]
FOUR = _ABSTRACTING[1]
"""Strategies: sixteen solutions without abstractions, and as many with four."""

# The first strategy of an arm is the one that it is judged under, so it is tuned by that too. Evaluated often, for an
# iteration with abstractions and attempts at leaks may spend the tokens of several without.
ARM = RECIPE.replace(evaluation={"tasks": 120, "every": 4, "strategies": (FOUR, ALONE)})
GRPO = ARM.replace(
    sampler=Groups(),
    iterations=24,
    cloning={"demonstrations": SolverDemonstrations()},
    evaluation={"strategies": (ALONE,)},
)
"""Cloned from as many demonstrations of the solver, without abstractions."""


def _of(arm: Recipe, numbers: int, strategy: Strategy) -> Recipe:
    """Tasks of so many numbers."""
    return arm.replace(tasks={"numbers": (numbers,) * 3}, evaluation={"strategies": (strategy,)})


CLAIM = Claim(
    name="rlad",
    paper="arXiv 2510.02263, abstract",
    statement="By equal sampled tokens of training, sixteen solutions of a task with four abstractions hold a right one more often than sixteen "
    "of a policy that was trained without abstractions, and by the more the more steps a solution has.",
    recipe=ARM,
    arms={
        "rlad": ARM,
        "grpo": GRPO,
        "rlad_3": _of(ARM, 3, FOUR),
        "grpo_3": _of(GRPO, 3, ALONE),
        "rlad_4": _of(ARM, 4, FOUR),
        "grpo_4": _of(GRPO, 4, ALONE),
    },
    expected=Ordering(relations=("rlad > grpo by 0.03",)),
    dose=tuple(f"rlad{n} > grpo{n}" for n in ("_3", "", "_4")),
    reported=Ordering(relations=(f"rlad > rlad@{ALONE.name}",)),
    seeds=tuple(range(2000, 2012)),
    tuning_seeds=(991, 992),
    grid={"learner.lr": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)},
    tuning={"iterations": 8, "evaluation.every": 8},
    cost="sampled_tokens",
    equal_cost=True,
)
