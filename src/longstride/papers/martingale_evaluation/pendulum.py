"""CTD(0) with a network on a shaken pendulum that is turned at random: the value of that policy, at any fineness of time.

`horizon.limit` steps of `tasks.seconds` are an episode. With other seconds set `agent.levels.0.data.discount` to exp(-rate seconds)
and `agent.levels.0.data.reward_scale` to seconds: rewards are costs in a unit of time. `residual=true` of the critic is what the paper warns
of. In an environment of Gymnasium: `tasks.type=gym tasks.id=Pendulum-v1`, or any other with a box of actions. A policy that acts is evaluated
from walks that it has made: `martingale_evaluation/recorded`.
"""

import math

from longstride.control import ControlEvaluation, ControlRecipe, Pendulum, TrainingPhase
from longstride.curriculum import Fixed
from longstride.papers.martingale_evaluation.recipe import agent

SECONDS, RATE = 0.02, 2.0
"""Of a step, and of the discount in a second."""

RECIPE = ControlRecipe(
    name="martingale_evaluation/pendulum",
    tasks=Pendulum(seconds=SECONDS, shaking=2.0),
    agent=agent(math.exp(-RATE * SECONDS), reward_scale=SECONDS),
    phases=(TrainingPhase(iterations=1, episodes=100, updates=250), TrainingPhase(iterations=7, updates=250)),
    horizon=Fixed(limit=200),
    test_horizon=Fixed(limit=200),
    evaluation=ControlEvaluation(episodes=20, every=4),
)
