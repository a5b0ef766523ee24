"""Critics: how values are learned. A critic is networks and a loss on a batch.

What always holds: targets come from networks that take no gradient; the members of an ensemble are trained on the same
target, each by its own loss; a critic's loss gives the policy no gradient, and a policy's loss gives the critic none.
"""

from abc import abstractmethod
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

from longstride.control.batches import Batch
from longstride.control.conservative import Conservative
from longstride.control.policies import GaussianNets, PolicyNets
from longstride.control.targets import Reduction, bellman_target, reduce_ensemble, subsample
from longstride.core.component import Component
from longstride.core.numbers import Count
from longstride.models.heads import Head, Scalar
from longstride.models.mlp import MLP, Trunk, polyak


class QEnsemble(nn.Module):
    """E networks from states and actions to values."""

    def __init__(self, head: Head, net: MLP) -> None:
        super().__init__()
        self.head, self.net = head, net

    def raw(self, state_BS: Tensor, action: Tensor, frozen: bool = False) -> Tensor:
        """[E, B, outputs] for [B, A] actions, [E, B, K, outputs] for [B, K, A].

        Args:
            state_BS: states.
            action: one action per state, or K.
            frozen: the networks take no gradient, the actions do.
        """
        if action.dim() == 2:
            return self.net(torch.cat((state_BS, action), -1), frozen)
        b, k, _ = action.shape
        state_BKS = state_BS[:, None].expand(b, k, state_BS.shape[1])
        return self.net(torch.cat((state_BKS, action), -1).flatten(0, 1), frozen).unflatten(1, (b, k))

    def value(self, state_BS: Tensor, action: Tensor) -> Tensor:
        """[E, B] or [E, B, K] values."""
        return self.head.value(self.raw(state_BS, action))

    def score(self, state_BS: Tensor, action: Tensor) -> Tensor:
        """[E, B] or [E, B, K] scores (see `Head.score`), with gradient in the actions alone."""
        return self.head.score(self.raw(state_BS, action, frozen=True))


class CriticNets(nn.Module):
    """The networks of a critic: Q, its target network, and V where the critic has one."""

    def __init__(self, config: "ControlCritic", q: QEnsemble, target: QEnsemble, v: MLP | None) -> None:
        super().__init__()
        self.config, self.q, self.target, self.v = config, q, target, v
        target.load_state_dict(q.state_dict())
        target.requires_grad_(False)

    def score(self, state_BS: Tensor, action: Tensor) -> Tensor:
        """[B] scores of [B, A] actions or [B, K] of [B, K, A], with gradient in the actions alone."""
        return reduce_ensemble(self.q.score(state_BS, action), self.config.reduction)


class ControlCritic(Component):
    """Family: how values are learned."""

    trunk: Trunk = Trunk()
    """Hidden layers of each network."""
    head: Head = Scalar()
    """What outputs mean."""
    ensemble: Count = 2
    """E, the networks of the ensemble."""
    reduction: Reduction = "min"
    """How their values become one."""
    tau: Annotated[float, Field(gt=0, le=1)] = 0.005
    """Share of the way to the trained networks that the target networks move after each step."""

    @property
    def needs_returns(self) -> bool:
        """Whether the loss reads `Batch.return_B`."""
        return False

    def make(self, state: int, action: int, generator: torch.Generator) -> CriticNets:
        """Networks for states of size `state` and actions of size `action`."""
        q, target = (
            QEnsemble(self.head, self.trunk.make(state + action, self.head.outputs, generator, self.ensemble))
            for _ in range(2)
        )
        return CriticNets(self, q, target, self.make_v(state, generator))

    def make_v(self, state: int, generator: torch.Generator) -> MLP | None:
        """The network of V; None where there is none."""
        return None

    @abstractmethod
    def loss(
        self, nets: CriticNets, batch: Batch, policy: PolicyNets, generator: torch.Generator, conservative: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch, a scalar, and metrics.

        Args:
            nets: the networks of this critic.
            batch: what is learned from.
            policy: the policy as it is now.
            generator: of all noise.
            conservative: whether a conservative critic is conservative in this update.
        """

    @torch.no_grad()
    def advantage(
        self, nets: CriticNets, state_BS: Tensor, action_BA: Tensor, policy: PolicyNets, generator: torch.Generator
    ) -> Tensor:
        """[B] Q(s, a) - V(s); where the critic has no V, Q of one action of the policy takes its place."""
        q_B = reduce_ensemble(nets.q.value(state_BS, action_BA), self.reduction)
        if nets.v is not None:
            return q_B - self.head.value(nets.v(state_BS)[0])
        usual_BA = policy.sample(state_BS, generator)[:, 0]
        return q_B - reduce_ensemble(nets.q.value(state_BS, usual_BA), self.reduction)

    def after_step(self, nets: CriticNets) -> None:
        """Moves the target networks."""
        polyak(nets.target, nets.q, self.tau)


class TDCritic(ControlCritic):
    """The value of the policy that is being trained: Q(s, a) toward r + gamma^h Q(s', a') with a' drawn from the policy
    and without its entropy (as in JaxCQL, Cal-QL and WSRL)."""

    subset: Count | None = None
    """Members that make a target, drawn anew for each batch (REDQ, arXiv 2101.05982: 2 of 10); None: all."""
    best_of: Count = 1
    """Actions drawn in the next state, of which the best one counts (`max_target_backup` of JaxCQL: 10)."""
    target_range: tuple[float, float] | None = None
    """Targets are clamped to it: the least and the largest return that are possible; None: not clamped."""
    conservative: Conservative | None = None
    """What lowers the values of unseen actions."""

    @property
    def needs_returns(self) -> bool:
        return self.conservative is not None and self.conservative.calibrated

    def loss(
        self, nets: CriticNets, batch: Batch, policy: PolicyNets, generator: torch.Generator, conservative: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        with torch.no_grad():
            next_BKA = policy.sample(batch.next_state_BS, generator, self.best_of)
            next_EBK = subsample(nets.target.value(batch.next_state_BS, next_BKA), self.subset, generator)
            next_B = reduce_ensemble(next_EBK, self.reduction).amax(-1)
            target_B = bellman_target(batch.reward_B, batch.discount_B, next_B)
            if self.target_range is not None:
                target_B = target_B.clamp(*self.target_range)
        raw = nets.q.raw(batch.state_BS, batch.action_BA)
        td_loss = self.head.loss(raw, target_B.expand(raw.shape[:2])).mean(1).sum()
        q_EB = self.head.value(raw)
        metrics = {"q": q_EB.mean(), "q_target": target_B.mean(), "q_loss": td_loss}
        if self.conservative is None or not conservative:
            return td_loss, metrics
        assert isinstance(policy, GaussianNets)  # `agent.Level` checks it
        gap_E = self.conservative(nets.q.value, q_EB, batch, policy, generator).mean(1)
        return td_loss + self.conservative.weight * gap_E.sum(), metrics | {"gap": gap_E.mean()}
