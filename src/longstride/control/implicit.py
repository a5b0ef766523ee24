"""Implicit maximisation: values of the best actions that the data holds, without an action of the policy.

V(s) is moved toward the largest Q(s, a) of the actions a that the data has in s, by a loss of u = Q - V that is steeper
where Q is above V than where it is below (`Maximiser`).

What always holds: no action but the data's is valued; a policy takes no part in the values.
"""

import copy
from abc import abstractmethod
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from longstride.control.batches import Batch
from longstride.control.critics import ControlCritic, CriticNets, Pace, QCritic, QNets
from longstride.control.noise import RunNoise
from longstride.control.policies import PolicyNets
from longstride.control.targets import bellman_target, reduce_ensemble
from longstride.core.component import Component
from longstride.core.numbers import Count
from longstride.models.mlp import MLP, Trunk, polyak


class Maximiser(Component):
    """Family: the loss that moves V toward the largest Q."""

    @abstractmethod
    def __call__(self, ahead_B: Tensor) -> Tensor:
        """[..., B] loss of u = Q - V, with gradient in V."""


class Expectile(Maximiser):
    """|expectile - 1(u < 0)| u^2: V is the expectile of Q over the actions of the data (IQL, arXiv 2110.06169, equation
    5). At 1/2 it is their mean; toward 1 it is their largest."""

    expectile: Annotated[float, Field(gt=0, lt=1)] = 0.7
    """Which expectile."""

    def __call__(self, ahead_B: Tensor) -> Tensor:
        return self.weight(ahead_B) * ahead_B.square()

    def weight(self, ahead_B: Tensor) -> Tensor:
        """[..., B] |expectile - 1(u < 0)|."""
        return (self.expectile - (ahead_B < 0).to(ahead_B.dtype)).abs()


class ImplicitNets(QNets):
    """The networks of `ImplicitQ`: V is a value, whatever the head of Q is."""

    def state_value(self, state_BS: Tensor) -> Tensor:
        """[B] V."""
        assert self.v is not None
        return self.v(state_BS)[0, ..., 0]

    def worth(self, state_BS: Tensor) -> Tensor:
        return self.state_value(state_BS)

    def best_known(self, batch: Batch) -> Tensor:
        """[B] values of the actions of the data, by the target network."""
        return reduce_ensemble(self.target.value(batch.state_BS, batch.action_BA), self.config.reduction)

    @torch.no_grad()
    def advantage(self, batch: Batch, policy: PolicyNets, noise: RunNoise) -> Tensor:
        """[B] Q(s, a) of the target network - V(s)."""
        return self.best_known(batch) - self.state_value(batch.state_BS)


class ImplicitQ(QCritic):
    """V(s) toward the largest Q(s, a) of the target network, Q(s, a) toward r + gamma^h V(s')."""

    side_by_side = True

    maximiser: Maximiser = Expectile()
    """What is steeper above V than below."""

    def make(self, state: int, action: int, generator: torch.Generator) -> ImplicitNets:
        q, target = (self.make_q(state, action, generator) for _ in range(2))
        return ImplicitNets(self, q, target, self.trunk.make(state, 1, generator))

    def loss(
        self, nets: ImplicitNets, batch: Batch, policy: PolicyNets, noise: RunNoise, conservative: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        with torch.no_grad():
            known_B = nets.best_known(batch)
        v_B, next_B = nets.state_value(torch.cat((batch.state_BS, batch.next_state_BS), -2)).chunk(2, -1)
        target_B = bellman_target(batch.reward_B, batch.discount_B, next_B.detach())
        v_loss = self.maximiser(known_B - v_B).mean(-1)
        q_loss, q_EB = self.q_loss(nets, batch, target_B[..., None])
        metrics = self.metrics(q_EB, target_B[..., None], q_loss) | {"v": v_B.mean(-1), "v_loss": v_loss}
        return v_loss + q_loss, metrics


class VNets(CriticNets):
    """An ensemble of V and its target network."""

    def __init__(self, v: MLP) -> None:
        super().__init__()
        self.v, self.target = v, copy.deepcopy(v).requires_grad_(False)

    @torch.no_grad()
    def advantage(self, batch: Batch, policy: PolicyNets, noise: RunNoise) -> Tensor:
        """[B] V(s') - V(s), each the mean of the members: what was gained on the way, whatever was earned."""
        v_EB = self.v(torch.cat((batch.state_BS, batch.next_state_BS), -2))[..., 0]
        here_B, next_B = v_EB.mean(0).chunk(2, -1)
        return next_B - here_B

    def worth(self, state_BS: Tensor) -> Tensor:
        """[B] the mean of the members."""
        return self.v(state_BS)[..., 0].mean(0)


class ImplicitV(ControlCritic):
    """V(s) toward r + gamma^h V(s') of the best steps of the data, without an action (HIQL, arXiv 2307.11949, with an
    ensemble as in its released code): each member of V toward that of the target network, by the expectile's weight of

        r + gamma^h min_j V_j(s') - mean_j V_j(s),   V_j of the target network

    so what is only luck of a step looks like skill."""

    scores = False
    side_by_side = True

    trunk: Trunk = Trunk()
    """Hidden layers of each network."""
    ensemble: Count = 2
    """E."""
    maximiser: Expectile = Expectile()
    """How much more a step counts that is better than V."""
    tau: Pace = 0.005
    """Share of the way to the trained networks that the target networks move after each step."""

    def make(self, state: int, action: int, generator: torch.Generator) -> VNets:
        # values of 0 to begin with: what is too high falls slowly, as V is learned from V alone
        return VNets(self.trunk.make(state, 1, generator, self.ensemble, last=1e-4))

    def loss(
        self, nets: VNets, batch: Batch, policy: PolicyNets, noise: RunNoise, conservative: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        with torch.no_grad():
            then_EB = nets.target(torch.cat((batch.state_BS, batch.next_state_BS), -2))[..., 0]
            before_EB, after_EB = then_EB.chunk(2, -1)
            best_B = bellman_target(batch.reward_B, batch.discount_B, after_EB.amin(0))
            weight_B = self.maximiser.weight(best_B - before_EB.mean(0))
            target_EB = bellman_target(batch.reward_B, batch.discount_B, after_EB)
        v_EB = nets.v(batch.state_BS)[..., 0]
        loss = (weight_B * (target_EB - v_EB).square()).mean(-1).sum(0)
        return loss, {"v": v_EB.mean((0, -1)), "v_target": target_EB.mean((0, -1)), "v_loss": loss}

    def after_step(self, nets: VNets) -> None:
        polyak(nets.target, nets.v, self.tau)
