"""Scaled Q-learning: gap and target by hand; features; what is learned where the data lack the best start; and walks
with discrete actions."""

import math

import numpy as np
import pytest
import torch

from longstride.control import (
    Batch,
    CompassMaze,
    ControlAgent,
    ControlEpisode,
    Greedy,
    Level,
    NStep,
    TransitionStore,
    UniformPolicy,
)
from longstride.control.conservative import exact_gap
from longstride.control.critics import DiscreteQ
from longstride.control.envs import Spec, play
from longstride.control.envs.compass import FORCES
from longstride.control.learner import ControlLearner
from longstride.control.noise import RunNoise
from longstride.models.heads import Atoms, Scalar
from longstride.models.mlp import Trunk
from longstride.papers.scaled_ql.method import Scaled, UnitFeatures

SMALL = Trunk(width=16, depth=1, norm=False, activation="relu")
HEAD = Atoms(low=0.0, high=4.0, count=5)
POLICY = UniformPolicy().make(1, 2, torch.Generator())


def test_the_gap_and_its_slope_are_exact() -> None:
    q = torch.tensor([[[1.0, 3.0, 2.0]]], requires_grad=True)
    found = exact_gap(q, torch.tensor([[0.0, 0.0, 1.0]]))
    assert found.item() == pytest.approx(math.log(math.e + math.exp(3) + math.exp(2)) - 2)
    (slope,) = torch.autograd.grad(found.sum(), q)
    torch.testing.assert_close(slope[0, 0], q.detach()[0, 0].softmax(-1) - torch.tensor([0.0, 0.0, 1.0]))


def test_the_target_is_the_projected_distribution_of_the_best_next_action(monkeypatch: pytest.MonkeyPatch) -> None:
    """The target network says that action 0 returns 0 or 4 alike; r = 1 and gamma = 1/2 make that 1 or 3."""
    critic = Scaled(trunk=SMALL, head=HEAD, gap=0.0)
    nets = critic.make(1, 2, torch.Generator().manual_seed(0))
    far = -40.0
    ends = torch.tensor([[0.0, far, far, far, 0.0], [far, 0.0, far, far, far]])  # action 1 returns 1
    monkeypatch.setattr(nets.target, "each", lambda state_BS, frozen=False: ends.expand(1, len(state_BS), 2, 5))
    assert isinstance(nets.q, DiscreteQ)
    online = nets.q.each
    monkeypatch.setattr(
        nets.q,
        "each",
        lambda state_BS, frozen=False: (
            ends.expand(1, len(state_BS), 2, 5) if state_BS[0, 0] == 9 else online(state_BS, frozen)
        ),
    )
    one = torch.ones(1)
    batch = Batch(torch.zeros(1, 1), torch.tensor([[0.0, 1.0]]), one, one / 2, torch.full((1, 1), 9.0), one)
    loss, metrics = critic.loss(nets, batch, POLICY, RunNoise.seeded(0), conservative=True)
    log = online(torch.zeros(1, 1))[0, 0, 1].log_softmax(-1)
    assert loss.item() == pytest.approx(-0.5 * (log[1] + log[3]).item(), rel=1e-5)
    assert metrics["q_target"].item() == pytest.approx(2)


def test_features_have_one_length_and_so_a_bounded_slope() -> None:
    net = UnitFeatures(SMALL, 3, 2, torch.Generator().manual_seed(0), members=2)
    x = 100 * torch.randn(7, 3, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(net.features(x).norm(dim=-1), torch.ones(2, 7))
    assert net(x).abs().max() <= net.weight.norm(dim=1).max() + 1e-6


@pytest.mark.parametrize("critic", [Scaled(trunk=SMALL, head=HEAD), Scaled(trunk=SMALL, head=Scalar(), unit=False)])
def test_the_best_start_is_stitched_from_two_episodes(critic: Scaled) -> None:
    """Places 0, 1, 2. From 0 action 0 ends with 1; action 1 leads to 1, where action 1 earns 3 and action 0, which is what was
    done after it, nothing."""

    def episode(places: list[int], actions: list[int], rewards: list[float]) -> ControlEpisode:
        return ControlEpisode(np.eye(3)[places], np.eye(2)[actions], np.array(rewards), True)

    store = TransitionStore.of([
        episode([0, 2], [0], [1.0]), episode([0, 1, 2], [1, 0], [0.0, 0.0]), episode([1, 2], [1], [3.0])
    ])  # fmt: skip
    level = Level(data=NStep(discount=0.9), critic=critic.replace(tau=0.1), policy=UniformPolicy(), extraction=Greedy())
    learner = ControlLearner(ControlAgent(levels=(level,), batch=32, critic_lr=0.02), Spec(3, 2, (), discrete=True), 0)
    learner.train(120, [(store, 32)])
    places = np.eye(3, dtype=np.float32)[:2]
    chosen = learner.actor(0, explore=False)(places, np.zeros((2, 0), np.float32), np.ones(2, bool))
    assert chosen.argmax(1).tolist() == [1, 1]


def test_walks_are_made_of_the_forces_that_discrete_actions_have() -> None:
    """Playing the actions of a walk again leads where it led."""
    tasks = CompassMaze(maze="umaze", walks="reach", episodes=3, length=60)
    walks = tasks.dataset(0)
    assert all((walk.action.sum(1) == 1).all() and walk.action.shape[1] == len(FORCES) for walk in walks)
    assert sum(walk.terminated for walk in walks) >= 2
    env = tasks.training(1, 60)
    for walk in walks:
        env.reset(0)
        env.xy, env.velocity = walk.observation[:1, :2].astype(float), walk.observation[:1, 2:].astype(float)
        for action, after in zip(walk.action, walk.observation[1:], strict=True):
            env.goal = np.full((1, 2), -9.0)
            np.testing.assert_allclose(env.step(action[None]).observation[0], after, atol=1e-4)
    assert len(play(tasks.tests(1, 3)[0], lambda o, g, f: np.eye(5)[np.ones(len(o), int)], 0)) == 5


def test_several_distributions_have_their_mean_for_a_target() -> None:
    with pytest.raises(ValueError, match="set reduction=mean"):
        Scaled(ensemble=2, reduction="min")
    assert Scaled(ensemble=2, reduction="mean").ensemble == 2
    assert Scaled(ensemble=2, reduction="min", head=Scalar()).reduction == "min"
