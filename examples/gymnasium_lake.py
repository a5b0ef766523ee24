"""FrozenLake of Gymnasium, played in words and trained with GRPO.

    longstride train examples/gymnasium_lake.py model=Qwen/Qwen3-0.6B

The environment prints its grid (`render_mode = "ansi"`), and the agent says where to go (`Action: right`). The reward
is the environment's own, 1 at the goal. `EnvironmentReward` says success: it takes `info["success"]` where an
environment gives it, and a threshold otherwise. The horizon doubles from 6 turns to 24.
"""

from longstride.adapters.gymnasium import Gymnasium
from longstride.adapters.seeded import EnvironmentReward
from longstride.curriculum import BudgetSchedule, Multiplicative
from longstride.learner.config import LearnerConfig
from longstride.methods import PPO, GroupRelative, Mean, OnPolicy
from longstride.rollout import RecentObservations
from longstride.run.recipe import Evaluation, Recipe

REWARD = EnvironmentReward(success_above=0.5)

RECIPE = Recipe(
    name="gymnasium_lake",
    iterations=50,
    episodes_per_iteration=128,
    group_size=8,
    model="Qwen/Qwen3-0.6B",
    tasks=Gymnasium(
        id="FrozenLake-v1",
        kwargs={"render_mode": "ansi", "is_slippery": False},
        goal="You stand on the field in brackets. Walk from S to G over frozen fields (F), not into a hole (H).",
    ),
    budget=BudgetSchedule(turns=Multiplicative(start=6, limit=24), turn_tokens=48),
    test_budget=BudgetSchedule(turns=24, turn_tokens=48),
    context=RecentObservations(keep=2),
    reward=REWARD,
    replay=OnPolicy(),
    credit=GroupRelative(),
    loss=PPO(aggregation=Mean(over="episode")),
    learner=LearnerConfig(lr=1e-5, warmup_steps=5),
    evaluation=Evaluation(tasks=64, every=10, reward=REWARD),
)
