"""PPO on the maze, online: eight iterations of walks of the policy as it is (see `lmrl_gym`)."""

from longstride.learner.critics import TurnValue
from longstride.methods import GAE, PPO, Mean
from longstride.setups import games

RECIPE = games.recipe(
    "lmrl_gym/ppo",
    iterations=8,
    episodes_per_iteration=128,
    credit=GAE(values="critic", lam=0.95, whiten=True),
    loss=PPO(aggregation=Mean(over="token")),
    critic=TurnValue(warmup=1),
    evaluation={"every": 8},
)
