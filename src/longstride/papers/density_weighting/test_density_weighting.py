"""Weights of steps: what they are where the loss has a closed form, how they reach back along a way, and what learns from
them."""

import numpy as np
import pytest
import torch

from longstride.control import Batch, BehaviourCloning, ControlAgent, ControlEpisode, Level, TransitionStore
from longstride.control.envs import Spec
from longstride.control.learner import ControlLearner
from longstride.control.memory import GRU
from longstride.control.noise import RunNoise
from longstride.control.policies import DeterministicPolicy
from longstride.control.weights import drawn_anew, unit_rewards
from longstride.models.mlp import Trunk
from longstride.papers.density_weighting.method import DensityRatio, RatioNets

SMALL = Trunk(width=16, depth=1, norm=False)


def learned(ratio: DensityRatio, batch: Batch, steps: int) -> torch.Tensor:
    """The weights of the rows of a batch after some steps on it."""
    nets: RatioNets = ratio.make(batch.state_BS.shape[1], batch.action_BA.shape[1], torch.Generator().manual_seed(0))
    optimiser = torch.optim.Adam(nets.parameters(), lr=0.02)
    for _ in range(steps):
        optimiser.zero_grad()
        ratio.loss(nets, batch)[0].backward()
        optimiser.step()
    return ratio.shares(nets, batch).detach()


def rows(state: torch.Tensor, following: torch.Tensor, reward: list[float]) -> Batch:
    zeros = torch.zeros(len(state))
    return Batch(state, torch.zeros(len(state), 1), zeros, zeros, following, torch.tensor(reward))


def test_without_the_flow_weights_are_a_softmax_of_rewards() -> None:
    """sum w r - kl sum w log w is largest at w ~ exp(r / kl)."""
    reward = [0.0, 0.3, 0.6, 0.9]
    found = learned(DensityRatio(trunk=SMALL, kl=0.5, flow=0.0), rows(torch.eye(4), torch.eye(4), reward), 150)
    torch.testing.assert_close(found, (torch.tensor(reward) / 0.5).softmax(-1), atol=0.01, rtol=0)


def test_weight_flows_back_from_a_reward_to_the_step_before() -> None:
    """Two ways of three steps, 0-1-2-6 and 3-4-5-7, of which the first one ends with a reward."""
    place = torch.eye(8)
    batch = rows(place[:6], place[[1, 2, 6, 4, 5, 7]], [0, 0, 1, 0, 0, 0])
    found = learned(DensityRatio(trunk=SMALL, flow=5.0), batch, 200)
    assert found[2] > found[1] > 5 * found[4]
    alone = learned(DensityRatio(trunk=SMALL, flow=0.0), batch, 200)
    assert alone[2] > 5 * alone[1] and alone[1] < 1.1 * alone[4]


def test_rows_are_drawn_as_often_as_they_weigh_for_each_run_apart() -> None:
    share = torch.tensor([[0.7, 0.3, 0.0], [0.0, 0.2, 0.8]])
    noise = RunNoise.seeded(0, 1)
    drawn = torch.stack([drawn_anew(share, noise) for _ in range(500)], 1).flatten(1)
    found = torch.stack([torch.bincount(run, minlength=3) for run in drawn]) / drawn.shape[1]
    torch.testing.assert_close(found, share, atol=0.05, rtol=0)


def test_rewards_are_in_units_of_their_deviation_over_all_steps() -> None:
    def episode(*reward: float) -> ControlEpisode:
        count = len(reward)
        return ControlEpisode(np.zeros((count + 1, 1)), np.zeros((count, 1)), np.array(reward), False)

    scaled = unit_rewards(TransitionStore.of([episode(0, 6), episode(2, 4)]))
    np.testing.assert_allclose(scaled[[0, 1, 3, 4]], np.array([0, 6, 2, 4]) / 5**0.5, rtol=1e-6)
    assert unit_rewards(TransitionStore.of([episode(1, 1)])).tolist() == [1, 1, 0]


def test_an_agent_clones_what_earns() -> None:
    """In one state half of the data does 0.5 and earns, half does -0.5 and earns nothing."""
    episodes = [
        ControlEpisode(np.zeros((2, 1)), np.array([[action]]), np.array([max(action, 0)]), True)
        for action in (0.5, -0.5) * 8
    ]
    policy = DeterministicPolicy(trunk=SMALL)
    done = []
    for ratio in (None, DensityRatio(trunk=SMALL, kl=0.1, flow=0.0)):
        level = Level(policy=policy, extraction=BehaviourCloning(), rows=ratio)
        agent = ControlAgent(levels=(level,), batch=32, critic_lr=0.01, policy_lr=0.01)
        learner = ControlLearner(agent, Spec(1, 1, ()), 0)
        learner.train(100, [(TransitionStore.of(episodes), 32)])
        seen = (np.zeros((1, 1), np.float32), np.zeros((1, 0), np.float32), np.ones(1, bool))
        done.append(learner.actor(0, explore=False)(*seen).item())
    assert abs(done[0]) < 0.15 and done[1] > 0.4


def test_weights_go_by_single_steps() -> None:
    with pytest.raises(ValueError, match="leave out memory"):
        Level(rows=DensityRatio(), memory=GRU(size=2))
