"""A guessing game behind an OpenEnv server, trained with GRPO.

    pip install 'longstride[openenv]' openenv
    python examples/openenv_guess_server.py &
    longstride train examples/openenv_guess.py model=Qwen/Qwen3-0.6B

An episode is one web socket, and so one session of the server. The server's own schema says what an action is; the
agent writes it as JSON (`Action: {"guess": 7}`), or, as this one has a single field, the value alone (`Action: 7`).
`sessions` is what the server allows at once, its `max_concurrent_envs`.
"""

from longstride.adapters.openenv import Openenv
from longstride.adapters.seeded import EnvironmentReward
from longstride.curriculum import BudgetSchedule
from longstride.learner.config import LearnerConfig
from longstride.methods import PPO, GroupRelative, Mean, OnPolicy
from longstride.rollout import FullHistory
from longstride.run.recipe import Evaluation, Recipe

RECIPE = Recipe(
    name="openenv_guess",
    iterations=50,
    episodes_per_iteration=128,
    group_size=8,
    model="Qwen/Qwen3-0.6B",
    tasks=Openenv(address="http://127.0.0.1:8000", goal="Find the number.", sessions=8),
    budget=BudgetSchedule(turns=5, turn_tokens=48),
    test_budget=BudgetSchedule(turns=5, turn_tokens=48),
    context=FullHistory(),
    reward=EnvironmentReward(),
    replay=OnPolicy(),
    credit=GroupRelative(),
    loss=PPO(aggregation=Mean(over="episode")),
    learner=LearnerConfig(lr=1e-5, warmup_steps=5),
    evaluation=Evaluation(tasks=64, every=10, reward=EnvironmentReward()),
)
