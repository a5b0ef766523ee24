"""Critics that learn a normal distribution of the return, with the three refinements of DSAC-T (`GaussianReturns`).

What always holds: a draw of the next return moves the deviation alone; the mean is moved by means.
"""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from longstride.control import Batch, PolicyNets, QCritic, QNets
from longstride.control.critics import Pace, QEnsemble
from longstride.control.noise import RunNoise
from longstride.control.targets import bellman_target
from longstride.core.numbers import Positive
from longstride.models.heads import Head

FARTHEST = 3.0
"""Deviations beyond which no return is drawn, and no drawn one is believed."""
ADDED = 0.1
"""Added to what is divided by."""
WEIGHTS = (0.1, 10.0)
"""Least and greatest weight of a transition."""


class Normal(Head):
    """Mean and deviation of a normally distributed return, under its negative log-likelihood."""

    @property
    def outputs(self) -> int:
        return 2

    def value(self, raw: Tensor) -> Tensor:
        return raw[..., 0]

    def deviation(self, raw: Tensor) -> Tensor:
        """[...] standard deviations of [..., 2]."""
        return F.softplus(raw[..., 1])

    def loss(self, raw: Tensor, target: Tensor) -> Tensor:
        """[...] -log density, without its constant (DSAC, arXiv 2001.02811)."""
        return F.gaussian_nll_loss(raw[..., 0], target, self.deviation(raw).square(), reduction="none")


class NormalQ(QNets):
    """The networks of `GaussianReturns`, and the deviation that each member has on average."""

    def __init__(self, config: "GaussianReturns", q: QEnsemble, target: QEnsemble) -> None:
        super().__init__(config, q, target, None)
        self.usual = nn.Parameter(torch.zeros(config.ensemble), requires_grad=False)
        """[E], b in the paper; 0 before the first batch."""

    def follow(self, deviation_E: Tensor, rate: float) -> Tensor:
        """[E] b, moved toward the mean deviation of a batch, which the first batch sets."""
        moved_E = torch.where(self.usual == 0, deviation_E, self.usual.lerp(deviation_E, rate))
        return self.usual.copy_(moved_E)


class GaussianReturns(QCritic):
    """Members learn the return's mean q and deviation sigma (DSAC-T, arXiv 2310.05858, as its released code has it):

        w * (H(q, y) + sigma * (s^2 - H(q, z)) / (s + 0.1)),   w = b^2 / (s^2 + 0.1), between 0.1 and 10

    H is Huber's loss, s is sigma without gradient, and q in H(q, z) has none either. The three refinements:
    y = r + gamma^h q'(s', a') is a mean and no draw; q' is of the member with the least mean, and each member has its
    own sigma and b; z = r + gamma^h Z', with Z' drawn, is kept within 3 b of q, and w divides by the variance, so that
    gradients do not grow with the rewards. b follows the mean sigma of batches.
    """

    side_by_side = True

    head: Normal = Normal()
    """Mean and deviation."""
    reduction: Literal["min"] = "min"
    """The least mean."""
    follow: Pace = 0.005
    """Share of the way to a batch's mean deviation that b moves."""
    huber: Positive = 50.0
    """Difference up to which H is d^2 / 2, in units of the return; beyond it is linear."""

    def make(self, state: int, action: int, generator: torch.Generator) -> NormalQ:
        return NormalQ(self, *(self.make_q(state, action, generator) for _ in range(2)))

    def loss(
        self, nets: QNets, batch: Batch, policy: PolicyNets, noise: RunNoise, conservative: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        assert isinstance(nets, NormalQ)
        raw = nets.q.raw(batch.state_BS, batch.action_BA)
        q_EB, sigma_EB = self.head.value(raw), self.head.deviation(raw)
        with torch.no_grad():
            b_E1 = nets.follow(sigma_EB.mean(-1), self.follow)[..., None]
            next_BA = policy.sample(batch.next_state_BS, noise).squeeze(-2)
            next_raw = nets.target.raw(batch.next_state_BS, next_BA)
            least_1B = self.head.value(next_raw).argmin(0, keepdim=True)
            next_raw_B = next_raw.take_along_dim(least_1B[..., None], 0)[0]
            mean_B = self.head.value(next_raw_B)
            away_B = noise.normal(mean_B.shape[-1]).clamp(-FARTHEST, FARTHEST) * self.head.deviation(next_raw_B)
            y_EB, z_EB = (
                bellman_target(batch.reward_B, batch.discount_B, next_B).expand_as(q_EB)
                for next_B in (mean_B, mean_B + away_B)
            )
            off_EB = (z_EB - q_EB).clamp(-FARTHEST * b_E1, FARTHEST * b_E1)
            s_EB = sigma_EB.detach()
            weight_EB = (b_E1.square() / (s_EB.square() + ADDED)).clamp(*WEIGHTS)
            pull_EB = (s_EB.square() - self._huber(off_EB, torch.zeros_like(off_EB))) / (s_EB + ADDED)
        loss = (weight_EB * (self._huber(q_EB, y_EB) + sigma_EB * pull_EB)).mean(-1).sum(0)
        return loss, self.metrics(q_EB, y_EB[0][..., None], loss) | {"deviation": s_EB.mean((0, -1))}

    def _huber(self, value: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(value, target, reduction="none", delta=self.huber)
