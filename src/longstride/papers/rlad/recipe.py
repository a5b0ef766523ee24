"""RLAD on Countdown: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.envs.base import Mix
from longstride.envs.puzzles import Countdown
from longstride.learner.config import LearnerConfig
from longstride.methods import PPO, GroupRelative, Mean, MixedGroups
from longstride.papers.rlad.method import Abstracted, Abstracting, AbstractionForm, AbstractionsShown
from longstride.rollout import Groups
from longstride.run.imitation import Cloning
from longstride.setups import puzzles
from longstride.setups.small import FAST
from longstride.stats import Ordering
from longstride.strategies import Direct
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
    tasks=Countdown(largest=10, most=30, mix=Mix(easy=0, medium=1, hard=1)),
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
).replace(engine={"kernels": "auto", "processes": "auto"})

ARM = RECIPE.replace(evaluation={"tasks": 120, "every": 8})
_grpo = {"sampler": Groups(), "iterations": 24}
_three, _four = {"tasks": {"numbers": (3, 3, 3)}}, {"tasks": {"numbers": (4, 4, 4)}}
_effect = "rlad{0}@abstracting_4_4_by_verifier > grpo{0}@best_of_16_by_verifier"

CLAIM = Claim(
    name="rlad",
    paper="arXiv 2510.02263, abstract",
    statement="By equal sampled tokens of training, sixteen solutions of a task with four abstractions hold a right one more often than sixteen "
    "of a policy that was trained without abstractions, and by the more the more steps a solution has.",
    recipe=ARM,
    arms={
        "rlad": ARM,
        "grpo": ARM.replace(**_grpo),
        "rlad_3": ARM.replace(**_three),
        "grpo_3": ARM.replace(**_grpo, **_three),
        "rlad_4": ARM.replace(**_four),
        "grpo_4": ARM.replace(**_grpo, **_four),
    },
    expected=Ordering(relations=(_effect.format("") + " by 0.03",)),
    dose=tuple(_effect.format(arm) for arm in ("_3", "", "_4")),
    reported=Ordering(
        relations=(
            "rlad@abstracting_16_1_by_verifier > rlad@abstracting_1_16_by_verifier",
            "rlad@abstracting_4_4_by_verifier > rlad@best_of_16_by_verifier",
        )
    ),
    seeds=tuple(range(2000, 2012)),
    tuning_seeds=(991, 992),
    grid={"learner.lr": (1e-4, 3e-4, 1e-3, 2e-3, 4e-3)},
    tuning={"iterations": 8, "evaluation.every": 8},
    cost="sampled_tokens",
    equal_cost=True,
)
