"""Agent-RLVR in a house whose corridors nobody gets through by chance: the recipe and its claim."""

from typing import Any

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.curriculum import BudgetSchedule
from longstride.envs.hidden import Corridors
from longstride.learner.config import LearnerConfig
from longstride.methods import PPO, GroupRelative, Mean, MixedGroups
from longstride.papers.agent_rlvr.method import Guided, HintedTasks, HintsFollowed, WithoutHints
from longstride.rewards import TaskReward
from longstride.rollout import Groups
from longstride.rollout.context import FullHistory
from longstride.run.imitation import Cloning
from longstride.run.recipe import Evaluation, Recipe
from longstride.setups.small import FAST
from longstride.stats import Ordering

ROOMS, DOORS = 5, 4
"""Of a corridor: by chance one attempt in 1,024 gets through."""
LIMITS = BudgetSchedule(turns=ROOMS, turn_tokens=2)
"""A turn is a door."""
WORDS = " ; {hint}"
"""Known to the start."""
LEARNER = LearnerConfig(lr=1e-3, warmup_steps=5, epochs=2, batch_samples=256)

RECIPE = Recipe(
    name="agent_rlvr",
    iterations=12,
    episodes_per_iteration=128,
    group_size=8,
    model="base-trials",
    # ways are drawn anew for each of these tasks: they teach to follow a hint, and nothing of the house
    cloning=Cloning(
        demonstrations=HintsFollowed(tasks=HintedTasks(tasks=Corridors(rooms=ROOMS, doors=DOORS), words=WORDS)),
        episodes=2000,
        learner=LearnerConfig(lr=2e-3, warmup_steps=20, batch_samples=64).replace(**FAST),
    ),
    tasks=Corridors(rooms=ROOMS, doors=DOORS, house=0),
    sampler=Guided(words=WORDS),
    budget=LIMITS,
    test_budget=LIMITS,
    context=FullHistory(),
    reward=TaskReward(),
    replay=WithoutHints(),
    credit=GroupRelative(),
    loss=PPO(dual_clip=3.0, aggregation=Mean(over="token")),
    learner=LEARNER.replace(**FAST),
    evaluation=Evaluation(every=4, tasks=200, baselines=False),
).replace(engine={"processes": "auto"})

ARM = RECIPE.replace(iterations=20, evaluation={"every": 2})
# an iteration without hints samples about half of the tokens
_rl = {"sampler": Groups(), "replay": MixedGroups(), "iterations": 80}


def _rooms(number: int) -> dict[str, Any]:
    """The change of a recipe to corridors of so many rooms."""
    return {"tasks": {"rooms": number}, "cloning": {"demonstrations": {"tasks": {"tasks": {"rooms": number}}}}}


_middle, _short = _rooms(3), _rooms(2)

CLAIM = Claim(
    name="agent_rlvr",
    paper="arXiv 2506.11425, abstract",
    statement="By equal sampled tokens, tasks that one attempt in a thousand solves are learned with attempts under hints that are dropped in the "
    "update, and not without; and the more of them are solved without a hint, the less a hint helps.",
    recipe=ARM,
    arms={
        "guided": ARM,
        "rl": ARM.replace(**_rl),
        "guided_3": ARM.replace(**_middle),
        "rl_3": ARM.replace(**_rl, **_middle),
        "guided_2": ARM.replace(**_short),
        "rl_2": ARM.replace(**_rl, **_short),
        "kept": ARM.replace(replay=MixedGroups()),
    },
    worlds={"tasks.house": Between(low=0, high=9999)},
    expected=Ordering(relations=("guided > rl by 0.2",)),
    # of corridors of two rooms one attempt in 16 gets through
    dose=("guided_2 > rl_2", "guided_3 > rl_3", "guided > rl"),
    reported=Ordering(relations=("guided > kept",)),
    seeds=tuple(range(1910, 1920)),
    tuning_seeds=(990, 991),
    grid={"learner.lr": (1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 4e-3)},
    cost="sampled_tokens",
    equal_cost=True,
)
