"""Policy extraction: how the values of a critic become what the agent does.

What always holds: an extraction trains the policy by its loss and by nothing else, and only reads the critic; an action
chosen with `explore` false is the one that is evaluated.
"""

import math
from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from longstride.control.batches import Batch
from longstride.control.critics import CriticNets
from longstride.control.noise import RunNoise
from longstride.control.policies import DiscreteNets, GaussianNets, PolicyNets
from longstride.core.component import Component
from longstride.core.numbers import Count, Positive, Share, Weight


class Actor(nn.Module):
    """A policy, and what its extraction adjusts beside it."""

    def __init__(self, policy: PolicyNets, log_temperature: float | None) -> None:
        super().__init__()
        self.policy = policy
        self.log_temperature = None if log_temperature is None else nn.Parameter(torch.tensor(log_temperature))


class Extraction(Component):
    """Family: the loss of a policy, and how the policy is used."""

    needs_critic: ClassVar[bool] = True
    """Whether a critic is read."""
    needs_density: ClassVar[bool] = False
    """Whether the policy's densities are read, so that it must be a `GaussianPolicy`."""
    needs_discrete: ClassVar[bool] = False
    """Whether all actions are compared, so that the policy must have discrete ones."""
    side_by_side: ClassVar[bool] = False
    """Whether it knows an axis of runs before B (see `Batch`). A class says so for itself: what inherits from it may
    compute otherwise."""

    def make(self, policy: PolicyNets) -> Actor:
        """The policy with what is adjusted beside it."""
        return Actor(policy, None)

    @abstractmethod
    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch, noise: RunNoise
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch, a scalar, and metrics."""

    def act(self, actor: Actor, critic: CriticNets | None, state_BS: Tensor, noise: RunNoise, explore: bool) -> Tensor:
        """[B, A] the actions that are taken."""
        if explore:
            return actor.policy.sample(state_BS, noise).squeeze(-2)
        return actor.policy.greedy(state_BS, noise)


class BehaviourCloning(Extraction):
    """Behaviour cloning: does what the data does."""

    needs_critic = False
    side_by_side = True

    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch, noise: RunNoise
    ) -> tuple[Tensor, dict[str, Tensor]]:
        return _cloning(actor, batch, noise)


class BestOfN(Extraction):
    """The best of N actions of a behaviour-cloned policy: rejection sampling (SHARSA, arXiv 2506.04168)."""

    side_by_side = True

    samples: Count = 32
    """N."""

    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch, noise: RunNoise
    ) -> tuple[Tensor, dict[str, Tensor]]:
        return _cloning(actor, batch, noise)

    def act(self, actor: Actor, critic: CriticNets | None, state_BS: Tensor, noise: RunNoise, explore: bool) -> Tensor:
        assert critic is not None
        action_BKA = actor.policy.sample(state_BS, noise, self.samples)
        return chosen(action_BKA, critic.score(state_BS, action_BKA).argmax(-1))


def chosen(action_BKA: Tensor, number_B: Tensor) -> Tensor:
    """[B, A] that of K actions which has the number."""
    return action_BKA.take_along_dim(number_B[..., None, None], -2).squeeze(-2)


def _cloning(actor: Actor, batch: Batch, noise: RunNoise) -> tuple[Tensor, dict[str, Tensor]]:
    loss = actor.policy.imitation_loss(batch.state_BS, batch.action_BA, noise).mean(-1)
    return loss, {"imitation": loss}


class Greedy(Extraction):
    """The best of all discrete actions; in training one of a behaviour-cloned policy's with probability `epsilon`. With
    `UniformPolicy`, which clones nothing, that is DQN (arXiv 1312.5602)."""

    needs_discrete = True
    side_by_side = True

    epsilon: Share = 0.1
    """Share of the actions of training that are the policy's."""

    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch, noise: RunNoise
    ) -> tuple[Tensor, dict[str, Tensor]]:
        return _cloning(actor, batch, noise)

    def act(self, actor: Actor, critic: CriticNets | None, state_BS: Tensor, noise: RunNoise, explore: bool) -> Tensor:
        assert critic is not None and isinstance(actor.policy, DiscreteNets)
        every_BAA = actor.policy.every(state_BS)
        best_BA = chosen(every_BAA, critic.score(state_BS, every_BAA).argmax(-1))
        if not explore:
            return best_BA
        other_BA = actor.policy.sample(state_BS, noise).squeeze(-2)
        return torch.where(noise.uniform(best_BA.shape[-2], 1) < self.epsilon, other_BA, best_BA)


class SAC(Extraction):
    """Follows the gradient of the critic, with an entropy that a temperature keeps at its target (SAC, arXiv
    1812.05905): tau log pi - Q. With `alpha` it imitates the data too: + mean |Q| * alpha * |a - a of the data|^2
    (SAC+BC of SHARSA's code)."""

    needs_density = True
    side_by_side = True

    alpha: Weight = 0.0
    """Weight of the squared distance to the action of the data, in units of mean |Q|."""
    target_entropy: float = -1.0
    """Target of the entropy, per coordinate of an action."""
    temperature: Positive = 1.0
    """Where the temperature tau starts; its unit is that of the reward."""

    def make(self, policy: PolicyNets) -> Actor:
        return Actor(policy, math.log(self.temperature))

    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch, noise: RunNoise
    ) -> tuple[Tensor, dict[str, Tensor]]:
        assert critic is not None and isinstance(actor.policy, GaussianNets) and actor.log_temperature is not None
        action_BKA, log_density_BK = actor.policy.sample_with_density(batch.state_BS, noise)
        action_BA, log_density_B = action_BKA.squeeze(-2), log_density_BK.squeeze(-1)
        score_B = critic.score(batch.state_BS, action_BA)
        temperature = actor.log_temperature.detach().exp()
        score = score_B.mean(-1)
        log_density = log_density_B.mean(-1)
        loss = temperature * log_density - score
        if self.alpha:
            distance_B = (action_BA - batch.action_BA).square().sum(-1)
            loss = loss + self.alpha * score_B.detach().abs().mean(-1) * distance_B.mean(-1)
        target = self.target_entropy * action_BA.shape[-1]
        adjust = -actor.log_temperature * (log_density.detach() + target)
        metrics = {"score": score, "entropy": -log_density, "temperature": temperature}
        return loss + adjust, metrics
