"""Values for every confidence (`ConfidenceQ`), and a belief over confidences that adapts while it acts (`ConfidenceBelief`)."""

import math
from typing import Annotated
from weakref import WeakKeyDictionary

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from longstride.control import (
    DQN,
    Batch,
    CriticNets,
    Extraction,
    NStep,
    PolicyNets,
    QNets,
    TransitionStore,
    UniformPolicy,
)
from longstride.control.conservative import exact_gap
from longstride.control.critics import DiscreteQ, QEnsemble
from longstride.control.extraction import Actor
from longstride.control.noise import RunNoise
from longstride.control.targets import bellman_target, reduce_ensemble
from longstride.core.numbers import Count, Positive, Weight

LEAST = 1e-4
"""What a confidence is at least: the bound of 0 would be infinite."""


def pseudo_counts(state_RS: np.ndarray, frequency_SF: np.ndarray) -> np.ndarray:
    """[R] how often a state like each of these is among them: n = 1 / f (F'F + I)^-1 f, f random Fourier features of the
    states in units of their deviations (Rahimi and Recht, 2007), of these frequencies and each of length 1. A state that is
    like no other has 2 at most, one that is there n times n + 1. It is a count of learned features in the paper (after
    arXiv 1709.05380)."""
    state_RS = state_RS.astype(float)
    scaled_RS = (state_RS - state_RS.mean(0)) / np.where(state_RS.std(0) > 0, state_RS.std(0), 1.0)
    angle_RF = scaled_RS @ frequency_SF
    f = np.concatenate((np.cos(angle_RF), np.sin(angle_RF)), 1) / math.sqrt(frequency_SF.shape[1])
    return 1 / (f * np.linalg.solve(f.T @ f + np.eye(f.shape[1]), f.T).T).sum(1)


class ConfidentNets(QNets):
    """The networks of a `ConfidenceQ`, which read a state followed by cosines of a confidence; and the counts of the states
    of each store, by features of these frequencies."""

    frequency: Tensor

    def __init__(self, config: "ConfidenceQ", q: QEnsemble, target: QEnsemble, frequency_SF: Tensor) -> None:
        super().__init__(config, q, target, None)
        self.register_buffer("frequency", frequency_SF)
        self.counts: WeakKeyDictionary[TransitionStore, np.ndarray] = WeakKeyDictionary()

    def values(self, q: DiscreteQ, state_BS: Tensor, delta_B: Tensor) -> Tensor:
        """[E, B, A, outputs] of all actions, where the confidence of a row is 1 - delta."""
        assert isinstance(self.config, ConfidenceQ)
        angle_BC = math.pi * delta_B[:, None] * torch.arange(1, self.config.cosines + 1)
        return q.each(torch.cat((state_BS, angle_BC.cos()), -1))


class ConfidenceQ(DQN):
    """Q(s, a, delta), which is to lie below the true value with the confidence 1 - delta, for all delta at once: for D of
    them that are drawn for a batch,

        Q(s, a, d) toward r + gamma max over d' <= d of max_a' Q(s', a', d')
        + gap sqrt(log(1 / d) / n(s)) (logsumexp_a Q(s, a, d) - Q(s, a of the data, d))

    so the less is known of a state, and the more confident a value is to be, the lower are the actions that the data have
    not. Targets are double ones, as in DQN; n is `pseudo_counts` of the store."""

    scores = False
    side_by_side = False
    reads_store = True

    gap: Weight = 1.0
    """alpha, the factor of the bound."""
    drawn: Count = 8
    """D."""
    cosines: Count = 16
    """cos(pi i delta), i = 1, 2, ...: what a network sees of a confidence."""
    features: Count = 64
    """Frequencies of the features that states are counted by."""

    @property
    def needs_returns(self) -> bool:
        return True

    def make(self, state: int, action: int, generator: torch.Generator) -> ConfidentNets:
        q, target = (self.make_q(state + self.cosines, action, generator) for _ in range(2))
        return ConfidentNets(self, q, target, torch.randn(state, self.features, generator=generator))

    def returns(self, nets: CriticNets, data: NStep, store: TransitionStore) -> np.ndarray:
        """[R] counts of the states of a store, made when it has grown."""
        assert isinstance(nets, ConfidentNets)
        if len(nets.counts.get(store, ())) != store.rows:
            rows_R = np.arange(store.rows)
            state_RS = data.states(store, rows_R, store.goal[store.episode_of(rows_R)])
            nets.counts[store] = pseudo_counts(state_RS, nets.frequency.cpu().numpy())
        return nets.counts[store]

    def loss(
        self, nets: QNets, batch: Batch, policy: PolicyNets, noise: RunNoise, conservative: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        assert isinstance(nets, ConfidentNets)
        assert isinstance(nets.q, DiscreteQ) and isinstance(nets.target, DiscreteQ)
        drawn_D = noise.uniform(self.drawn).clamp(min=LEAST).sort().values
        apart = (self.drawn, len(batch.reward_B))
        delta_N, state_NS, next_NS, action_NA = (
            drawn_D.repeat_interleave(apart[1]),
            *(rows.repeat(self.drawn, 1) for rows in (batch.state_BS, batch.next_state_BS, batch.action_BA)),
        )  # N = D B rows, one confidence after the other
        with torch.no_grad():
            ahead_NA = reduce_ensemble(self.head.value(nets.values(nets.q, next_NS, delta_N)), self.reduction)
            then_NA = reduce_ensemble(self.head.value(nets.values(nets.target, next_NS, delta_N)), self.reduction)
            best_N = then_NA.take_along_dim(ahead_NA.argmax(-1, keepdim=True), -1)[:, 0]
            best_DB = best_N.unflatten(0, apart).cummax(0).values
            target_N = bellman_target(batch.reward_B, batch.discount_B, best_DB).flatten()
        raw_ENA = nets.values(nets.q, state_NS, delta_N)
        taken_EN = (raw_ENA * action_NA[..., None]).sum(-2)
        loss = self.head.loss(taken_EN, target_N.expand(len(taken_EN), -1)).mean(-1).sum(0)
        metrics = self.metrics(self.head.value(taken_EN), target_N[:, None], loss)
        if not self.gap or not conservative:
            return loss, metrics
        bound_N = self.gap * (-delta_N.log() / batch.return_B.repeat(self.drawn)).sqrt()
        gap_EN = exact_gap(self.head.value(raw_ENA), action_NA)
        return loss + (bound_N * gap_EN).mean(-1).sum(0), metrics | {"gap": gap_EN.mean(), "bound": bound_N.mean()}


class ConfidenceBelief(Extraction):
    """The best action by the values of one confidence, which is drawn in each step from a belief. An episode begins with
    all of `deltas` alike; each of its steps lowers the belief in each by its squared temporal difference,

        log b(d) <- log b(d) - (Q(s, a, d) - r - gamma max_a' Q(s', a', d))^2 / (2 scale^2)

    With a single delta it is a conservative method of a fixed degree. In training it acts as in tests."""

    trains = (UniformPolicy,)
    reads = (ConfidenceQ,)
    needs_discrete = True
    needs_scores = False
    adapts = True

    deltas: Annotated[tuple[Annotated[float, Field(ge=LEAST, le=1)], ...], Field(min_length=1)] = (
        0.001,
        0.01,
        0.05,
        0.1,
        0.25,
        0.5,
        0.75,
        1.0,
    )
    """D values that the belief is over: each is one minus a confidence."""
    scale: Positive = 1.0
    """The deviation of a temporal difference of values that are right, in their units."""

    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch, noise: RunNoise
    ) -> tuple[Tensor, dict[str, Tensor]]:
        return self.cloning(actor, batch, noise)

    def begun(self, count: int) -> Tensor:
        """[B, D] logarithms of the belief, up to a constant."""
        return torch.zeros(count, len(self.deltas))

    def after(self, critic: CriticNets | None, known_BM: Tensor, step: Batch) -> Tensor:
        now_BDA, then_BDA = self.every(critic, step.state_BS), self.every(critic, step.next_state_BS)
        taken_BD = (now_BDA * step.action_BA[:, None]).sum(-1)
        target_BD = step.reward_B[:, None] + step.discount_B[:, None] * then_BDA.amax(-1)
        return known_BM - (taken_BD - target_BD).square() / (2 * self.scale**2)

    def every(self, critic: CriticNets | None, state_BS: Tensor) -> Tensor:
        """[B, D, A] values of all actions by each of `deltas`."""
        assert isinstance(critic, ConfidentNets) and isinstance(critic.q, DiscreteQ)
        delta_N = torch.tensor(self.deltas).repeat(len(state_BS))
        raw_ENA = critic.values(critic.q, state_BS.repeat_interleave(len(self.deltas), 0), delta_N)
        value_NA = reduce_ensemble(critic.config.head.value(raw_ENA), critic.config.reduction)
        return value_NA.unflatten(0, (len(state_BS), -1))

    def act(self, actor: Actor, critic: CriticNets | None, state_BS: Tensor, noise: RunNoise, explore: bool) -> Tensor:
        state_BS, known_BD = state_BS.split([state_BS.shape[-1] - len(self.deltas), len(self.deltas)], -1)
        number_B1 = noise.choice(known_BD.softmax(-1), 1)
        value_BDA = self.every(critic, state_BS)
        best_B = value_BDA.take_along_dim(number_B1[..., None], 1)[:, 0].argmax(-1)
        return torch.eye(value_BDA.shape[-1])[best_B]
