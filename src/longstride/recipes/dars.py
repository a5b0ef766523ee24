"""DARS-B: more rollouts for hard tasks, and full batches. Yang et al., 2025, arXiv 2508.13755.

What a group adds to the gradient grows with p (1 - p): tasks of middling difficulty drown the hard ones, whose success
is what widens what the model can do at all. So a first look tells how hard a task is, and hard ones are played more
often; and updates take the whole batch, for noise in them costs exploration.

| place | choice | paper and released code (Qwen2.5-Math) | here |
|---|---|---|---|
| plan | `DifficultyAdaptive` | 8 answers, then more, 64 at most (hardness weighted) | 8, then more, 32 at most |
| plan | tasks | 3,072 an update | 32 |
| roll out | sampling | temperature 1, 3,072 tokens | temperature 1, 160 tokens |
| score | `TaskReward` | right or wrong | the same |
| credit | `GroupRelative`, mixed groups only | r - mean | the same |
| update | `PPO` over the whole batch | two passes, clip 0.2, no KL; tokens summed, divided by a constant | the same, mean over tokens |
| update | rate | 5e-6 | 5e-4, for two steps an iteration (1e-3 lost what it had won) |

Deviations: model and tasks are those of `grpo`; the release's entropy bonus, 0.001 by default, is left out. Both stages
are one group for the advantage, as in the release.
"""

from longstride.claims.claim import Claim
from longstride.methods import PPO, GroupRelative
from longstride.recipes import grpo
from longstride.rollout.planning import DifficultyAdaptive
from longstride.stats import Ordering

BREADTH = 100_000
"""Samples of an optimiser step: all that an iteration has."""

RECIPE = grpo.RECIPE.model_copy(
    update={
        "name": "dars",
        "iterations": 30,
        "sampler": DifficultyAdaptive(target="hardness", most=32),
        "credit": GroupRelative(scale="none", mixed_only=True),
        "loss": PPO(),
        "learner": grpo.RECIPE.learner.model_copy(update={"lr": 5e-4, "batch_samples": BREADTH}),
    }
)

UNIFORM = "sampler={type='groups'}"
MINI_BATCH = ("learner.batch_samples=64", f"learner.lr={grpo.RECIPE.learner.lr}")

CLAIM = Claim(
    name="dars",
    paper="arXiv 2508.13755, abstract",
    statement="More rollouts for hard tasks raise pass@k more than more rollouts for all.",
    scale=("iterations=16", "episodes=128", "evaluation.every=16", "evaluation.tasks=100", "evaluation.samples=32"),
    arms={
        "dars": MINI_BATCH,
        "uniform": (*MINI_BATCH, UNIFORM),
        "uniform_24": (*MINI_BATCH, UNIFORM, "group=24", "episodes=384"),
        "alike_dars": (*MINI_BATCH, grpo.ALIKE),
        "alike_uniform": (*MINI_BATCH, grpo.ALIKE, UNIFORM),
    },
    measure="pass@32",
    expected=Ordering(relations=("dars > uniform", "dars > uniform_24")),
    # of tasks of one middling difficulty none is drowned
    control=Ordering(relations=("alike_dars > alike_uniform by 0.03",)),
    seeds=(0, 1, 2, 3, 4),
)
