"""CQL whose data is reweighted by a policy that finds its poor actions (`Reweighted`)."""

from typing import Self

import torch
from pydantic import model_validator
from torch import Tensor

from longstride.control import Batch, Conservative, GaussianPolicy, PolicyNets, QNets, TDCritic
from longstride.control.critics import QEnsemble
from longstride.control.noise import RunNoise
from longstride.control.policies import GaussianNets
from longstride.control.targets import reduce_ensemble
from longstride.core.numbers import Ends, Positive, Share


class MinedNets(QNets):
    """Q, its target network, and rho."""

    def __init__(self, config: "Reweighted", q: QEnsemble, target: QEnsemble, rho: GaussianNets) -> None:
        super().__init__(config, q, target, None)
        self.rho = rho


class Reweighted(TDCritic):
    """Half of what the conservative term lowers are actions of rho, which imitates the data's actions the more the worse
    they are."""

    side_by_side = True

    conservative: Conservative | None = Conservative()
    """The term; its `actions` are also how many are drawn from rho."""
    rho: GaussianPolicy = GaussianPolicy()
    """What finds poor actions."""
    share: Share = 0.5
    """Share of rho in what is lowered; 0 is CQL."""
    temperature: Positive = 1.0
    """tau: what advantages are divided by, in units of the value."""
    exponents: Ends = (-10.0, 5.0)
    """The least and the largest exponent of the weights of rho."""

    @model_validator(mode="after")
    def _has_a_term(self) -> Self:
        if self.conservative is None:
            raise ValueError("what is reweighted is the conservative term: set conservative, or take td_critic")
        return self

    def make(self, state: int, action: int, generator: torch.Generator) -> MinedNets:
        q, target = (self.make_q(state, action, generator) for _ in range(2))
        return MinedNets(self, q, target, self.rho.make(state, action, generator))

    def gap(self, nets: MinedNets, q_EB: Tensor, batch: Batch, policy: PolicyNets, noise: RunNoise) -> Tensor:
        assert self.conservative is not None
        with torch.no_grad():
            poor_BKA = nets.rho.sample(batch.state_BS, noise, self.conservative.actions)
        poor_EB = nets.q.value(batch.state_BS, poor_BKA).mean(-1)
        return (1 - self.share) * super().gap(nets, q_EB, batch, policy, noise) + self.share * (poor_EB - q_EB)

    def loss(
        self, nets: MinedNets, batch: Batch, policy: PolicyNets, noise: RunNoise, conservative: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        loss, metrics = super().loss(nets, batch, policy, noise, conservative)
        weight_B = self.weights(nets, batch, policy, noise)
        mined = (weight_B * nets.rho.imitation_loss(batch.state_BS, batch.action_BA, noise)).mean(-1)
        return loss + mined, metrics | {"mined": mined}

    @torch.no_grad()
    def weights(self, nets: MinedNets, batch: Batch, policy: PolicyNets, noise: RunNoise) -> Tensor:
        """[B] exp(-A / tau)."""
        drawn_BA = policy.sample(batch.state_BS, noise).squeeze(-2)
        known_B = reduce_ensemble(nets.q.value(batch.state_BS, batch.action_BA), "mean")
        ahead_B = known_B - reduce_ensemble(nets.q.value(batch.state_BS, drawn_BA), "min")
        return (-ahead_B / self.temperature).clamp(*self.exponents).exp()
