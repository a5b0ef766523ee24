"""Offline Q-learning with distributions and features of one length (`Scaled`)."""

import math
from typing import Self

import torch
from pydantic import model_validator
from torch import Tensor, nn
from torch.nn import functional as F

from longstride.control import DQN, Batch, PolicyNets, QNets
from longstride.control.critics import DiscreteQ
from longstride.control.noise import RunNoise
from longstride.control.targets import reduce_ensemble
from longstride.core.numbers import Weight
from longstride.models.heads import Atoms, Head
from longstride.models.mlp import Trunk


class UnitFeatures(nn.Module):
    """E networks whose last hidden layer is divided by its length."""

    def __init__(self, trunk: Trunk, inputs: int, outputs: int, generator: torch.Generator, members: int) -> None:
        super().__init__()
        self.body = trunk.make(inputs, trunk.width, generator, members)
        limit = math.sqrt(6 / (trunk.width + outputs))
        self.weight = nn.Parameter((torch.rand(members, trunk.width, outputs, generator=generator) * 2 - 1) * limit)
        self.bias = nn.Parameter(torch.zeros(members, 1, outputs))

    def features(self, x: Tensor, frozen: bool = False) -> Tensor:
        """[E, B, width] of length 1."""
        return F.normalize(self.body(x, frozen).relu(), dim=-1)

    def forward(self, x: Tensor, frozen: bool = False) -> Tensor:
        weight, bias = (p.detach() if frozen else p for p in (self.weight, self.bias))
        return self.features(x, frozen) @ weight + bias


class Scaled(DQN):
    """Double DQN with CQL's exact gap; with `Atoms` the whole distribution of the next state is the target."""

    side_by_side = True

    head: Head = Atoms(low=0.0, high=10.0, count=51)
    """What outputs mean."""
    gap: Weight = 0.05
    """Factor of the gap."""
    unit: bool = True
    """Whether the features before the last layer are divided by their length; they are then one more hidden layer."""

    @model_validator(mode="after")
    def _one_distribution(self) -> Self:
        if isinstance(self.head, Atoms) and self.ensemble > 1 and self.reduction != "mean":
            raise ValueError(
                f"the target of several distributions is their mean, and reduction is {self.reduction}: set reduction=mean"
            )
        return self

    def make_q(self, state: int, action: int, generator: torch.Generator) -> DiscreteQ:
        outputs = action * self.head.outputs
        if not self.unit:
            return super().make_q(state, action, generator)
        net = UnitFeatures(self.trunk, state, outputs, generator, self.ensemble)
        return DiscreteQ(self.head, net)  # pyright: ignore[reportArgumentType] (it is called as an MLP is)

    def loss(
        self, nets: QNets, batch: Batch, policy: PolicyNets, noise: RunNoise, conservative: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        if not isinstance(self.head, Atoms):
            return super().loss(nets, batch, policy, noise, conservative)
        return self.widened(*self.distributional(nets, batch, self.head), nets, batch, conservative)

    def distributional(self, nets: QNets, batch: Batch, head: Atoms) -> tuple[Tensor, dict[str, Tensor]]:
        """The cross-entropy to the projected distribution of the return, and metrics."""
        assert isinstance(nets.q, DiscreteQ) and isinstance(nets.target, DiscreteQ)
        with torch.no_grad():
            best_B = reduce_ensemble(head.value(nets.q.each(batch.next_state_BS)), self.reduction).argmax(-1)
            every_EBAN = nets.target.each(batch.next_state_BS).softmax(-1)
            chance_BN = every_EBAN.mean(0).take_along_dim(best_B[..., None, None], -2).squeeze(-2)
            returns_BN = batch.reward_B[..., None] + batch.discount_B[..., None] * head.atoms(chance_BN)
            target_BN = head.shared_out(returns_BN, chance_BN)
        raw_EBN = nets.q.raw(batch.state_BS, batch.action_BA)
        loss = -(target_BN * raw_EBN.log_softmax(-1)).sum(-1).mean(-1).sum(0)
        value_B = target_BN @ head.atoms(target_BN)
        return loss, self.metrics(head.value(raw_EBN), value_B[..., None], loss)
