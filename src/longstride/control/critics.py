"""Critics: how values are learned. A critic is networks that score actions, and a loss on a batch.

What always holds: targets come from networks that take no gradient; the members of an ensemble are trained on the same
target, each by its own loss; a critic's loss gives the policy no gradient, and a policy's loss gives the critic none.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from longstride.control.batches import Batch, NStep
from longstride.control.conservative import Conservative, exact_gap
from longstride.control.data import TransitionStore
from longstride.control.envs.base import ControlEpisode, Spec
from longstride.control.noise import RunNoise
from longstride.control.policies import ControlPolicy, PolicyNets
from longstride.control.targets import (
    Reduction,
    bellman_target,
    best_returns,
    reduce_ensemble,
    reduce_returns,
    subsample,
)
from longstride.core.component import Component
from longstride.core.numbers import Count, Ends, Weight
from longstride.models.heads import Head, Scalar
from longstride.models.mlp import MLP, Trunk, polyak

Pace = Annotated[float, Field(gt=0, le=1)]
"""A share of the way to the trained networks that target networks move in a step."""


class CriticNets(nn.Module):
    """The networks of a critic, of which policies know how good an action is."""

    @abstractmethod
    def score(self, state_BS: Tensor, action: Tensor) -> Tensor:
        """[B] scores of [B, A] actions or [B, K] of [B, K, A], with gradient in the actions alone."""

    @torch.no_grad()
    def advantage(self, batch: Batch, policy: PolicyNets, noise: RunNoise) -> Tensor:
        """[B] by how much the actions of a batch are better than those of the policy; here, than one that it draws
        (AWAC, arXiv 2006.09359)."""
        drawn_BA = policy.sample(batch.state_BS, noise).squeeze(-2)
        return self.score(batch.state_BS, batch.action_BA) - self.score(batch.state_BS, drawn_BA)

    def worth(self, state_BS: Tensor) -> Tensor | None:
        """[B] what states are worth, where that is learned apart from actions; None here."""
        return None


class ControlCritic(Component):
    """Family: how values are learned. A critic is networks that score actions, and a loss on a batch."""

    discrete: ClassVar[bool] = False
    """Whether it knows discrete actions alone."""
    side_by_side: ClassVar[bool] = False
    """Whether it knows an axis of runs before B (see `Batch`). A class says so for itself: what inherits from it may
    compute otherwise."""

    @property
    def needs_returns(self) -> bool:
        """Whether the loss reads `Batch.return_B`."""
        return False

    values: ClassVar[tuple[type[ControlPolicy], ...]] = (ControlPolicy,)
    """Which policies its loss knows."""
    scores: ClassVar[bool] = True
    """Whether it scores any action (`CriticNets.score`), or knows the advantage of those of the data alone."""
    slopes: ClassVar[bool] = True
    """Whether its scores have a slope in real-valued actions."""
    on_policy: ClassVar[bool] = False
    """Whether it learns from what the policy has just done, and from nothing else."""
    values_entropy: ClassVar[bool] = False
    """Whether its targets have the entropy of later actions where the policy's extraction is `soft`. A class says so
    for itself."""
    reads_store: ClassVar[bool] = False
    """Whether `returns` reads the states of the data, which have no memory."""
    single_steps: ClassVar[bool] = False
    """Whether it learns from transitions of one step alone."""
    solved: ClassVar[bool] = False
    """Whether it is computed from all data at once (`fit`), before the updates of an iteration, and not trained."""

    @abstractmethod
    def make(self, state: int, action: int, generator: torch.Generator) -> CriticNets:
        """Networks for states of size `state` and actions of size `action`."""

    def make_for(self, spec: Spec, state: int, action: int, generator: torch.Generator) -> CriticNets:
        """As `make`, where `spec` says what the columns of an observation are; here nothing has to be known of them."""
        return self.make(state, action, generator)

    def make_beside(
        self, first: CriticNets | None, spec: Spec, state: int, action: int, generator: torch.Generator
    ) -> CriticNets:
        """As `make_for`; a further critic may share networks with the first one of its level. Here it does not."""
        return self.make_for(spec, state, action, generator)

    def returns(self, nets: CriticNets, data: NStep, store: TransitionStore) -> np.ndarray | None:
        """[R] what `Batch.return_B` is made of; here the returns in the data where they are needed."""
        return data.returns(store) if self.needs_returns else None

    def before_updates(self, nets: CriticNets) -> None:
        """Keeps what has to stay as it is during the updates of an iteration; here nothing has to."""

    def fit(self, nets: CriticNets, steps: Batch, first_ES: Tensor, rng: np.random.Generator) -> dict[str, float]:
        """Computes what is `solved`, and gives metrics.

        Args:
            nets: the networks that this critic has made, without a weight that is trained.
            steps: all steps of the stores that are learned from.
            first_ES: the first state of each episode.
            rng: all random numbers.
        """
        raise NotImplementedError

    @abstractmethod
    def loss(
        self, nets: CriticNets, batch: Batch, policy: PolicyNets, noise: RunNoise, conservative: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch, a scalar, and metrics; of what is `solved` it is never asked for.

        Args:
            nets: the networks that this critic has made.
            batch: what is learned from.
            policy: the policy as it is now, or its target network where there is one.
            noise: all random numbers.
            conservative: whether a conservative critic is conservative in this update.
        """

    def after_step(self, nets: CriticNets) -> None:
        """Moves what follows the trained networks, such as target networks; here nothing does."""

    def measures(
        self, nets: CriticNets, data: NStep, episode: ControlEpisode, known_T: np.ndarray | None
    ) -> dict[str, float]:
        """What is measured of its values in a test episode, by name; here nothing.

        Args:
            nets: the networks that this critic has made.
            data: what it learns from.
            episode: T steps.
            known_T: what their states are worth, in the rewards of the tasks, where that is known.
        """
        return {}


class WeightedCritics(CriticNets):
    """Several critics of one level, by name; the score of an action is the weighted sum of theirs.

    Args:
        parts: the networks of each.
        weights: the factor of each.
    """

    def __init__(self, parts: Mapping[str, CriticNets], weights: Mapping[str, float]) -> None:
        super().__init__()
        self.parts, self.weights = dict(parts), dict(weights)
        self.nets = nn.ModuleDict(parts)

    def score(self, state_BS: Tensor, action: Tensor) -> Tensor:
        scored = [w * self.parts[name].score(state_BS, action) for name, w in self.weights.items() if w]
        return torch.stack(scored).sum(0)

    def advantage(self, batch: Batch, policy: PolicyNets, noise: RunNoise) -> Tensor:
        found = [w * self.parts[name].advantage(batch, policy, noise) for name, w in self.weights.items() if w]
        return torch.stack(found).sum(0)


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
        if action.dim() == state_BS.dim():
            return self.net(torch.cat((state_BS, action), -1), frozen)
        state_BKS = state_BS.unsqueeze(-2).expand(*action.shape[:-1], -1)
        each = self.net(torch.cat((state_BKS, action), -1).flatten(-3, -2), frozen)
        return each.unflatten(-2, (-1, action.shape[-2]))

    def value(self, state_BS: Tensor, action: Tensor) -> Tensor:
        """[E, B] or [E, B, K] values."""
        return self.head.value(self.raw(state_BS, action))

    def returns(self, state_BS: Tensor, action: Tensor) -> Tensor:
        """[E, B, N] or [E, B, K, N] equally likely returns (see `Head.returns`)."""
        return self.head.returns(self.raw(state_BS, action))

    def score(self, state_BS: Tensor, action: Tensor) -> Tensor:
        """[E, B] or [E, B, K] scores (see `Head.score`), with gradient in the actions alone."""
        return self.head.score(self.raw(state_BS, action, frozen=True))


class DiscreteQ(QEnsemble):
    """E networks from states to the values of all A discrete actions; an action is a row of zeros with a one."""

    def each(self, state_BS: Tensor, frozen: bool = False) -> Tensor:
        """[E, B, A, outputs] of all actions."""
        return self.net(state_BS, frozen).unflatten(-1, (-1, self.head.outputs))

    def raw(self, state_BS: Tensor, action: Tensor, frozen: bool = False) -> Tensor:
        each_EBAN = self.each(state_BS, frozen)
        if action.dim() == state_BS.dim():
            return (each_EBAN * action[..., None]).sum(-2)
        return action @ each_EBAN


class QNets(CriticNets):
    """The networks of a `QCritic`: Q, its target network, and V where the critic has one."""

    def __init__(self, config: "QCritic", q: QEnsemble, target: QEnsemble, v: MLP | None) -> None:
        super().__init__()
        self.config, self.q, self.target, self.v = config, q, target, v
        target.load_state_dict(q.state_dict())
        target.requires_grad_(False)

    def score(self, state_BS: Tensor, action: Tensor) -> Tensor:
        return reduce_ensemble(self.q.score(state_BS, action), self.config.followed or self.config.reduction)


class QCritic(ControlCritic):
    """Critics that are an ensemble of Q with target networks."""

    trunk: Trunk = Trunk()
    """Hidden layers of each network."""
    head: Head = Scalar()
    """What outputs mean."""
    ensemble: Count = 2
    """E, the networks of the ensemble."""
    reduction: Reduction = "min"
    """How their values become one."""
    followed: Reduction | None = None
    """How their values become the score that policies raise; None: by `reduction` too. TD3 raises the first's."""
    tau: Pace = 0.005
    """Share of the way to the trained networks that the target networks move after each step."""

    def make(self, state: int, action: int, generator: torch.Generator) -> QNets:
        q, target = (self.make_q(state, action, generator) for _ in range(2))
        return QNets(self, q, target, self.make_v(state, generator))

    def make_q(self, state: int, action: int, generator: torch.Generator) -> QEnsemble:
        """The networks of Q."""
        return QEnsemble(self.head, self.trunk.make(state + action, self.head.outputs, generator, self.ensemble))

    def make_v(self, state: int, generator: torch.Generator) -> MLP | None:
        """The network of V; None where there is none."""
        return None

    def q_loss(self, nets: QNets, batch: Batch, returns_BN: Tensor) -> tuple[Tensor, Tensor]:
        """The sum of the members' mean losses against [B, N] equally likely returns, a scalar, and the [E, B] values
        that it is of."""
        raw = nets.q.raw(batch.state_BS, batch.action_BA)
        loss_EB = self.head.loss_of_returns(raw, returns_BN.expand(len(raw), *returns_BN.shape))
        return loss_EB.mean(-1).sum(0), self.head.value(raw)

    def metrics(self, q_EB: Tensor, target_BN: Tensor, loss: Tensor) -> dict[str, Tensor]:
        """What is said of an update: the mean value, the mean target and the loss."""
        return {"q": q_EB.mean((0, -1)), "q_target": target_BN.mean((-2, -1)), "q_loss": loss}

    def after_step(self, nets: QNets) -> None:
        polyak(nets.target, nets.q, self.tau)


class TDCritic(QCritic):
    """The value of the policy that is being trained: Q(s, a) toward r + gamma^h Q(s', a') with a' drawn from the
    policy, and what its entropy is worth where the extraction is `soft`."""

    side_by_side = True
    values_entropy = True

    subset: Count | None = None
    """Members that make a target, drawn anew for each batch (REDQ, arXiv 2101.05982: 2 of 10); None: all."""
    best_of: Count = 1
    """Actions drawn in the next state, of which the best one counts (`max_target_backup` of JaxCQL: 10)."""
    target_range: Ends | None = None
    """Targets are clamped to it: the least and the largest return that are possible; None: not clamped."""
    conservative: Conservative | None = None
    """What lowers the values of unseen actions."""

    @property
    def needs_returns(self) -> bool:
        return self.conservative is not None and self.conservative.calibrated

    @torch.no_grad()
    def target(self, nets: QNets, batch: Batch, policy: PolicyNets, noise: RunNoise) -> Tensor:
        """[B, N] equally likely returns that the values of a batch's actions are moved toward."""
        next_BKA, entropy_BK = policy.sample_valued(batch.next_state_BS, noise, self.best_of)
        next_EBKN = subsample(nets.target.returns(batch.next_state_BS, next_BKA), self.subset, noise)
        next_BKN = reduce_returns(next_EBKN, self.reduction)
        next_BN = best_returns(next_BKN if entropy_BK is None else next_BKN + entropy_BK[..., None])
        target_BN = bellman_target(batch.reward_B[..., None], batch.discount_B[..., None], next_BN)
        return target_BN if self.target_range is None else target_BN.clamp(*self.target_range)

    def loss(
        self, nets: QNets, batch: Batch, policy: PolicyNets, noise: RunNoise, conservative: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        target_BN = self.target(nets, batch, policy, noise)
        loss, q_EB = self.q_loss(nets, batch, target_BN)
        metrics = self.metrics(q_EB, target_BN, loss)
        if self.conservative is None or not conservative:
            return loss, metrics
        gap_E = self.gap(nets, q_EB, batch, policy, noise).mean(-1)
        return loss + self.conservative.weight * gap_E.sum(0), metrics | {"gap": gap_E.mean(0)}

    def gap(self, nets: QNets, q_EB: Tensor, batch: Batch, policy: PolicyNets, noise: RunNoise) -> Tensor:
        """[E, B] how far values of other actions are above `q_EB`, those of the data's (see `Conservative`)."""
        assert self.conservative is not None
        return self.conservative(nets.q.value, q_EB, batch, policy, noise)


class DQN(QCritic):
    """The value of the best discrete action (DQN, arXiv 1312.5602) with double targets (arXiv 1509.06461): Q(s, a)
    toward r + gamma^h Q'(s', argmax_a' Q(s', a')), where Q' is the target network. The policy is not read."""

    discrete = True
    side_by_side = True

    ensemble: Count = 1
    """E: one network, as in the papers; with two their reduction chooses and values."""
    gap: Weight = 0.0
    """Weight of CQL's term for discrete actions, logsumexp_a Q(s, a) - Q(s, a of the data) (arXiv 2006.04779), in
    phases that are conservative."""

    def make_q(self, state: int, action: int, generator: torch.Generator) -> DiscreteQ:
        return DiscreteQ(self.head, self.trunk.make(state, action * self.head.outputs, generator, self.ensemble))

    def loss(
        self, nets: QNets, batch: Batch, policy: PolicyNets, noise: RunNoise, conservative: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        with torch.no_grad():
            every_AA = torch.eye(batch.action_BA.shape[-1])
            every_BAA = every_AA.expand(*batch.action_BA.shape, -1)
            value_BA = reduce_ensemble(nets.q.value(batch.next_state_BS, every_BAA), self.reduction)
            best_BA = every_AA[value_BA.argmax(-1)]
            next_BN = reduce_returns(nets.target.returns(batch.next_state_BS, best_BA), self.reduction)
            target_BN = bellman_target(batch.reward_B[..., None], batch.discount_B[..., None], next_BN)
        loss, q_EB = self.q_loss(nets, batch, target_BN)
        return self.widened(loss, self.metrics(q_EB, target_BN, loss), nets, batch, conservative)

    def widened(
        self, loss: Tensor, metrics: dict[str, Tensor], nets: QNets, batch: Batch, conservative: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """A loss and its metrics, with the gap where there is one."""
        if not self.gap or not conservative:
            return loss, metrics
        assert isinstance(nets.q, DiscreteQ)
        gap_E = exact_gap(self.head.value(nets.q.each(batch.state_BS)), batch.action_BA).mean(-1)
        return loss + self.gap * gap_E.sum(0), metrics | {"gap": gap_E.mean(0)}
