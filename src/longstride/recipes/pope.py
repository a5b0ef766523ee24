"""POPE: privileged on-policy exploration. Qu, Setlur et al., 2026, "POPE: Learning to Reason on Hard Problems via
Privileged On-Policy Exploration", arXiv 2601.18779.

Where no rollout succeeds there is nothing to learn from. There the policy is shown the beginning of a solution and goes
on from it; what it learns from that place on serves it when it comes near there by itself. The solution is never
imitated: it is read, and what the policy says after it is trained.

| place | choice | paper; (c): code of its authors (Qwen3-4B-Instruct) | here |
|---|---|---|---|
| plan | tasks | no success in 128 rollouts of 32k tokens | Countdown of four numbers: 3 % of rollouts succeed |
| plan | `OraclePrefix` | shortest of the beginnings, up to a quarter of the solution, with a success in 8 | up to two of its three steps, a success in 8 |
| plan | guided to unguided | each hard problem in both forms, 1:1 | the same, as long as it is hard |
| roll out | sampling | temperature 0.8, 16,384 tokens (c) | temperature 1, 160 tokens |
| score | `TaskReward` | right or wrong | the same |
| credit | `GroupRelative`, mixed groups only | GRPO; groups of 4 or 8, r - mean (c) | groups of 8, divided by the deviation |
| update | `PPO` | REINFORCE with a capped ratio, 1e-6, clipped at 0.3 (c) | 5e-4, clipped at 1, steps of 48 episodes: few groups are mixed |

Deviations: the beginning stands on the policy's side, as if it had said it, and not in the prompt with the instruction
to study it and to go on: a model of half a million parameters follows no instructions. So a guided episode stands
exactly where an unguided one would that had begun like that, which is the overlap that the paper explains its transfer
by; and so a solution has to be spelled as the policy spells its own. A task is hard when a group of 8 has no success,
which says less than 128 rollouts. Beginnings are looked for in every iteration, as tasks are drawn afresh, by the
policy as it is, and where none leads to a success the task teaches nothing; the paper looks once, by the base model,
and then takes the quarter. A task that was solved without guidance is not guided. A solution has three steps here, and
each is a choice, so the share that is shown is larger.

How the paper looks for beginnings is from notes on it. (c) is the default configuration for POPE in ars22/pipeline-rl,
of some months before the paper; the settings of the paper itself could not be checked.
"""

from longstride.claims.claim import Claim
from longstride.envs.base import Mix
from longstride.envs.puzzles import Countdown
from longstride.methods import GroupRelative
from longstride.recipes import grpo
from longstride.rollout.branching import OraclePrefix
from longstride.run.recipe import Evaluation
from longstride.stats import Ordering

RECIPE = grpo.RECIPE.model_copy(
    update={
        "name": "pope",
        "iterations": 40,
        "episodes": 128,
        "tasks": Countdown(largest=10, most=30, mix=Mix(easy=0, medium=0, hard=1)),
        "sampler": OraclePrefix(share=0.7, checkpoints=2),
        "credit": GroupRelative(mixed_only=True),
        "learner": grpo.RECIPE.learner.model_copy(update={"lr": 5e-4, "batch_samples": 48}),
        "evaluation": Evaluation(tasks=300, every=10, baselines=False),
    }
)

PLAIN = "sampler={type='groups'}"
"""No guidance."""


def mix(easy: int, hard: int) -> str:
    """The override for shares of easy and hard tasks in training."""
    return f"tasks.mix={{easy={easy}, medium=0, hard={hard}}}"


# arms without guidance, or with nothing else, play more groups an iteration: sampled tokens are about equal
CLAIM = Claim(
    name="pope",
    paper="arXiv 2601.18779",
    statement="Guided and unguided hard tasks together solve held-out hard tasks that neither alone, nor easy tasks "
    "beside them, make solvable.",
    scale=("iterations=10", "evaluation.every=10", "evaluation.samples=4"),
    arms={
        "pope": (),
        "guided_only": ("sampler.unguided=false", "episodes=200"),
        "hard_only": (PLAIN, "episodes=280"),
        "hard_and_easy": (PLAIN, "episodes=464", mix(1, 1)),
        "easy_pope": (mix(1, 0),),
        "easy_only": (PLAIN, mix(1, 0)),
    },
    measure="success_hard",
    expected=Ordering(
        relations=("pope > guided_only", "guided_only > hard_only", "pope > hard_only by 0.02", "pope > hard_and_easy")
    ),
    # what is solved without guidance is not guided
    control=Ordering(relations=("easy_pope > easy_only by 0.02",)),
    seeds=(0, 1, 2, 3, 4),
)
