"""Conservatism: values of actions that the data does not hold are pushed down.

What always holds: the gap is of one state and one member of the ensemble, so a batch is a mean of it; sampled actions
come with the log of the density that they were drawn with.
"""

import math
from collections.abc import Callable
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from longstride.control.batches import Batch
from longstride.control.policies import GaussianPolicy
from longstride.core.component import Component
from longstride.models.mlp import Count

Positive = Annotated[float, Field(gt=0)]


class Conservative(Component):
    """CQL(H) with importance sampling (arXiv 2006.04779), and Cal-QL (arXiv 2303.05479) where it is calibrated;
    both as in Cal-QL's released code."""

    weight: Positive = 5.0
    """Factor of the gap in the loss of a critic."""
    actions: Count = 10
    """Actions drawn for a state from each of three: uniform, the policy there, the policy in the next state."""
    temperature: Positive = 1.0
    """T of T logsumexp(Q / T)."""
    calibrated: bool = False
    """Cal-QL: a policy's action that is valued below the return that the data got is not pushed further down."""

    def __call__(
        self,
        value: Callable[[Tensor, Tensor], Tensor],
        q_EB: Tensor,
        batch: Batch,
        policy: GaussianPolicy,
        generator: torch.Generator,
    ) -> Tensor:
        """[E, B] gaps between the soft maximum over actions and the action of the data.

        Args:
            value: [E, B, K] values of [B, S] states and [B, K, A] actions; takes gradient.
            q_EB: values of the actions of the data.
            batch: `return_B` is read where calibrated.
            policy: where two thirds of the actions come from; takes none.
            generator: of the actions.
        """
        action_BKA, log_density_BK = self.candidates(batch, policy, generator)
        q_EBK = value(batch.state_BS, action_BKA)
        if self.calibrated:
            q_EBK = calibrate(q_EBK, batch.return_B, free=self.actions)
        return gap(q_EBK, log_density_BK, q_EB, self.temperature)

    @torch.no_grad()
    def candidates(self, batch: Batch, policy: GaussianPolicy, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """[B, 3K, A] actions, the uniform ones first, and the [B, 3K] logs of their densities."""
        shape = (len(batch.action_BA), self.actions, batch.action_BA.shape[1])
        uniform_BKA = 2 * torch.rand(shape, generator=generator) - 1
        uniform_BK = torch.full(shape[:2], shape[2] * math.log(0.5))
        here_BKA, here_BK = policy.draw(batch.state_BS, generator, self.actions)
        next_BKA, next_BK = policy.draw(batch.next_state_BS, generator, self.actions)
        return torch.cat((uniform_BKA, here_BKA, next_BKA), 1), torch.cat((uniform_BK, here_BK, next_BK), 1)


def calibrate(q_EBK: Tensor, return_B: Tensor, free: int) -> Tensor:
    """max(Q, return of the data) for all actions but the first `free`, which are the uniform ones."""
    return torch.cat((q_EBK[..., :free], q_EBK[..., free:].maximum(return_B[:, None])), -1)


def gap(q_EBK: Tensor, log_density_BK: Tensor, data_EB: Tensor, temperature: float = 1.0) -> Tensor:
    """[E, B] T logsumexp_k((Q(s, a_k) - log density(a_k)) / T) - Q(s, a of the data).

    The number of actions is not divided out, as in the released code: a constant in the loss.
    """
    return temperature * ((q_EBK - log_density_BK) / temperature).logsumexp(-1) - data_EB
