"""DASCO: losses by hand, where the discriminator's is least, and two generators against one on data with two modes."""

import math

import numpy as np
import pytest
import torch

from longstride.claims.tuning import axes
from longstride.control import (
    Batch,
    ControlAgent,
    ControlEpisode,
    GaussianPolicy,
    Level,
    TDCritic,
    TransitionStore,
)
from longstride.control.envs import Spec
from longstride.control.learner import ControlLearner
from longstride.control.noise import RunNoise
from longstride.models.mlp import Trunk
from longstride.papers.dasco.method import Adversarial, AdversarialNets, Supported
from longstride.papers.dasco.recipe import CLAIM

SMALL = Trunk(width=16, depth=1, norm=False, activation="relu")
POLICY = GaussianPolicy(trunk=SMALL)


def test_the_discriminator_is_right_where_its_loss_is_least() -> None:
    """Three actions with chances p in the data and m in the mixture (3 g + h) / 4: D = p / (p + m), by the exact gradient."""
    p, g, h = (torch.tensor(of) for of in ([0.5, 0.3, 0.2], [0.2, 0.2, 0.6], [1.0, 0.0, 0.0]))
    logit = torch.log(p / (0.75 * g + 0.25 * h)).requires_grad_()

    def repeated(share: torch.Tensor) -> torch.Tensor:
        """The logits of ten actions in these shares."""
        return logit.repeat_interleave((10 * share).round().long())

    loss = Adversarial(other=0.25).told(repeated(p), repeated(g), repeated(h))
    (gradient,) = torch.autograd.grad(loss, logit)
    torch.testing.assert_close(gradient, torch.zeros(3), atol=1e-6, rtol=0)
    assert Adversarial(other=0.0).told(torch.zeros(1), torch.zeros(1), torch.full((1,), 9.0)).item() == pytest.approx(
        2 * math.log(2)
    )


def batch(*actions: float) -> Batch:
    n, zeros = len(actions), torch.zeros(len(actions))
    return Batch(torch.zeros(n, 1), torch.tensor(actions)[:, None], zeros, zeros, torch.zeros(n, 1), zeros)


def test_the_loss_of_the_policy_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Q = 4 a and the logit of D is a, for what the policy draws, -0.5 and 0.25, and the data, 0 and 1."""
    critic = Adversarial(trunk=SMALL, generator=POLICY)
    nets = critic.make(1, 1, torch.Generator())
    monkeypatch.setattr(nets, "score", lambda state_BS, action_BA: 4 * action_BA[..., 0])
    monkeypatch.setattr(nets, "likeness", lambda state_BS, action_BA, frozen=False: action_BA[..., 0])
    extraction = Supported(weight=2.0)
    actor = extraction.make(POLICY.make(1, 1, torch.Generator()))
    drawn = torch.tensor([[[-0.5]], [[0.25]]], requires_grad=True)
    monkeypatch.setattr(actor.policy, "sample", lambda state_BS, noise, count=1: drawn)
    loss, _ = extraction.loss(actor, nets, batch(0.0, 1.0), RunNoise.seeded(0))

    def d(x: float) -> float:
        return 1 / (1 + math.exp(-x))

    ratio = [d(-0.5) / d(0.0), d(0.25) / d(1.0)]
    earned = (ratio[0] * -2 + ratio[1] * 1) / 2 / 1.5
    assert loss.item() == pytest.approx(-earned - 2 * (math.log(d(-0.5)) + math.log(d(0.25))) / 2, rel=1e-5)
    (slope,) = torch.autograd.grad(loss, drawn)
    expected = [-(r * 4) / 1.5 / 2 - 2 * (1 - d(a)) / 2 for r, a in zip(ratio, (-0.5, 0.25), strict=True)]
    assert slope.flatten().tolist() == pytest.approx(expected, rel=1e-5)  # the ratio is not differentiated


def test_each_network_is_moved_by_its_own_loss_alone() -> None:
    critic = Adversarial(trunk=SMALL, generator=POLICY)
    nets = critic.make(1, 1, torch.Generator().manual_seed(0))
    policy = POLICY.make(1, 1, torch.Generator().manual_seed(1))
    critic.loss(nets, batch(0.5, -0.5), policy, RunNoise.seeded(0), conservative=True)[0].backward()
    assert all(p.grad is None for p in policy.parameters())
    found = nets.discriminator.weights[-1].grad
    like_B = nets.likeness(
        torch.zeros(2, 1), nets.other.sample(torch.zeros(2, 1), RunNoise.seeded(0))[:, 0], frozen=True
    )
    (-like_B).sum().backward()
    assert found is not None and torch.equal(nets.discriminator.weights[-1].grad, found)  # pyright: ignore


def test_a_critic_without_a_discriminator_is_refused_in_one_line() -> None:
    with pytest.raises(ValueError, match="extraction .*supported reads one critic, which must be .*adversarial"):
        Level(critic=TDCritic(trunk=SMALL), policy=POLICY, extraction=Supported())


def test_the_policy_is_the_good_part_of_the_data_and_the_other_generator_the_rest() -> None:
    """Of four actions three are near -0.5 and earn nothing, one is near 0.5 and earns 1; nobody did 1."""
    rng = np.random.default_rng(0)
    episodes = [
        ControlEpisode(
            np.zeros((2, 1)), np.array([[centre + 0.05 * rng.normal()]]), np.array([max(2 * centre, 0)]), True
        )
        for centre in (-0.5, -0.5, -0.5, 0.5) * 16
    ]
    critic = Adversarial(trunk=SMALL, generator=POLICY)
    level = Level(critic=critic, policy=POLICY, extraction=Supported())
    agent = ControlAgent(levels=(level,), batch=64, critic_lr=0.01, policy_lr=0.005)
    learner = ControlLearner(agent, Spec(1, 1, ()), 0)
    learner.train(150, [(TransitionStore.of(episodes), 64)])
    nets, nothing = learner.levels[0].critic, torch.zeros(1, 1)
    assert isinstance(nets, AdversarialNets)
    mine = learner.levels[0].actor.policy.greedy(nothing, RunNoise.seeded(0)).item()
    rest = nets.other.greedy(nothing, RunNoise.seeded(0)).item()
    assert 0.3 < mine < 0.8 and rest < -0.3


def test_each_arm_is_tuned_over_how_much_the_discriminator_weighs() -> None:
    for arm in CLAIM.arms:
        assert list(axes(CLAIM, arm)) == ["agent.critic_lr", "agent.levels.0.extraction.weight"]
