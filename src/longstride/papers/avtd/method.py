"""Several critics and policies that learn from the same rows, each regularised in its own way, of which the one acts whose
temporal-difference error is least on rows that none of them learns from (`Panel`, `LeastError`).

What always holds: what is held out trains nothing; an error is of a member's own values, targets and policy.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Annotated, Self

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from longstride.control import (
    SAC,
    Batch,
    ControlCritic,
    CriticNets,
    Extraction,
    GaussianPolicy,
    Level,
    NStep,
    PolicyNets,
    QNets,
    TDCritic,
    TransitionStore,
)
from longstride.control.critics import Pace
from longstride.control.extraction import Actor
from longstride.control.networks import each
from longstride.control.noise import RunNoise
from longstride.core.errors import ConfigError
from longstride.core.numbers import Positive


class PenalisedTD(TDCritic):
    """`TDCritic` with the squares of its weights in its loss."""

    side_by_side = True

    penalty: Positive = 1e-3
    """Factor of the sum of their squares; biases are left out."""

    def loss(
        self, nets: QNets, batch: Batch, policy: PolicyNets, noise: RunNoise, conservative: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        loss, metrics = super().loss(nets, batch, policy, noise, conservative)
        squares = [weight.square().sum((0, -2, -1)) for weight in nets.q.net.weights]
        return loss + self.penalty * torch.stack(squares).sum(0), metrics


class PanelNets(CriticNets):
    """The networks of a `Panel`, and how wrong each member is on rows that are held out."""

    def __init__(self, parts: Mapping[str, QNets]) -> None:
        super().__init__()
        self.parts = nn.ModuleDict(parts)
        self.error = nn.Parameter(torch.zeros(len(parts)), requires_grad=False)
        """[K] running means, 0 before the first held-out rows."""

    @property
    def members(self) -> list[QNets]:
        """In their order."""
        return [part for part in self.parts.values() if isinstance(part, QNets)]

    @property
    def best(self) -> int:
        """Which one's error is least; of equals, the first."""
        return int(self.error.argmin())

    def score(self, state_BS: Tensor, action: Tensor) -> Tensor:
        return self.members[self.best].score(state_BS, action)


class Panel(ControlCritic):
    """Critics by name, each of which learns from the same rows and values a policy of its own (AVTD, arXiv 2304.10466)."""

    critics: Annotated[dict[str, TDCritic], Field(min_length=2)]
    """They differ in what keeps them from overfitting."""
    held_out: Annotated[int, Field(ge=2)] = 10
    """Of so many episodes one is held out, the last one."""
    follow: Pace = 0.02
    """Share of the way to the error of a batch's held-out rows that the running mean moves."""

    @property
    def needs_returns(self) -> bool:
        """The place of returns in a batch says which rows are held out."""
        return True

    @model_validator(mode="after")
    def _reads_no_returns(self) -> Self:
        if wrong := [name for name, critic in self.critics.items() if critic.needs_returns]:
            raise ValueError(f"critics.{wrong[0]} reads the returns of the data, whose place says what is held out")
        return self

    def make(self, state: int, action: int, generator: torch.Generator) -> PanelNets:
        return PanelNets({name: critic.make(state, action, generator) for name, critic in self.critics.items()})

    def returns(self, nets: CriticNets, data: NStep, store: TransitionStore) -> np.ndarray:
        """[R] 1 for rows that are held out, 0 for others."""
        length_E = np.diff(store.last, prepend=-1)
        held_E = np.arange(store.episodes) % self.held_out == self.held_out - 1
        return np.repeat(held_E, length_E).astype(np.float32)

    def loss(
        self, nets: CriticNets, batch: Batch, policy: PolicyNets, noise: RunNoise, conservative: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        assert isinstance(nets, PanelNets) and isinstance(policy, PolicyPanel)
        if len(policy.parts) != len(self.critics):
            raise ConfigError(
                f"extraction.count is {len(policy.parts)}, and the panel has {len(self.critics)} critics; set it to that"
            )
        learned, held = parted(batch)
        losses, metrics, errors = [], {}, []
        for (name, critic), own, of in zip(self.critics.items(), nets.members, policy.parts, strict=True):
            loss, said = critic.loss(own, learned, of, noise, conservative)
            losses.append(loss)
            metrics |= {f"{name}.{key}": value for key, value in said.items()}
            errors.append(td_error(critic, own, held, of, noise) if len(held.reward_B) else loss.new_tensor(torch.nan))
        error_K = torch.stack(errors)
        with torch.no_grad():
            moved_K = torch.where(nets.error == 0, error_K, nets.error.lerp(error_K, self.follow))
            nets.error.copy_(torch.where(error_K.isnan(), nets.error, moved_K))
        metrics |= {f"{name}.held_error": nets.error[k].clone() for k, name in enumerate(self.critics)}
        return torch.stack(losses).sum(), metrics

    def after_step(self, nets: CriticNets) -> None:
        assert isinstance(nets, PanelNets)
        for critic, own in zip(self.critics.values(), nets.members, strict=True):
            critic.after_step(own)


@torch.no_grad()
def td_error(critic: TDCritic, nets: QNets, batch: Batch, policy: PolicyNets, noise: RunNoise) -> Tensor:
    """The mean square of Q(s, a) - (r + gamma^h Q'(s', a')) over rows and members of the ensemble, a scalar."""
    target_B = critic.target(nets, batch, policy, noise).mean(-1)
    return (nets.q.value(batch.state_BS, batch.action_BA) - target_B).square().mean()


def parted(batch: Batch) -> tuple[Batch, Batch]:
    """The rows that are learned from, and those that are held out."""
    held_B = batch.return_B > 0
    return each(lambda rows: rows[~held_B], batch), each(lambda rows: rows[held_B], batch)


class PolicyPanel(PolicyNets):
    """A policy for each member of a panel; by itself it acts as the first."""

    def __init__(self, parts: Sequence[PolicyNets]) -> None:
        super().__init__()
        self.parts = list(parts)  # who made them registers them

    def sample(self, state_BS: Tensor, noise: RunNoise, count: int = 1) -> Tensor:
        return self.parts[0].sample(state_BS, noise, count)

    def greedy(self, state_BS: Tensor, noise: RunNoise) -> Tensor:
        return self.parts[0].greedy(state_BS, noise)

    def imitation_loss(self, state_BS: Tensor, action_BA: Tensor, noise: RunNoise) -> Tensor:
        """[B] the sum over all of them."""
        return torch.stack([part.imitation_loss(state_BS, action_BA, noise) for part in self.parts]).sum(0)


class PanelActor(Actor):
    """The policies of a panel, each with what its extraction adjusts beside it."""

    def __init__(self, parts: Sequence[Actor]) -> None:
        nn.Module.__init__(self)
        self.parts = nn.ModuleList(parts)
        self.target, self.log_temperature = None, None

    @property
    def members(self) -> list[Actor]:
        """In their order."""
        return [part for part in self.parts if isinstance(part, Actor)]

    @property
    def policy(self) -> PolicyPanel:
        """All of them."""
        return PolicyPanel([part.policy for part in self.members])

    @property
    def valued(self) -> PolicyPanel:
        return PolicyPanel([part.valued for part in self.members])


class LeastError(Extraction):
    """Each member of a `Panel` has a policy, which follows its critic by `extraction`; the one acts whose critic is least
    wrong on what is held out."""

    reads = (Panel,)
    trains = (GaussianPolicy,)

    extraction: SAC = SAC()
    """How a policy follows its critic."""
    count: Annotated[int, Field(ge=2)] = 2
    """Policies: as many as the panel has critics."""

    def make(self, policy: PolicyNets) -> PanelActor:
        """They begin alike."""
        return PanelActor([self.extraction.make(copy.deepcopy(policy)) for _ in range(self.count)])

    def cloning(self, actor: Actor, batch: Batch, noise: RunNoise) -> tuple[Tensor, dict[str, Tensor]]:
        return super().cloning(actor, parted(batch)[0], noise)

    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch, noise: RunNoise
    ) -> tuple[Tensor, dict[str, Tensor]]:
        assert isinstance(actor, PanelActor) and isinstance(critic, PanelNets)
        learned, _ = parted(batch)
        losses, metrics = [], {}
        for name, own, of in zip(critic.parts, actor.members, critic.members, strict=True):
            loss, said = self.extraction.loss(own, of, learned, noise)
            losses.append(loss)
            metrics |= {f"{name}.{key}": value for key, value in said.items()}
        return torch.stack(losses).sum(), metrics

    def after_step(self, actor: Actor) -> None:
        assert isinstance(actor, PanelActor)
        for own in actor.members:
            self.extraction.after_step(own)

    def act(self, actor: Actor, critic: CriticNets | None, state_BS: Tensor, noise: RunNoise, explore: bool) -> Tensor:
        assert isinstance(actor, PanelActor) and isinstance(critic, PanelNets)
        best = critic.best
        return self.extraction.act(actor.members[best], critic.members[best], state_BS, noise, explore)


def panel(
    critics: Mapping[str, TDCritic], policy: GaussianPolicy, extraction: SAC, data: NStep, held_out: int = 10
) -> Level:
    """A level with one policy for each critic; of `held_out` episodes one is held out."""
    return Level(
        data=data,
        critic=Panel(critics=dict(critics), held_out=held_out),
        policy=policy,
        extraction=LeastError(extraction=extraction, count=len(critics)),
    )
