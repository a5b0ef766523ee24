"""Ways to the largest Q of the data that a divergence gives: `ChiSquare`, `TotalVariation`, and XQL's `Gumbel`; values
that tell an expert's steps from others (`ReCOIL`), and data whose rewards say which these are (`ExpertSteps`)."""

from dataclasses import replace
from typing import Annotated

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from longstride.control import ControlEpisode, ImplicitQ, Maximiser
from longstride.control.batches import Batch
from longstride.control.envs import OfOthers
from longstride.control.implicit import ImplicitNets
from longstride.control.noise import RunNoise
from longstride.control.policies import PolicyNets
from longstride.control.targets import bellman_target
from longstride.core.numbers import Positive

Lambda = Annotated[float, Field(gt=0, lt=1)]


class ChiSquare(Maximiser):
    """lam max(u + u^2 / 4, 0) - (1 - lam) u, of Pearson's chi-square."""

    lam: Lambda = 0.8
    """The larger, the nearer is V to the largest Q."""

    def __call__(self, ahead_B: Tensor) -> Tensor:
        return self.lam * (ahead_B + ahead_B.square() / 4).relu() - (1 - self.lam) * ahead_B


class TotalVariation(Maximiser):
    """lam max(u, 0) - (1 - lam) u: V is the quantile (2 lam - 1) / lam of Q over the actions of the data."""

    lam: Annotated[float, Field(gt=0.5, lt=1)] = 0.8
    """The larger, the nearer is V to the largest Q."""

    def __call__(self, ahead_B: Tensor) -> Tensor:
        return self.lam * ahead_B.relu() - (1 - self.lam) * ahead_B


class Gumbel(Maximiser):
    """exp(z) - z - 1 with z = u / scale, of the reverse KL (XQL, arXiv 2301.02328): V is scale times the logarithm of the
    mean of exp(Q / scale)."""

    scale: Positive = 1.0
    """beta, in units of the value: the smaller, the nearer is V to the largest Q."""
    most: Positive = 5.0
    """z is cut to it, and has no gradient beyond."""

    def __call__(self, ahead_B: Tensor) -> Tensor:
        z_B = (ahead_B / self.scale).clamp(max=self.most)
        with torch.no_grad():  # the loss of a batch is scaled by its largest z, as in the released code
            largest = z_B.amax(-1, keepdim=True).clamp(min=-1.0)
        return (z_B - largest).exp() - (z_B + 1) * (-largest).exp()


class ReCOIL(ImplicitQ):
    """Values without rewards: Q of an expert's steps toward `largest`, that of any other step toward
    -(1 - gamma) largest + gamma V(s'), so that never to do what the expert does is worth -largest, and so is an end; V
    as in `ImplicitQ`, of the other steps alone. Steps with a reward are the expert's (`ExpertSteps`)."""

    side_by_side = True

    maximiser: Maximiser = Gumbel()
    largest: Positive = 10.0
    """The largest of all values; 2 / (1 - gamma) in the released code."""

    def loss(
        self, nets: ImplicitNets, batch: Batch, policy: PolicyNets, noise: RunNoise, conservative: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        expert_B = batch.reward_B > 0
        with torch.no_grad():
            known_B = nets.best_known(batch)
        v_B, next_B = nets.state_value(torch.cat((batch.state_BS, batch.next_state_BS), -2)).chunk(2, -1)
        worth_B = bellman_target((batch.discount_B - 1) * self.largest, batch.discount_B, next_B.detach())
        target_B = worth_B.masked_fill(expert_B, self.largest)
        v_loss = self.maximiser((known_B - v_B).masked_fill(expert_B, 0.0)).mean(-1)  # a loss of 0 is 0
        q_loss, q_EB = self.q_loss(nets, batch, target_B[..., None])
        expert = (q_EB * expert_B).sum((0, -1)) / (len(q_EB) * expert_B.sum(-1)).clamp(min=1)
        metrics = self.metrics(q_EB, target_B[..., None], q_loss) | {"v": v_B.mean(-1), "v_loss": v_loss}
        return v_loss + q_loss, metrics | {"expert.q": expert}


class ExpertSteps(OfOthers):
    """Other tasks whose demonstrations are an expert's, and whose data are anyone's: no reward is read, and that of a
    step says whose it is, 1 of the expert's and 0 of others. Both are learned from where a phase has
    `TrainingPhase.demonstrated`."""

    def dataset(self, seed: int) -> list[ControlEpisode]:
        return [replace(e, reward=np.zeros_like(e.reward)) for e in self.tasks.dataset(seed)]

    def demonstrated(self, seed: int) -> list[ControlEpisode]:
        return [replace(e, reward=np.ones_like(e.reward)) for e in self.tasks.demonstrated(seed)]
