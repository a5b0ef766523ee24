"""Critics: how values are learnt. Each is networks and a loss on a batch.

What always holds: targets come from networks that take no gradient; the members of an ensemble are trained on the same
target, each by its own loss; a critic's loss gives a policy no gradient, nor a policy's loss a critic.
"""

from abc import abstractmethod
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

from longstride.control.batches import Batch
from longstride.control.conservative import Conservative
from longstride.control.policies import GaussianPolicy, Policy
from longstride.control.targets import Rule, agreed, bootstrapped, some
from longstride.core.component import Component
from longstride.models.heads import Head, Scalar
from longstride.models.mlp import MLP, Count, Trunk, polyak


class QEnsemble(nn.Module):
    """E networks from states and actions to values."""

    def __init__(self, head: Head, net: MLP) -> None:
        super().__init__()
        self.head, self.net = head, net

    def raw(self, state_BS: Tensor, action: Tensor, frozen: bool = False) -> Tensor:
        """[E, B, outputs] for [B, A] actions, [E, B, K, outputs] for [B, K, A].

        Args:
            state_BS: states.
            action: one action a state, or K.
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
    """The networks of a critic."""

    def __init__(self, config: "Critic", q: QEnsemble, target: QEnsemble, v: MLP | None) -> None:
        super().__init__()
        self.config, self.q, self.target, self.v = config, q, target, v
        target.load_state_dict(q.state_dict())
        target.requires_grad_(False)

    def score(self, state_BS: Tensor, action: Tensor) -> Tensor:
        """[B] scores of [B, A] actions or [B, K] of [B, K, A], with gradient in the actions alone."""
        return agreed(self.q.score(state_BS, action), self.config.rule)


class Critic(Component):
    """Family: how values are learnt."""

    trunk: Trunk = Trunk()
    """Hidden layers of each network."""
    head: Head = Scalar()
    """What outputs mean."""
    ensemble: Count = 2
    """E, networks of the ensemble."""
    rule: Rule = "min"
    """How they become one value."""
    tau: Annotated[float, Field(gt=0, le=1)] = 0.005
    """Share of the way that the target networks go after each step."""

    @property
    def returns(self) -> bool:
        """Whether `Batch.return_B` is read."""
        return False

    def make(self, state: int, action: int, generator: torch.Generator) -> CriticNets:
        """Networks for states of size `state` and actions of size `action`."""
        q, target = (
            QEnsemble(
                self.head, self.trunk.make(state + action, self.head.outputs, generator, self.ensemble)
            )
            for _ in range(2)
        )  # fmt: skip
        return CriticNets(self, q, target, self._make_v(state, generator))

    def _make_v(self, state: int, generator: torch.Generator) -> MLP | None:
        return None

    @abstractmethod
    def loss(
        self, nets: CriticNets, batch: Batch, policy: Policy, generator: torch.Generator, conservative: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch, and metrics without gradient."""

    @torch.no_grad()
    @abstractmethod
    def advantage(
        self, nets: CriticNets, state_BS: Tensor, action_BA: Tensor, policy: Policy, generator: torch.Generator
    ) -> Tensor:
        """[B] how much better an action is than what is usual."""

    def after_step(self, nets: CriticNets) -> None:
        """Lets the target networks follow."""
        polyak(nets.target, nets.q, self.tau)


class Sarsa(Critic):
    """The value of how the data behaves: V toward Q's target network, Q toward V of the next state, and no maximum
    anywhere (SHARSA, arXiv 2506.04168)."""

    def _make_v(self, state: int, generator: torch.Generator) -> MLP:
        return self.trunk.make(state, self.head.outputs, generator)

    def loss(
        self, nets: CriticNets, batch: Batch, policy: Policy, generator: torch.Generator, conservative: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        assert nets.v is not None
        raw_v = nets.v(torch.cat((batch.state_BS, batch.next_state_BS)))[0]
        raw_v, raw_next = raw_v.chunk(2)
        with torch.no_grad():
            target_v_B = agreed(nets.target.value(batch.state_BS, batch.action_BA), self.rule)
            target_q_B = bootstrapped(batch.reward_B, batch.discount_B, self.head.value(raw_next))
        raw_q = nets.q.raw(batch.state_BS, batch.action_BA)
        loss_v = self.head.loss(raw_v, target_v_B).mean()
        loss_q = self.head.loss(raw_q, target_q_B.expand(raw_q.shape[:2])).mean(1).sum()
        metrics = {"v": target_v_B.mean(), "q_target": target_q_B.mean(), "v_loss": loss_v, "q_loss": loss_q}
        return loss_v + loss_q, metrics

    @torch.no_grad()
    def advantage(
        self, nets: CriticNets, state_BS: Tensor, action_BA: Tensor, policy: Policy, generator: torch.Generator
    ) -> Tensor:
        assert nets.v is not None
        q_B = agreed(nets.q.value(state_BS, action_BA), self.rule)
        return q_B - self.head.value(nets.v(state_BS)[0])


class PolicyValue(Critic):
    """The value of the policy that is being trained: toward r + gamma^h Q(s', a'), a' drawn from the policy, without
    the entropy (as JaxCQL, Cal-QL and WSRL have it)."""

    subset: Count | None = None
    """Members that a target is made of, drawn anew for each batch (REDQ, arXiv 2101.05982: 2 of 10); all if None."""
    best_of: Count = 1
    """Actions drawn in the next state, of which the best one counts (`max_target_backup` of JaxCQL: 10)."""
    range: tuple[float, float] | None = None
    """Targets are cut to it: what is known of every return."""
    conservative: Conservative | None = None
    """What pushes values of unseen actions down."""

    @property
    def returns(self) -> bool:
        return self.conservative is not None and self.conservative.calibrated

    def loss(
        self, nets: CriticNets, batch: Batch, policy: Policy, generator: torch.Generator, conservative: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        with torch.no_grad():
            next_BKA = policy.sample(batch.next_state_BS, generator, self.best_of)
            next_EBK = some(nets.target.value(batch.next_state_BS, next_BKA), self.subset, generator)
            next_B = agreed(next_EBK, self.rule).amax(-1)
            target_B = bootstrapped(batch.reward_B, batch.discount_B, next_B)
            if self.range is not None:
                target_B = target_B.clamp(*self.range)
        raw = nets.q.raw(batch.state_BS, batch.action_BA)
        td_loss = self.head.loss(raw, target_B.expand(raw.shape[:2])).mean(1).sum()
        q_EB = self.head.value(raw)
        metrics = {"q": q_EB.mean(), "q_target": target_B.mean(), "q_loss": td_loss}
        if self.conservative is None or not conservative:
            return td_loss, metrics
        assert isinstance(policy, GaussianPolicy)  # see `agent.Level`
        gap_E = self.conservative(nets.q.value, q_EB, batch, policy, generator).mean(1)
        return td_loss + self.conservative.weight * gap_E.sum(), metrics | {"gap": gap_E.mean()}

    @torch.no_grad()
    def advantage(
        self, nets: CriticNets, state_BS: Tensor, action_BA: Tensor, policy: Policy, generator: torch.Generator
    ) -> Tensor:
        both_BKA = torch.cat((action_BA[:, None], policy.sample(state_BS, generator)), 1)
        q_BK = agreed(nets.q.value(state_BS, both_BKA), self.rule)
        return q_BK[:, 0] - q_BK[:, 1]
