"""A world of a test's own: one step, in which the action should be what is seen. Learned in some 150 updates."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from longstride.control import ControlEpisode, ControlRecipe, ControlTasks
from longstride.control.data import TransitionStore
from longstride.control.envs import Spec, VectorEnv, play
from longstride.control.envs.base import VectorStep
from longstride.control.evaluation import evaluate, measures_of
from longstride.control.learner import ControlLearner
from longstride.core.seeds import derive
from longstride.run.experiment import Experiment

PLACES = np.array([-0.8, 0.0, 0.8])
"""What discrete actions aim at."""


class Aim(VectorEnv):
    """B targets between -1 and 1; a reward is minus the squared distance, scaled, and the episode ends."""

    def __init__(self, tasks: "Aiming", count: int) -> None:
        self.tasks, self.goal = tasks, np.zeros((count, 0))

    def reset(self, seed: int) -> np.ndarray:
        self.rng = np.random.default_rng(seed)
        self.target = self.rng.uniform(-1, 1, (len(self.goal), 1))
        return self.target.astype(np.float32)

    def step(self, action_BA: np.ndarray) -> VectorStep:
        off_B = self.tasks.aimed(action_BA) - self.target[:, 0]
        noise_B = self.tasks.noise * self.rng.normal(size=len(off_B))
        over_B = np.ones(len(off_B), dtype=bool)
        return VectorStep(self.target.astype(np.float32), self.tasks.scale * (noise_B - off_B**2), over_B, ~over_B)


class Aiming(ControlTasks):
    """Targets, and how far from them an action is (`off`)."""

    discrete: bool = False
    scale: float = 1.0
    noise: float = 0.0

    @property
    def spec(self) -> Spec:
        return Spec(1, 3, (), discrete=True) if self.discrete else Spec(1, 1, ())

    def aimed(self, action_BA: np.ndarray) -> np.ndarray:
        return PLACES[action_BA.argmax(1)] if self.discrete else action_BA[:, 0].clip(-1, 1)

    def dataset(self, seed: int) -> list[ControlEpisode]:
        """256 actions at random."""

        def act(observation_BO: np.ndarray, goal_BG: np.ndarray, first_B: np.ndarray) -> np.ndarray:
            rng = np.random.default_rng(derive(seed, "actions"))
            return np.eye(3)[rng.integers(3, size=256)] if self.discrete else rng.uniform(-1, 1, (256, 1))

        return play(Aim(self, 256), act, seed)

    def training(self, count: int, horizon: int) -> Aim:
        return Aim(self, count)

    def tests(self, count: int, horizon: int) -> tuple[Aim, Sequence[str]]:
        return Aim(self, count), ["aim"] * count

    def measures(self, episode: ControlEpisode) -> dict[str, float]:
        return {"off": float(abs(self.aimed(episode.action) - episode.observation[:1, 0])[0])}


def off_after(
    recipe: Experiment, tasks: ControlTasks, updates: int = 150, extraction: Any = None, **critic: Any
) -> tuple[float, ControlLearner]:
    """How far from its target the agent of a recipe aims, on average, after updates from the data of `tasks`; and the
    agent. Networks are smaller and rates higher, and rewards as they are; further changes are the critic's."""
    assert isinstance(recipe, ControlRecipe)
    (level,) = recipe.agent.levels
    small = {"trunk": {"width": 16}}
    level = level.replace(
        data={"reward_scale": 1.0},
        critic=(small if "trunk" in type(level.critic).model_fields else {}) | critic,
        policy={} if level.policy.discrete else small,
        extraction=extraction or {},
    )
    agent = recipe.agent.replace(levels=(level,), batch=64 * recipe.agent.slices, critic_lr=1e-2, policy_lr=1e-2)
    recipe = recipe.replace(tasks=tasks, agent=agent, evaluation={"episodes": 200}, test_horizon={"limit": 1})
    learner = ControlLearner(agent, tasks.spec, seed=0)
    learner.train(updates, [(TransitionStore.of(tasks.dataset(0)), agent.batch)])
    return float(np.mean(measures_of(recipe, learner, evaluate(recipe, learner))["off"])), learner
