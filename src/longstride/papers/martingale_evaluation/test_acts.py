"""Martingale evaluation acts: what each loss is and where its slope vanishes, values of a diffusion, recorded walks."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import rows_of

from longstride.control import Batch, ControlEpisode, NStep, TransitionStore, UniformPolicy
from longstride.control.envs import Spec, play
from longstride.control.noise import RunNoise
from longstride.control.on_policy import ReturnNets
from longstride.control.recorded import write
from longstride.core.errors import ConfigError, RunError
from longstride.models.mlp import Trunk
from longstride.papers.martingale_evaluation import pendulum, recorded
from longstride.papers.martingale_evaluation.method import DiffusionWalks, MartingaleValue, RecordedWalks
from longstride.papers.martingale_evaluation.recipe import RECIPE

SMALL = Trunk(width=8, depth=1, norm=False)
POLICY = UniformPolicy().make(1, 2, torch.Generator())
WALK = ControlEpisode(np.arange(4.0)[:, None], np.zeros((3, 1)), np.array([1.0, 2.0, 4.0]), True)
DATA, STORE = NStep(discount=0.5), TransitionStore.of([WALK])


def slope_of(critic: MartingaleValue, nets: ReturnNets) -> torch.Tensor:
    """Of the loss over all steps of the walk, in all weights."""
    rows = np.arange(3)
    batch = DATA(STORE, Spec(1, 1, ()), rows, np.random.default_rng(0), critic.returns(nets, DATA, STORE))
    loss, _ = critic.loss(nets, batch, POLICY, RunNoise.seeded(0), conservative=True)
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(nets.v.parameters()))])


@pytest.mark.parametrize("lam", [0.0, 0.6, 1.0])
def test_a_step_is_that_of_the_martingales_orthogonality_to_traces_of_slopes(lam: float) -> None:
    critic = MartingaleValue(trunk=SMALL, lam=lam)
    nets = critic.make(1, 1, torch.Generator().manual_seed(0))
    critic.before_updates(nets)
    trace, expected = torch.zeros(()), torch.zeros(())
    for t in range(3):
        seen = torch.tensor([[float(t)], [float(t + 1)]])
        now, then = nets.v(seen)[0, :, 0]
        slope = torch.cat([g.flatten() for g in torch.autograd.grad(now, list(nets.v.parameters()))])
        trace = 0.5 * lam * trace + slope
        expected = expected + trace * (WALK.reward[t] + 0.5 * then * (t < 2) - now).detach()
    torch.testing.assert_close(slope_of(critic, nets), -2 * expected / 3)


def test_the_mean_square_has_a_slope_in_both_values() -> None:
    critic = MartingaleValue(trunk=SMALL, residual=True)
    nets = critic.make(1, 1, torch.Generator().manual_seed(0))
    critic.before_updates(nets)
    v = nets.v(torch.arange(4.0)[:, None])[0, :, 0]
    error = torch.tensor(WALK.reward, dtype=torch.float32) + 0.5 * v[1:] * torch.tensor([1.0, 1.0, 0.0]) - v[:-1]
    by_hand = torch.autograd.grad(error.square().mean(), list(nets.v.parameters()))
    torch.testing.assert_close(slope_of(critic, nets), torch.cat([g.flatten() for g in by_hand]))


def test_without_a_restart_a_value_next_door_that_has_moved_counts_as_it_is_now() -> None:
    critic = MartingaleValue(trunk=SMALL, lam=0.0)
    nets = critic.make(1, 1, torch.Generator().manual_seed(0))
    critic.before_updates(nets)
    with torch.no_grad():
        nets.v.biases[-1] += 3.0
    rows, none = np.arange(2), np.random.default_rng(0)
    batch: Batch = DATA(STORE, Spec(1, 1, ()), rows, none, critic.returns(nets, DATA, STORE))
    _, metrics = critic.loss(nets, batch, POLICY, RunNoise.seeded(0), conservative=True)
    now = nets.v(torch.arange(1.0, 3.0)[:, None])[0, :, 0]
    assert metrics["v_target"].item() == pytest.approx((1.5 + 0.5 * now.mean()).item(), rel=1e-5)


def test_a_known_value_is_the_mean_of_discounted_rewards_to_come() -> None:
    tasks, rate = DiffusionWalks(mesh=100, reversion=0.7, noise=1.3), 1.5
    gamma = math.exp(-rate / 100)
    walks = play(tasks.training(4_000, 100), lambda seen, goal, first: np.zeros((len(seen), 1)), 0)
    assert all(walk.terminated and walk.length == 100 for walk in walks[:5])
    returned = np.stack([walk.reward for walk in walks]) @ gamma ** np.arange(100)
    value = np.array([tasks.values(walk, gamma)[0] for walk in walks])
    high = np.abs([walk.observation[0, 1] for walk in walks]) > 1
    assert returned.mean() == pytest.approx(value.mean(), rel=0.05)
    assert returned[high].mean() == pytest.approx(value[high].mean(), rel=0.05)


def test_errors_are_measured_against_returns_and_the_known_value() -> None:
    critic = MartingaleValue(trunk=SMALL)
    nets = critic.make(1, 1, torch.Generator().manual_seed(0))
    v = nets.v(torch.arange(4.0)[:, None])[0, :, 0].detach().numpy()
    found = critic.measures(nets, DATA, WALK, np.zeros(3))
    assert found["value_error"] == pytest.approx(np.sqrt(np.mean((v[:2] - [3.0, 4.0]) ** 2)), rel=1e-5)
    assert found["true_error"] == pytest.approx(np.sqrt(np.mean(v[:3] ** 2)), rel=1e-5)
    assert set(critic.measures(nets, DATA, WALK, None)) == {"value_error"}


def test_the_recipe_comes_nearer_to_the_value_of_another_diffusion(tmp_path: Path) -> None:
    recipe = RECIPE.replace(
        tasks={"mesh": 5, "walks": 60, "noise": 0.5},
        agent={"levels": (RECIPE.agent.levels[0].replace(critic={"trunk": SMALL}),), "batch": 64, "critic_lr": 0.02},
        phases=({"iterations": 1, "updates": 150},),
        evaluation={"episodes": 20, "every": 1},
    )
    recipe.train(tmp_path)
    first, last = (row["measures"]["true_error"] for row in rows_of(tmp_path, "eval"))
    assert np.mean(last) < 0.5 * np.mean(first)


def test_walks_of_ones_own_are_learned_from_and_one_in_ten_is_held_out(tmp_path: Path) -> None:
    walks = [
        ControlEpisode(np.array([[k], [k + 1.0], [k + 2.0]]), np.ones((2, 1)), np.array([1.0, k]), k % 2 == 0)
        for k in range(20)
    ]
    write(str(tmp_path / "mine.npz"), walks)
    tasks = RecordedWalks(data=str(tmp_path / "mine.npz"))
    assert [e.observation[0, 0] for e in tasks.dataset(0)] == [k for k in range(20) if k not in (9, 19)]
    env, _ = tasks.tests(3, 100)
    again = play(env, lambda seen, goal, first: np.zeros((len(seen), 1)), 0)
    assert [e.observation[:, 0].tolist() for e in again] == [[9, 10, 11], [19, 20, 21], [9, 10, 11]]
    assert [e.reward.tolist() for e in again] == [[1, 9], [1, 19], [1, 9]]
    assert not any(e.terminated for e in again)
    recipe = recorded.RECIPE.replace(tasks=tasks, phases=({"iterations": 1, "updates": 3},), evaluation={"episodes": 2})
    recipe.train(tmp_path / "run")
    assert set(rows_of(tmp_path / "run", "eval")[-1]["measures"]) == {"success", "online_success", "value_error"}


def test_walks_that_cannot_be_used_are_refused_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected walks, such as tasks.data=mine.hdf5"):
        _ = RecordedWalks().spec
    write(str(tmp_path / "few.npz"), [WALK] * 3)
    with pytest.raises(RunError, match="expected at least 10 walks of one size .*, got 3"):
        _ = RecordedWalks(data=str(tmp_path / "few.npz")).spec
    with pytest.raises(ConfigError, match="recorded walks are not collected"):
        RecordedWalks(data=str(tmp_path / "few.npz"), held_out=3).training(1, 1)


def test_a_policy_is_evaluated_on_the_walks_that_it_makes_itself(tmp_path: Path) -> None:
    recipe = pendulum.RECIPE.replace(
        phases=({"iterations": 1, "episodes": 3, "updates": 3},), horizon={"limit": 5}, test_horizon={"limit": 5},
        evaluation={"episodes": 2},
    )  # fmt: skip
    recipe.train(tmp_path)
    assert {"value_error", "return"} <= set(rows_of(tmp_path, "eval")[-1]["measures"])
