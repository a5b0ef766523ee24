"""PTR in a world of its own: which task is learned in which phase, and what a batch is made of."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from helpers import rows_of

from longstride.claims.tuning import axes
from longstride.control import (
    BehaviourCloning,
    ControlAgent,
    ControlEpisode,
    ControlEvaluation,
    ControlRecipe,
    ControlTasks,
    DeterministicPolicy,
    Given,
    GymnasiumTasks,
    Level,
    NStep,
    PointMaze,
    Several,
    TrainingPhase,
)
from longstride.control.envs import Spec, VectorEnv
from longstride.control.envs.base import VectorStep
from longstride.control.envs.maze import TASKS, maze
from longstride.control.evaluation import trained_agent
from longstride.control.recorded import write
from longstride.core.errors import RunError
from longstride.curriculum import Fixed
from longstride.models.mlp import Trunk
from longstride.papers.ptr.recipe import CLAIM


class Lever(VectorEnv):
    """One step: pulling a lever to -0.6 is a success where the goal is 0.6. The observation is nothing."""

    def __init__(self, count: int) -> None:
        self.goal = np.full((count, 1), 0.6)

    def reset(self, seed: int) -> np.ndarray:
        return np.zeros((len(self.goal), 1))

    def step(self, action_BA: np.ndarray) -> VectorStep:
        there_B = np.abs(action_BA + self.goal)[:, 0] < 0.3
        return VectorStep(self.reset(0), there_B.astype(float), there_B, ~there_B)

    def close(self) -> None:
        pass


class Levers(ControlTasks):
    """Data of goals below 0, to which the lever is pulled, and demonstrations of the one that is tested, where it goes the
    other way."""

    shown: int = 4

    @property
    def spec(self) -> Spec:
        return Spec(1, 1, (0,))

    def dataset(self, seed: int) -> list[ControlEpisode]:
        return [_pulled(goal, goal) for goal in (-0.6, -0.4, -0.2)]

    def demonstrated(self, seed: int) -> list[ControlEpisode]:
        return [_pulled(0.6, -0.6)] * self.shown

    def training(self, count: int, horizon: int) -> VectorEnv:
        return Lever(count)

    def tests(self, count: int, horizon: int) -> tuple[VectorEnv, Sequence[str]]:
        return Lever(count), ["lever"] * count


def _pulled(goal: float, action: float) -> ControlEpisode:
    return ControlEpisode(np.zeros((2, 1)), np.array([[action]]), np.ones(1), True, np.array([goal]))


RECIPE = ControlRecipe(
    name="levers",
    tasks=Levers(),
    agent=ControlAgent(
        levels=(
            Level(
                data=NStep(goals=Given()),
                policy=DeterministicPolicy(trunk=Trunk(width=8, depth=1, activation="relu")),
                extraction=BehaviourCloning(),
            ),
        ),
        batch=10,
        policy_lr=0.03,
    ),
    phases=(TrainingPhase(iterations=1, updates=40), TrainingPhase(iterations=1, updates=40, demonstrated=0.4)),
    horizon=Fixed(limit=1),
    test_horizon=Fixed(limit=1),
    evaluation=ControlEvaluation(episodes=1, every=1),
)


def test_a_new_task_is_learned_in_the_phase_that_has_its_demonstrations_and_old_ones_stay(tmp_path: Path) -> None:
    forgetting = RECIPE.replace(phases=(RECIPE.phases[0], RECIPE.phases[1].replace(demonstrated=1.0)))
    pulled = []
    for name, recipe in (("ptr", RECIPE), ("forgetting", forgetting)):
        recipe.train(tmp_path / name)
        assert [row["outcomes"] for row in rows_of(tmp_path / name, "eval")][1:] == [[0.0], [1.0]]
        learner, _ = trained_agent(recipe, tmp_path / name)
        old = np.array([[-0.6], [-0.2]], np.float32)
        pulled.append(learner.actor(0, explore=False)(np.zeros_like(old), old, np.ones(2, bool))[:, 0])
    assert np.abs(pulled[0] - [-0.6, -0.2]).max() < 0.15 < np.abs(pulled[1] - [-0.6, -0.2]).max()


def test_a_phase_with_demonstrations_that_are_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="set tasks.demonstrations"):
        RECIPE.replace(tasks={"shown": 0}).train(tmp_path)


def test_walks_of_other_tasks_have_other_goals_than_those_that_are_shown() -> None:
    tasks = PointMaze(maze="umaze", walks="reach", episodes=30, length=60, demonstrations=10)
    layout = maze("umaze")
    tested = {int(layout.number[goal]) for _, goal in TASKS["umaze"]}

    def goals(episodes: list[ControlEpisode]) -> set[int]:
        return set(layout.cell_of(np.stack([e.goal for e in episodes if e.goal is not None])).tolist())

    assert not goals(tasks.dataset(0)) & tested
    assert goals(tasks.demonstrated(0)) == tested and len(tasks.demonstrated(0)) == 10


def test_of_several_environments_each_has_demonstrations_that_say_which_it_is() -> None:
    parts: dict[str, ControlTasks] = {"first": Levers(shown=1), "second": Levers(shown=2)}
    shown = Several(parts=parts).demonstrated(0)
    assert [e.observation[0].tolist() for e in shown] == [[0, 1, 0], [0, 0, 1], [0, 0, 1]]


def test_several_files_are_data_and_one_is_demonstrations(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    names = [str(tmp_path / f"{k}.npz") for k in range(3)]
    for k, name in enumerate(names):
        observation, action = np.full((3, 3), float(k), np.float32), np.zeros((2, 1), np.float32)
        write(name, [ControlEpisode(observation, action, np.zeros(2, np.float32), False)])
    tasks = GymnasiumTasks(id="Pendulum-v1", data=tuple(names[:2]), demonstrations=names[2])
    assert [e.observation[0, 0] for e in tasks.dataset(0)] == [0, 1]
    assert [e.observation[0, 0] for e in tasks.demonstrated(0)] == [2]


def test_a_policy_that_is_only_cloned_is_tuned_over_the_rate_that_moves_it() -> None:
    assert {arm: list(axes(CLAIM, arm)) for arm in CLAIM.arms} == {
        arm: ["agent.policy_lr" if arm.endswith("cloned") else "agent.critic_lr"] for arm in CLAIM.arms
    }
