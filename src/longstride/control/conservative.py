"""Conservative values: the values of actions that the data does not hold are lowered.

What always holds: the gap is computed for each state and each member of the ensemble; sampled actions come with the
logarithm of the density that they were drawn with.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from longstride.control.batches import Batch
from longstride.control.noise import RunNoise
from longstride.control.policies import GaussianNets, PolicyNets, SoftNets
from longstride.core.component import Component
from longstride.core.numbers import Count, Positive


class Conservative(Component):
    """CQL(H) with importance sampling (arXiv 2006.04779), and Cal-QL (arXiv 2303.05479) where it is calibrated; both as
    in Cal-QL's released code.

    The loss of a critic grows by `weight` times the gap T logsumexp_a(Q(s, a) / T) - Q(s, a of the data).
    """

    weight: Positive = 5.0
    """Factor of the gap."""
    actions: Count = 10
    """Actions drawn per state from each of three: uniformly, from the policy there, from the policy in the next
    state."""
    temperature: Positive = 1.0
    """T."""
    importance: bool = True
    """Whether a value counts in the sum by the inverse of the density that its action was drawn with; if not, all count
    alike, the data's action among them, and the policy may be of any class (CQL without importance sampling, as in
    PA-RL, arXiv 2412.06685)."""
    calibrated: bool = False
    """Cal-QL: for the policy's actions max(Q, return of the data) takes the place of Q, so that the gap does not lower
    values that are below that return."""

    def __call__(
        self,
        value: Callable[[Tensor, Tensor], Tensor],
        q_EB: Tensor,
        batch: Batch,
        policy: PolicyNets,
        noise: RunNoise,
    ) -> Tensor:
        """[E, B] gaps.

        Args:
            value: [E, B, K] values of [B, S] states and [B, K, A] actions; takes gradient.
            q_EB: values of the actions of the data.
            batch: `return_B` is read where calibrated.
            policy: source of two thirds of the actions; takes no gradient.
            noise: draws the actions.
        """
        action_BKA, log_density_BK = self.candidates(batch, policy, noise)
        q_EBK = value(batch.state_BS, action_BKA)
        if self.calibrated:
            q_EBK = calibrate(q_EBK, batch.return_B, uniform=self.actions)
        if not self.importance:
            q_EBK, log_density_BK = torch.cat((q_EBK, q_EB[..., None]), -1), torch.zeros(())
        return gap(q_EBK, log_density_BK, q_EB, self.temperature)

    @torch.no_grad()
    def candidates(self, batch: Batch, policy: PolicyNets, noise: RunNoise) -> tuple[Tensor, Tensor]:
        """[B, 3K, A] actions, the uniform ones first, and their [B, 3K] log-densities (0 without importance)."""
        b, a = batch.action_BA.shape[-2:]
        uniform_BKA = 2 * noise.uniform(b, self.actions, a) - 1
        uniform_BK = torch.full(uniform_BKA.shape[:-1], a * math.log(0.5))
        here_BKA, here_BK = self._drawn(policy, batch.state_BS, noise)
        next_BKA, next_BK = self._drawn(policy, batch.next_state_BS, noise)
        return torch.cat((uniform_BKA, here_BKA, next_BKA), -2), torch.cat((uniform_BK, here_BK, next_BK), -1)

    def _drawn(self, policy: PolicyNets, state_BS: Tensor, noise: RunNoise) -> tuple[Tensor, Tensor]:
        if isinstance(policy, SoftNets):
            policy = policy.policy
        if isinstance(policy, GaussianNets):
            return policy.sample_with_density(state_BS, noise, self.actions)
        action_BKA = policy.sample(state_BS, noise, self.actions)
        return action_BKA, torch.zeros(action_BKA.shape[:-1])


def calibrate(q_EBK: Tensor, return_B: Tensor, uniform: int) -> Tensor:
    """[E, B, K] max(Q, return of the data) for all actions but the first `uniform`, which are the uniform ones."""
    return torch.cat((q_EBK[..., :uniform], q_EBK[..., uniform:].maximum(return_B[..., None])), -1)


def gap(q_EBK: Tensor, log_density_BK: Tensor, data_EB: Tensor, temperature: float = 1.0) -> Tensor:
    """[E, B] T logsumexp_k((Q(s, a_k) - log density(a_k)) / T) - Q(s, a of the data).

    The sum is not divided by the number of actions, as in the released code: that adds a constant to the loss.
    """
    return temperature * ((q_EBK - log_density_BK) / temperature).logsumexp(-1) - data_EB


def exact_gap(q_EBA: Tensor, action_BA: Tensor) -> Tensor:
    """[E, B] logsumexp_a Q(s, a) - Q(s, a of the data) (CQL, arXiv 2006.04779, equation 4)."""
    return q_EBA.logsumexp(-1) - (q_EBA * action_BA).sum(-1)
