"""Policy extraction: how a critic's values become what the agent does.

What always holds: an extraction trains the policy by its loss and nothing else, and a critic is only read; an action
taken with `explore` false is the one that is tested.
"""

import math
from abc import abstractmethod
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

from longstride.control.batches import Batch
from longstride.control.critics import CriticNets
from longstride.control.policies import GaussianPolicy, Policy
from longstride.core.component import Component
from longstride.models.mlp import Count

Metrics = dict[str, Tensor]
Above = Annotated[float, Field(ge=0)]


class Actor(nn.Module):
    """A policy, and what its extraction adjusts beside it."""

    def __init__(self, policy: Policy, log_temperature: float | None) -> None:
        super().__init__()
        self.policy = policy
        self.log_temperature = None if log_temperature is None else nn.Parameter(torch.tensor(log_temperature))


class Extraction(Component):
    """Family: a policy's loss, and what is done with the policy."""

    @property
    def valued(self) -> bool:
        """Whether a critic is needed."""
        return True

    @property
    def dense(self) -> bool:
        """Whether the policy must know its densities: whether it must be a Gaussian."""
        return False

    def make(self, policy: Policy) -> Actor:
        """The policy with what is adjusted beside it."""
        return Actor(policy, None)

    @abstractmethod
    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch, generator: torch.Generator
    ) -> tuple[Tensor, Metrics]:
        """The loss of a batch, and metrics without gradient."""

    def act(
        self, actor: Actor, critic: CriticNets | None, state_BS: Tensor, generator: torch.Generator, explore: bool
    ) -> Tensor:
        """[B, A] what is done."""
        if explore:
            return actor.policy.sample(state_BS, generator)[:, 0]
        return actor.policy.best(state_BS, generator)


class Cloning(Extraction):
    """Family of what trains the policy by imitation alone."""

    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch, generator: torch.Generator
    ) -> tuple[Tensor, Metrics]:
        loss = actor.policy.imitation(batch.state_BS, batch.action_BA, generator).mean()
        return loss, {"imitation": loss}


class Imitation(Cloning):
    """Behaviour cloning: does what the data does."""

    @property
    def valued(self) -> bool:
        return False


class Rejection(Cloning):
    """The best of several actions of a behaviour-cloned policy (SHARSA, arXiv 2506.04168)."""

    samples: Count = 32
    """Actions that are compared."""

    def act(
        self, actor: Actor, critic: CriticNets | None, state_BS: Tensor, generator: torch.Generator, explore: bool
    ) -> Tensor:
        assert critic is not None
        action_BKA = actor.policy.sample(state_BS, generator, self.samples)
        best_B = critic.score(state_BS, action_BKA).argmax(1)
        return action_BKA[torch.arange(len(best_B)), best_B]


class AWR(Extraction):
    """Behaviour cloning weighted by min(exp(beta * advantage), cap) (AWR, arXiv 1910.00177; cap 100 as in IQL, arXiv
    2110.06169)."""

    beta: Above = 3.0
    """Inverse temperature; 0 is behaviour cloning."""
    cap: Annotated[float, Field(gt=0)] = 100.0
    """Largest weight."""

    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch, generator: torch.Generator
    ) -> tuple[Tensor, Metrics]:
        assert critic is not None
        advantage_B = critic.config.advantage(critic, batch.state_BS, batch.action_BA, actor.policy, generator)
        weight_B = (self.beta * advantage_B).exp().clamp(max=self.cap)
        loss_B = actor.policy.imitation(batch.state_BS, batch.action_BA, generator)
        return (weight_B * loss_B).mean(), {"imitation": loss_B.mean(), "weight": weight_B.mean()}


class DDPGBC(Extraction):
    """Up the critic's slope, and held to the data: -Q / mean |Q| + alpha * imitation (OGBench, arXiv 2410.20092;
    the scale after TD3+BC, arXiv 2106.06860)."""

    alpha: Above = 1.0
    """Weight of the imitation."""

    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch, generator: torch.Generator
    ) -> tuple[Tensor, Metrics]:
        assert critic is not None
        score_B = critic.score(batch.state_BS, actor.policy.best(batch.state_BS, generator))
        imitation = actor.policy.imitation(batch.state_BS, batch.action_BA, generator).mean()
        loss = self.alpha * imitation - score_B.mean() / (score_B.detach().abs().mean() + 1e-6)
        return loss, {"score": score_B.mean(), "imitation": imitation}


class SAC(Extraction):
    """Up the critic's slope with an entropy that a temperature keeps at its target (SAC, arXiv 1812.05905), and if
    asked held to the data: tau log pi - Q + mean |Q| * alpha * |a - a of the data|^2 (SAC+BC of SHARSA's code)."""

    alpha: Above = 0.0
    """Weight of the squared distance to the data's action, in units of mean |Q|."""
    entropy: float = -1.0
    """Target of the entropy, for each coordinate of an action."""
    temperature: Annotated[float, Field(gt=0)] = 1.0
    """Where the temperature starts; it counts in units of the reward."""

    @property
    def dense(self) -> bool:
        return True

    def make(self, policy: Policy) -> Actor:
        return Actor(policy, math.log(self.temperature))

    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch, generator: torch.Generator
    ) -> tuple[Tensor, Metrics]:
        assert critic is not None and isinstance(actor.policy, GaussianPolicy) and actor.log_temperature is not None
        action_BKA, log_density_BK = actor.policy.draw(batch.state_BS, generator)
        action_BA, log_density_B = action_BKA[:, 0], log_density_BK[:, 0]
        score_B = critic.score(batch.state_BS, action_BA)
        temperature = actor.log_temperature.detach().exp()
        loss = (temperature * log_density_B - score_B).mean()
        if self.alpha:
            distance_B = (action_BA - batch.action_BA).square().sum(-1)
            loss = loss + self.alpha * score_B.detach().abs().mean() * distance_B.mean()
        wanted = self.entropy * action_BA.shape[1]
        adjust = -actor.log_temperature * (log_density_B.detach().mean() + wanted)
        metrics = {"score": score_B.mean(), "entropy": -log_density_B.mean(), "temperature": temperature}
        return loss + adjust, metrics
