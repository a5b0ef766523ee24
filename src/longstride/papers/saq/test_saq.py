"""SAQ: the loss of codes by hand, that a code means another action in another state, and values of codes."""

import numpy as np
import pytest
import torch

from longstride.claims.tuning import axes
from longstride.control import (
    DQN,
    GRU,
    Batch,
    CategoricalPolicy,
    ControlAgent,
    GaussianPolicy,
    Greedy,
    Level,
    TransitionStore,
    UniformPolicy,
)
from longstride.control.envs import ControlEpisode, Spec
from longstride.control.learner import ControlLearner
from longstride.core.errors import ConfigError
from longstride.models.mlp import Trunk
from longstride.papers.saq.method import VQCodes, VQNets
from longstride.papers.saq.recipe import CLAIM

SMALL = Trunk(width=16, depth=1)
SPEC = Spec(observation=2, action=2, goal=())


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def batch(n: int = 7) -> Batch:
    state, action = torch.randn(n, 2, generator=seeded(1)), torch.randn(n, 2, generator=seeded(2))
    return Batch(state, action, torch.zeros(n), torch.zeros(n), state, torch.zeros(n))


@pytest.mark.parametrize("knows_state", [True, False])
def test_the_loss_and_its_gradient_by_hand(knows_state: bool) -> None:
    nets = VQCodes(count=3, size=4, trunk=SMALL, commitment=0.25, knows_state=knows_state).make(2, 2, seeded())
    data = batch()
    loss, metrics = nets.loss(data)
    known = data.state_BS if knows_state else torch.zeros(7, 2)
    z, book = nets.encoder(torch.cat((known, data.action_BA), 1))[0], nets.codebook[0]
    far = (z[:, None] - book[None]).square().sum(-1)
    number = far.argmin(1)
    made = nets.decoder(torch.cat((known, book[number]), 1))[0]
    error = (made - data.action_BA).square().sum(1).mean()
    torch.testing.assert_close(loss, error + (0.25 + 1) * (z - book[number]).square().mean())
    torch.testing.assert_close(metrics["error"], error)
    share = torch.bincount(number, minlength=3) / 7
    assert metrics["used"].item() == pytest.approx(torch.exp(-(share * share.clamp(min=1e-9).log()).sum()).item())
    # the encoder has the decoder's gradient at the code's vector, and its own distance; the codebook the distance alone
    (slope,) = torch.autograd.grad(error, made, retain_graph=True)
    at = book[number].detach().requires_grad_()
    (through,) = torch.autograd.grad(nets.decoder(torch.cat((known, at), 1))[0], at, slope)
    wanted = torch.autograd.grad(
        z, list(nets.encoder.parameters()), through + 0.25 * 2 * (z - book[number]) / z.numel()
    )
    ours = torch.autograd.grad(loss, [*nets.encoder.parameters(), nets.codebook])
    torch.testing.assert_close(ours[:-1], wanted, atol=1e-6, rtol=1e-4)
    to_book = torch.zeros(3, 4).index_add(0, number, 2 * (book[number] - z) / z.numel())
    torch.testing.assert_close(ours[-1][0], to_book.detach(), atol=1e-6, rtol=1e-4)
    torch.testing.assert_close(nets.encode(data.state_BS, data.action_BA), torch.eye(3)[number])
    torch.testing.assert_close(nets.decode(data.state_BS, torch.eye(3)[number]), made)


def walks() -> TransitionStore:
    """In state (1, 0) actions are (0.8, 0) or (0.2, 0), in (-1, 0) they are (0, -0.8) or (0, -0.2); the larger earns."""
    rng, episodes = np.random.default_rng(0), []
    for _ in range(60):
        side, large = rng.integers(2), rng.integers(2)
        size = 0.8 if large else 0.2
        action = np.array([[size, 0.0]] if side else [[0.0, -size]]) + 0.02 * rng.normal(size=(1, 2))
        observation = np.array([[1.0, 0.0] if side else [-1.0, 0.0]] * 2)
        episodes.append(ControlEpisode(observation, action, np.array([float(large)]), True))
    return TransitionStore.of(episodes)


def test_a_code_is_another_action_in_another_state_and_values_are_learned_once_codes_stay() -> None:
    level = Level(
        codes=VQCodes(count=8, size=4, trunk=SMALL),
        critic=DQN(trunk=SMALL, tau=0.1, gap=0.1),
        policy=CategoricalPolicy(trunk=SMALL),
        extraction=Greedy(),
    )
    agent = ControlAgent(levels=(level,), batch=32, critic_lr=0.01, policy_lr=0.01)
    learner, sources = ControlLearner(agent, SPEC, 1), [(walks(), 32)]
    cloned = learner.train(160, sources, cloning=True)
    assert cloned["codes.error"] < 0.2 and cloned.keys() == {"codes.error", "codes.used", "imitation"}
    before = {name: t.clone() for name, t in learner.state()[0].items() if ".codes." in name}
    assert learner.train(60, sources)["gap"] > 0
    assert before and all(torch.equal(t, learner.state()[0][name]) for name, t in before.items())
    taken = learner.actor(0, explore=False)(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.zeros((2, 0)), np.ones(2, bool))
    assert taken == pytest.approx(np.array([[0.8, 0.0], [0.0, -0.8]]), abs=0.1)


def test_what_does_not_fit_is_refused() -> None:
    assert isinstance(VQCodes(count=2, trunk=SMALL).make(1, 1, seeded()), VQNets)
    codes, policy = VQCodes(trunk=SMALL), UniformPolicy()
    with pytest.raises(ValueError, match="leave out memory and rows, or codes"):
        Level(codes=codes, policy=policy, critic=DQN(), memory=GRU(), extraction=Greedy())
    whole = Level(codes=codes, policy=policy, critic=DQN(trunk=SMALL), extraction=Greedy())
    with pytest.raises(ConfigError, match="codes are for real-valued actions"):
        ControlLearner(ControlAgent(levels=(whole,)), Spec(2, 3, (), discrete=True), 0)
    with pytest.raises(ConfigError, match="gaussian_policy does not fit: the actions of this level are discrete"):
        ControlLearner(ControlAgent(levels=(Level(codes=codes, policy=GaussianPolicy(trunk=SMALL)),)), SPEC, 0)


def test_each_arm_is_tuned_over_how_conservative_it_is() -> None:
    for arm in CLAIM.arms:
        rate, weight = axes(CLAIM, arm)
        assert rate == "agent.critic_lr"
        assert weight == f"agent.levels.0.critic.{'conservative.weight' if arm.startswith('cql') else 'gap'}"
