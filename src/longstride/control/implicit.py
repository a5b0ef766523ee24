"""Implicit maximisation: values of the best actions that the data holds, without an action of the policy.

V(s) is moved toward the largest Q(s, a) of the actions a that the data has in s, by a loss of u = Q - V that is steeper
where Q is above V than where it is below (`Maximiser`).

What always holds: no action but the data's is valued; a policy takes no part in the values.
"""

from abc import abstractmethod
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from longstride.control.batches import Batch
from longstride.control.critics import QCritic, QNets
from longstride.control.noise import RunNoise
from longstride.control.policies import PolicyNets
from longstride.control.targets import bellman_target, reduce_ensemble
from longstride.core.component import Component


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
        return (self.expectile - (ahead_B < 0).to(ahead_B.dtype)).abs() * ahead_B.square()


class ImplicitNets(QNets):
    """The networks of `ImplicitQ`: V is a value, whatever the head of Q is."""

    def state_value(self, state_BS: Tensor) -> Tensor:
        """[B] V."""
        assert self.v is not None
        return self.v(state_BS)[0, ..., 0]

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
