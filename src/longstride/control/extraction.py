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

    def make(self, policy: PolicyNets) -> Actor:
        """The policy with what is adjusted beside it."""
        return Actor(policy, None)

    @abstractmethod
    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch, a scalar, and metrics."""

    def act(
        self, actor: Actor, critic: CriticNets | None, state_BS: Tensor, generator: torch.Generator, explore: bool
    ) -> Tensor:
        """[B, A] the actions that are taken."""
        if explore:
            return actor.policy.sample(state_BS, generator)[:, 0]
        return actor.policy.greedy(state_BS, generator)


class BehaviourCloning(Extraction):
    """Behaviour cloning: does what the data does."""

    needs_critic = False

    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        return _cloning(actor, batch, generator)


class BestOfN(Extraction):
    """The best of N actions of a behaviour-cloned policy: rejection sampling (SHARSA, arXiv 2506.04168)."""

    samples: Count = 32
    """N."""

    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        return _cloning(actor, batch, generator)

    def act(
        self, actor: Actor, critic: CriticNets | None, state_BS: Tensor, generator: torch.Generator, explore: bool
    ) -> Tensor:
        assert critic is not None
        action_BKA = actor.policy.sample(state_BS, generator, self.samples)
        best_B = critic.score(state_BS, action_BKA).argmax(1)
        return action_BKA[torch.arange(len(best_B)), best_B]


def _cloning(actor: Actor, batch: Batch, generator: torch.Generator) -> tuple[Tensor, dict[str, Tensor]]:
    loss = actor.policy.imitation_loss(batch.state_BS, batch.action_BA, generator).mean()
    return loss, {"imitation": loss}


class Greedy(Extraction):
    """The best of all discrete actions; in training one of a behaviour-cloned policy's with probability `epsilon`. With
    `UniformPolicy`, which clones nothing, that is DQN (arXiv 1312.5602)."""

    needs_discrete = True

    epsilon: Share = 0.1
    """Share of the actions of training that are the policy's."""

    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        return _cloning(actor, batch, generator)

    def act(
        self, actor: Actor, critic: CriticNets | None, state_BS: Tensor, generator: torch.Generator, explore: bool
    ) -> Tensor:
        assert critic is not None and isinstance(actor.policy, DiscreteNets)
        every_BAA = actor.policy.every(state_BS)
        best_BA = every_BAA[0][critic.score(state_BS, every_BAA).argmax(1)]
        if not explore:
            return best_BA
        other_BA = actor.policy.sample(state_BS, generator)[:, 0]
        return torch.where(torch.rand(len(best_BA), 1, generator=generator) < self.epsilon, other_BA, best_BA)


class SAC(Extraction):
    """Follows the gradient of the critic, with an entropy that a temperature keeps at its target (SAC, arXiv
    1812.05905): tau log pi - Q. With `alpha` it imitates the data too: + mean |Q| * alpha * |a - a of the data|^2
    (SAC+BC of SHARSA's code)."""

    needs_density = True

    alpha: Weight = 0.0
    """Weight of the squared distance to the action of the data, in units of mean |Q|."""
    target_entropy: float = -1.0
    """Target of the entropy, per coordinate of an action."""
    temperature: Positive = 1.0
    """Where the temperature tau starts; its unit is that of the reward."""

    def make(self, policy: PolicyNets) -> Actor:
        return Actor(policy, math.log(self.temperature))

    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        assert critic is not None and isinstance(actor.policy, GaussianNets) and actor.log_temperature is not None
        action_BKA, log_density_BK = actor.policy.sample_with_density(batch.state_BS, generator)
        action_BA, log_density_B = action_BKA[:, 0], log_density_BK[:, 0]
        score_B = critic.score(batch.state_BS, action_BA)
        temperature = actor.log_temperature.detach().exp()
        loss = (temperature * log_density_B - score_B).mean()
        if self.alpha:
            distance_B = (action_BA - batch.action_BA).square().sum(-1)
            loss = loss + self.alpha * score_B.detach().abs().mean() * distance_B.mean()
        target = self.target_entropy * action_BA.shape[1]
        adjust = -actor.log_temperature * (log_density_B.detach().mean() + target)
        metrics = {"score": score_B.mean(), "entropy": -log_density_B.mean(), "temperature": temperature}
        return loss + adjust, metrics
