"""FTPedel acts: least squares and met features against dense algebra, what is explored, and a hole in the data of a maze."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import rows_of
from pydantic import ValidationError

from longstride.control import (
    DQN,
    GRU,
    Batch,
    ControlAgent,
    ControlEpisode,
    ControlRecipe,
    ControlTasks,
    Greedy,
    Level,
    NStep,
    TransitionStore,
    UniformPolicy,
)
from longstride.control.agent import FurtherCritic
from longstride.control.envs import Spec, VectorEnv
from longstride.control.envs.base import VectorStep
from longstride.control.learner import ControlLearner
from longstride.core.errors import ConfigError
from longstride.models.mlp import Trunk
from longstride.papers.ftpedel.method import Designed, DesignedNets, DesignedQ, FeatureLeastSquares, HoledMaze
from longstride.papers.ftpedel.recipe import CLAIM, RECIPE

CONFIG = DesignedQ(features=6, width=1.0)


class ForkEnv(VectorEnv):
    """Two steps. The second of three actions goes to the side, and there the third earns 1; all else earns nothing."""

    def __init__(self, count: int) -> None:
        self.goal = np.zeros((count, 0))

    def reset(self, seed: int) -> np.ndarray:
        self.taken, self.place = 0, np.zeros((len(self.goal), 2))
        return self.place.copy()

    def step(self, action_BA: np.ndarray) -> VectorStep:
        number_B, side_B = action_BA.argmax(1), self.place[:, 1] > 0
        reward_B = (side_B & (number_B == 2) & (self.taken == 1)).astype(float)
        self.place = np.stack((np.full(len(number_B), self.taken + 1.0), (number_B == 1) & (self.taken == 0)), 1)
        self.taken += 1
        over_B = np.full(len(number_B), self.taken >= 2)
        return VectorStep(self.place.copy(), reward_B, over_B, ~over_B & False, reward_B > 0)

    def close(self) -> None:
        pass


class Fork(ControlTasks):
    """As data walks that go to the side, or do not."""

    side: bool = False

    @property
    def spec(self) -> Spec:
        return Spec(2, 3, (), discrete=True)

    def dataset(self, seed: int) -> list[ControlEpisode]:
        walks = [(a, b) for a in range(3) for b in range(3) if a != 1 or self.side] * 200
        return [
            ControlEpisode(
                np.array([[0.0, 0.0], [1.0, a == 1], [2.0, 0.0]]),
                np.eye(3)[[a, b]],
                np.array([0.0, a == 1 and b == 2]),
                True,
            )
            for a, b in walks
        ]

    def training(self, count: int, horizon: int) -> VectorEnv:
        return ForkEnv(count)

    def tests(self, count: int, horizon: int) -> tuple[VectorEnv, Sequence[str]]:
        return ForkEnv(count), ["fork"] * count


def made(seed: int = 0, n: int = 40) -> tuple[DesignedNets, Batch]:
    generator = torch.Generator().manual_seed(seed)
    state, after = torch.randn(2, n, 2, generator=generator)
    action = torch.eye(3)[torch.randint(3, (n,), generator=generator)]
    reward, gamma = torch.randn(n, generator=generator), torch.full((n,), 0.8)
    gamma[::5] = 0
    return CONFIG.make(2, 3, generator), Batch(state, action, reward, gamma, after, reward)


def dense(nets: DesignedNets, state: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
    """[N, F A] features of states and actions."""
    return torch.einsum("nf,na->nfa", nets.features(state), action).flatten(1)


def test_least_squares_is_ridge_regression_on_features_of_states_and_actions() -> None:
    nets, batch = made()
    solver, f = FeatureLeastSquares(nets, batch), dense(nets, batch.state_BS, batch.action_BA)
    target, prior = batch.reward_B[:, None], torch.ones(6, 3, 1)
    by_hand = torch.linalg.solve(f.T @ f + torch.eye(18), f.T @ target + 1)
    torch.testing.assert_close(solver.least_squares(target, prior).reshape(18, 1), by_hand, atol=1e-4, rtol=1e-4)


def test_met_features_are_the_discounted_sum_of_what_the_policy_is_led_to() -> None:
    nets, batch = made()
    w = torch.randn(6, 3, generator=torch.Generator().manual_seed(3))
    f = dense(nets, batch.state_BS, batch.action_BA)
    then = torch.eye(3)[(nets.features(batch.next_state_BS) @ w).argmax(-1)]
    onward = torch.linalg.solve(
        f.T @ f + torch.eye(18), f.T @ (batch.discount_B[:, None] * dense(nets, batch.next_state_BS, then))
    )
    first = batch.state_BS[:2]
    here = dense(nets, first, torch.eye(3)[(nets.features(first) @ w).argmax(-1)]).mean(0)
    total = torch.zeros(18)
    for _ in range(200):
        total, here = total + here, onward.T @ here
    torch.testing.assert_close(
        FeatureLeastSquares(nets, batch).met(w, first).flatten(), 0.2 * total, atol=1e-4, rtol=1e-3
    )


def test_exploration_goes_where_the_data_lack_something_and_nowhere_else() -> None:
    seen = np.array([[0.0, 0.0], [1.0, 1.0]]), np.zeros((2, 0)), np.ones(2, bool)
    level = RECIPE.agent.levels[0].replace(extraction={"any_action": 0.0}, critic={"width": 0.5})
    for side in (False, True):
        tasks = Fork(side=side)
        store = TransitionStore.of(tasks.dataset(0))
        learner = ControlLearner(RECIPE.agent.replace(levels=(level,)), tasks.spec, 0)
        found = learner.train(1, [(store, 4)])
        assert (found["lacking"] > 0.05, found["explored"]) == ((True, 1.0) if not side else (False, 0.0))
        trained = learner.actor(0, explore=True)(*seen).argmax(1)
        tested = learner.actor(0, explore=False)(*seen).argmax(1)
        assert trained[0] == 1 and (tested.tolist() == [1, 2]) is side


def test_a_fork_of_ones_own_is_learned_from_data_that_lack_its_side_and_a_run_goes_on_as_it_was(tmp_path: Path) -> None:
    recipe = RECIPE.replace(
        tasks=Fork(), horizon={"limit": 2}, test_horizon={"limit": 2}, evaluation={"episodes": 2, "every": 2},
        phases=(RECIPE.phases[0], RECIPE.phases[1].replace(iterations=5, episodes=12)),
    )  # fmt: skip
    recipe.train(tmp_path / "whole")
    recipe.replace(phases=(recipe.phases[0], recipe.phases[1].replace(iterations=1))).train(tmp_path / "parts")
    recipe.train(tmp_path / "parts", resume=True)
    whole, parts = (rows_of(tmp_path / name, "eval")[-1]["measures"] for name in ("whole", "parts"))
    assert whole == parts | {"online_success": whole["online_success"]}
    assert whole["success"] == [1.0, 1.0] and whole["explored"][0] >= 1


def test_walks_of_a_maze_stop_before_the_part_that_is_lacking() -> None:
    tasks = HoledMaze(maze="umaze", hold=10, episodes=40, length=30, lacking=0.4)
    walks, whole = tasks.dataset(0), tasks.replace(lacking=0.0).dataset(0)
    assert tasks.border == pytest.approx(3.0)
    assert max(walk.observation[:, 0].max() for walk in walks) < 3 < max(w.observation[:, 0].max() for w in whole)
    starts = np.stack([walk.observation[0] for walk in whole])
    for walk in walks:
        of = whole[int((starts == walk.observation[0]).all(1).argmax())]
        assert (of.observation[: walk.length + 1] == walk.observation).all()
        assert walk.length == of.length or (not walk.terminated and of.observation[walk.length + 1, 0] >= 3)
    with pytest.raises(ConfigError, match="task 4 begins in the part that data lack"):
        tasks.replace(task=4).dataset(0)
    with pytest.raises(ConfigError, match="leave out wandering"):
        tasks.replace(wandering=0.5)


@pytest.mark.parametrize("task", [1, 2, 3])
def test_each_strength_of_the_claim_lacks_more_of_the_way_than_the_one_before(task: int) -> None:
    arms = [CLAIM.arms[text.split(" ")[0]] for text in CLAIM.dose]
    tasks = [arm.tasks.replace(task=task, episodes=20, length=30) for arm in arms if isinstance(arm, ControlRecipe)]
    steps = [sum(walk.length for walk in of.dataset(0)) for of in tasks]
    assert len(steps) == 3 and steps[0] > steps[1] > steps[2]


def test_a_critic_beside_one_that_is_solved_learns_alone() -> None:
    beside = FurtherCritic(critic=DQN(trunk=Trunk(width=4, depth=1)))
    level = Level(critic=CONFIG, further={"beside": beside}, policy=UniformPolicy(), extraction=Greedy())
    tasks = HoledMaze(maze="umaze", hold=10, episodes=4, length=10)
    learner = ControlLearner(ControlAgent(levels=(level,), batch=8), tasks.spec, 0)
    metrics = learner.train(1, [(TransitionStore.of(tasks.dataset(0)), 8)])
    assert np.isfinite(metrics["beside.q_loss"])


def test_what_is_solved_goes_with_no_memory_and_a_range_goes_up() -> None:
    with pytest.raises(ValidationError, match="expected the least first"):
        DesignedQ(target_range=(1.0, 0.0))
    with pytest.raises(ValidationError, match="designed_q is computed from all steps as they are: leave out memory"):
        Level(data=NStep(), critic=CONFIG, memory=GRU(), policy=UniformPolicy(), extraction=Designed())
