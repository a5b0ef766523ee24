"""POPE on puzzles: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.envs.base import Mix
from longstride.envs.puzzles import Countdown
from longstride.methods import PPO, GroupRelative, Mean, MixedGroups
from longstride.papers.pope.method import OraclePrefix
from longstride.rollout.planning import Groups
from longstride.setups import puzzles
from longstride.stats import Ordering

RECIPE = puzzles.recipe(
    "pope",
    iterations=40,
    episodes_per_iteration=128,
    tasks=Countdown(largest=10, most=30, mix=Mix(easy=0, medium=0, hard=1)),
    sampler=OraclePrefix(share=0.7, checkpoints=2),
    replay=MixedGroups(),
    credit=GroupRelative(),
    loss=PPO(aggregation=Mean(over="episode")),
    learner={"lr": 5e-4, "batch_samples": 48},
    evaluation={"tasks": 300},
)


def _mix(easy: int, hard: int) -> dict[str, Mix]:
    """The change of `tasks` to shares of easy and hard tasks in training."""
    return {"mix": Mix(easy=easy, medium=0, hard=hard)}


ARM = RECIPE.replace(iterations=10, evaluation={"every": 10, "attempts": 4})
PLAIN = ARM.replace(sampler=Groups())
"""No guidance."""

# arms without guidance, or with nothing else, play more groups an iteration: sampled tokens are about equal
CLAIM = Claim(
    name="pope",
    paper="arXiv 2601.18779",
    statement="Guided and unguided hard tasks together solve held-out hard tasks that neither alone, nor easy tasks "
    "beside them, make solvable.",
    recipe=ARM,
    arms={
        "pope": ARM,
        "guided_only": ARM.replace(sampler={"unguided": False}, episodes_per_iteration=200),
        "hard_only": PLAIN.replace(episodes_per_iteration=280),
        "hard_and_easy": PLAIN.replace(episodes_per_iteration=464, tasks=_mix(1, 1)),
        "easy_pope": ARM.replace(tasks=_mix(1, 0)),
        "easy_only": PLAIN.replace(tasks=_mix(1, 0)),
    },
    measure="success_hard",
    expected=Ordering(relations=("pope > hard_only by 0.02",)),
    # what is solved without guidance is not guided
    control=Ordering(relations=("easy_pope > easy_only by 0.02",)),
    reported=Ordering(relations=("pope > guided_only", "guided_only > hard_only", "pope > hard_and_easy")),
    seeds=(20, 21, 22),
)
