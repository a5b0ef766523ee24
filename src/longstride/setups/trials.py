"""The setup of recipes that learn inside a context: trials of several episodes in worlds with a hidden rule.

A policy is trained on learning histories before the first iteration (`cloning`), and played in trials with rules that
it was not trained on, beside the learners that it is compared with. Then its weights stay; with `iterations` and
`learner.epochs=1` reinforcement learning goes on over whole trials. A turn reads its reward as one number and a new
episode as `next`, so that 60 pulls of a bandit are 300 tokens.

Rate, batch and lengths are a small model's. `base-trials` can copy and knows the words of these worlds, and nothing
else.
"""

from typing import Any

from longstride.curriculum import BudgetSchedule
from longstride.envs.base import TaskSource
from longstride.envs.hidden import Bandits, Corridors, DarkRooms
from longstride.learner.config import LearnerConfig
from longstride.methods import PPO, OnPolicy
from longstride.methods.trials import TrialReturn
from longstride.rewards import TaskReward
from longstride.rollout.context import TrialHistory
from longstride.rollout.hidden import Regret
from longstride.rollout.trial import Trial
from longstride.run.histories import LearningHistories
from longstride.run.imitation import Cloning
from longstride.run.recipe import Evaluation, Recipe
from longstride.strategies import Direct
from longstride.strategies.learners import UCB, AnyChoice, GreedyMean, PlayedBy, Thompson, TrialLearner

CONTEXT = TrialHistory(turn="{reward:g}", outcome="next")
"""How a trial is read."""
BANDITS = Bandits()
ROOMS = DarkRooms(size=5, turns=8)
CORRIDORS = Corridors()
BATCH, EPOCHS = 16, 4
"""Trials of an optimiser step, and passes over them: 1,250 steps of 5,000 trials. With 190 steps hardly anything was
learned inside a context on bandits."""


def recipe(
    name: str,
    histories: LearningHistories,
    tasks: TaskSource = BANDITS,
    episodes: int = 6,
    trials: int = 5000,
    beside: tuple[TrialLearner, ...] = (Thompson(), UCB(), GreedyMean(), AnyChoice()),
    **changes: Any,
) -> Recipe:
    """A recipe on trials, with changes as `Component.replace` takes them.

    Args:
        name: of the recipe.
        histories: what is imitated.
        tasks: the world.
        episodes: of a trial.
        trials: that are imitated.
        beside: learners that are played on the held-out tasks too.
    """
    return Recipe(
        name=name,
        iterations=1,
        episodes_per_iteration=8 * episodes,
        group_size=8,
        trial=Trial(episodes=episodes, start="new"),
        model="base-trials",
        cloning=Cloning(
            demonstrations=histories,
            episodes=trials * episodes,
            learner=LearnerConfig(
                lr=4e-3,
                warmup_steps=20,
                decay_steps=EPOCHS * trials // BATCH,
                batch_samples=BATCH,
                epochs=EPOCHS,
                dtype="float32",
                threads="auto",
            ),
        ),
        tasks=tasks,
        budget=BudgetSchedule(turns=100, turn_tokens=2),
        test_budget=BudgetSchedule(turns=100, turn_tokens=2),
        context=CONTEXT,
        reward=TaskReward(),
        replay=OnPolicy(),
        credit=TrialReturn(),
        loss=PPO(),
        learner=LearnerConfig(epochs=0, dtype="float32"),
        evaluation=Evaluation(
            tasks=100,
            baselines=False,
            measures=(Regret(),),
            strategies=(Direct(), *(PlayedBy(learner=learner) for learner in beside)),
        ),
    ).replace(**changes)
