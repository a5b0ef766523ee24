"""Policy extraction: how the values of a critic become what the agent does.

What always holds: an extraction trains the policy by its loss and by nothing else, and only reads the critic; an action
chosen with `explore` false is the one that is evaluated.
"""

import copy
import math
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from longstride.control.batches import Batch, NStep
from longstride.control.critics import ControlCritic, CriticNets, Pace
from longstride.control.data import TransitionStore
from longstride.control.envs.base import Spec
from longstride.control.noise import RunNoise
from longstride.control.policies import (
    ControlPolicy,
    DeterministicNets,
    DeterministicPolicy,
    DiscreteNets,
    GaussianNets,
    GaussianPolicy,
    PolicyNets,
    SoftNets,
)
from longstride.core.component import Component
from longstride.core.numbers import Count, Positive, Share, Weight
from longstride.models.mlp import polyak


class Actor(nn.Module):
    """A policy, and what its extraction adjusts beside it."""

    def __init__(
        self,
        policy: PolicyNets,
        log_temperature: float | None = None,
        target: PolicyNets | None = None,
        soft: bool = False,
    ) -> None:
        super().__init__()
        self.policy, self.soft = policy, soft
        self.target = None if target is None else target.requires_grad_(False)
        self.log_temperature = None if log_temperature is None else nn.Parameter(torch.tensor(log_temperature))

    @property
    def valued(self) -> PolicyNets:
        """The policy whose actions critics value: the target network where there is one; with its entropy if `soft`."""
        policy = self.target or self.policy
        if not self.soft:
            return policy
        assert isinstance(policy, GaussianNets) and self.log_temperature is not None
        return SoftNets(policy, self.log_temperature.detach().exp())


class Extraction(Component):
    """Family: the loss of a policy, and how the policy is used."""

    needs_critic: ClassVar[bool] = True
    """Whether a critic is read."""
    trains: ClassVar[tuple[type[ControlPolicy], ...]] = (ControlPolicy,)
    """Which policies it trains."""
    needs_discrete: ClassVar[bool] = False
    """Whether all actions are compared, so that the policy must have discrete ones."""
    needs_real: ClassVar[bool] = False
    """Whether the policy must have real-valued actions."""
    boxes: ClassVar[bool] = False
    """Whether actions are kept between -1 and 1, whatever the policy says."""
    needs_slopes: ClassVar[bool] = False
    """Whether actions follow the slope of the scores, so that the critic must have one."""
    needs_scores: ClassVar[bool] = True
    """Whether the critic has to score any action."""
    reads: ClassVar[tuple[type[ControlCritic], ...]] = (ControlCritic,)
    """Which critics it reads."""
    draws_rows: ClassVar[bool] = False
    """Whether what it learns from is more than one batch (`rows`)."""
    on_policy: ClassVar[bool] = False
    """Whether it learns from what the policy has just done, and from nothing else."""
    adapts: ClassVar[bool] = False
    """Whether it learns from the episode that it acts in (`begun`, `after`): `act` is then given the state followed by
    what it knows."""
    side_by_side: ClassVar[bool] = False
    """Whether it knows an axis of runs before B (see `Batch`). A class says so for itself: what inherits from it may
    compute otherwise."""

    def make(self, policy: PolicyNets) -> Actor:
        """The policy with what is adjusted beside it."""
        return Actor(policy)

    def rows(
        self, data: NStep, store: TransitionStore, spec: Spec, row_B: np.ndarray, rng: np.random.Generator
    ) -> tuple[Any, ...]:
        """What `loss` and `cloning` get in place of a batch, where it `draws_rows`: a named tuple of batches, tensors.

        Args:
            data: what a transition of the policy is.
            store: the data.
            spec: which columns make a goal.
            row_B: the rows that are drawn.
            rng: draws the goals.
        """
        raise NotImplementedError

    def before_updates(self, actor: Actor) -> None:
        """Keeps what has to stay as it is during the updates of an iteration; here nothing has to."""

    @abstractmethod
    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch, noise: RunNoise
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch, a scalar, and metrics."""

    def cloning(self, actor: Actor, batch: Batch, noise: RunNoise) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch where the policy only imitates (`TrainingPhase.cloning`), and metrics."""
        loss = actor.policy.imitation_loss(batch.state_BS, batch.action_BA, noise).mean(-1)
        return loss, {"imitation": loss}

    def after_step(self, actor: Actor) -> None:
        """Moves what follows the policy, such as a target network; here nothing does."""

    def begun(self, count: int) -> Tensor:
        """[B, M] what it knows where an episode begins, of B = `count` episodes, where it `adapts`."""
        raise NotImplementedError

    def after(self, critic: CriticNets | None, known_BM: Tensor, step: Batch) -> Tensor:
        """[B, M] what it knows after a step of the episode, where it `adapts`.

        Args:
            critic: as it is now.
            known_BM: what it knew before.
            step: what was seen, done and earned, as in a batch of training, but without a return.
        """
        raise NotImplementedError

    def act(self, actor: Actor, critic: CriticNets | None, state_BS: Tensor, noise: RunNoise, explore: bool) -> Tensor:
        """[B, A] the actions that are taken."""
        if explore:
            return actor.policy.sample(state_BS, noise).squeeze(-2)
        return actor.policy.greedy(state_BS, noise)


class BehaviourCloning(Extraction):
    """Behaviour cloning: does what the data does."""

    needs_critic = False
    needs_scores = False
    side_by_side = True

    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch, noise: RunNoise
    ) -> tuple[Tensor, dict[str, Tensor]]:
        return self.cloning(actor, batch, noise)


class BestOfN(Extraction):
    """The best of N actions of a behaviour-cloned policy: rejection sampling (SHARSA, arXiv 2506.04168)."""

    side_by_side = True

    samples: Count = 32
    """N."""

    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch, noise: RunNoise
    ) -> tuple[Tensor, dict[str, Tensor]]:
        return self.cloning(actor, batch, noise)

    def act(self, actor: Actor, critic: CriticNets | None, state_BS: Tensor, noise: RunNoise, explore: bool) -> Tensor:
        assert critic is not None
        action_BKA = actor.policy.sample(state_BS, noise, self.samples)
        return chosen(action_BKA, critic.score(state_BS, action_BKA).argmax(-1))


def chosen(action_BKA: Tensor, number_B: Tensor) -> Tensor:
    """[B, A] that of K actions which has the number."""
    return action_BKA.take_along_dim(number_B[..., None, None], -2).squeeze(-2)


class Greedy(Extraction):
    """The best of all discrete actions; in training one of a behaviour-cloned policy's with probability `epsilon`. With
    `UniformPolicy`, which clones nothing, that is DQN (arXiv 1312.5602)."""

    needs_discrete = True
    side_by_side = True

    epsilon: Share = 0.1
    """Share of the actions of training that are the policy's."""

    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch, noise: RunNoise
    ) -> tuple[Tensor, dict[str, Tensor]]:
        return self.cloning(actor, batch, noise)

    def best(self, actor: Actor, critic: CriticNets | None, state_BS: Tensor) -> Tensor:
        """[B, A] the best actions."""
        assert critic is not None and isinstance(actor.policy, DiscreteNets)
        every_BAA = actor.policy.every(state_BS)
        return chosen(every_BAA, critic.score(state_BS, every_BAA).argmax(-1))

    def act(self, actor: Actor, critic: CriticNets | None, state_BS: Tensor, noise: RunNoise, explore: bool) -> Tensor:
        best_BA = self.best(actor, critic, state_BS)
        if not explore:
            return best_BA
        other_BA = actor.policy.sample(state_BS, noise).squeeze(-2)
        return torch.where(noise.uniform(best_BA.shape[-2], 1) < self.epsilon, other_BA, best_BA)


class SAC(Extraction):
    """Follows the gradient of the critic, with an entropy that a temperature keeps at its target (SAC, arXiv
    1812.05905): temperature * log pi - Q. With `alpha` it imitates the data too: + mean |Q| * alpha * |a - a of the
    data|^2 (SAC+BC of SHARSA's code)."""

    trains = (GaussianPolicy,)
    needs_slopes = True
    side_by_side = True

    alpha: Weight = 0.0
    """Weight of the squared distance to the action of the data, in units of mean |Q|."""
    target_entropy: float = -1.0
    """Target of the entropy, per coordinate of an action."""
    temperature: Positive = 1.0
    """Where the temperature starts; its unit is that of the reward."""
    soft: bool = False
    """Whether critics value the entropy of later actions too, as in the paper; if not, it counts in the policy's loss
    alone, as in JaxCQL, Cal-QL and WSRL."""
    tau: Pace | None = None
    """Share of the way to the policy that a target network moves after each step, whose actions critics value (DSAC-T,
    arXiv 2310.05858); None: they value those of the policy."""

    def make(self, policy: PolicyNets) -> Actor:
        target = None if self.tau is None else copy.deepcopy(policy)
        return Actor(policy, math.log(self.temperature), target, self.soft)

    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch, noise: RunNoise
    ) -> tuple[Tensor, dict[str, Tensor]]:
        assert critic is not None and isinstance(actor.policy, GaussianNets) and actor.log_temperature is not None
        action_BKA, log_density_BK = actor.policy.sample_with_density(batch.state_BS, noise)
        action_BA, log_density_B = action_BKA.squeeze(-2), log_density_BK.squeeze(-1)
        score_B = critic.score(batch.state_BS, action_BA)
        target = self.target_entropy * action_BA.shape[-1]
        loss, metrics = soft_loss(score_B, log_density_B, actor.log_temperature, target)
        if self.alpha:
            distance_B = (action_BA - batch.action_BA).square().sum(-1)
            loss = loss + self.alpha * score_B.detach().abs().mean(-1) * distance_B.mean(-1)
        return loss, metrics

    def after_step(self, actor: Actor) -> None:
        if actor.target is not None and self.tau is not None:
            polyak(actor.target, actor.policy, self.tau)


def soft_loss(
    score_B: Tensor, log_density_B: Tensor, log_temperature: Tensor, target_entropy: float
) -> tuple[Tensor, dict[str, Tensor]]:
    """tau log pi - Q of [B] actions that a policy has drawn, with the loss of the temperature tau that keeps the
    entropy at its target; and metrics."""
    temperature, score, log_density = log_temperature.detach().exp(), score_B.mean(-1), log_density_B.mean(-1)
    adjust = -log_temperature * (log_density.detach() + target_entropy)
    metrics = {"score": score, "entropy": -log_density, "temperature": temperature}
    return temperature * log_density - score + adjust, metrics


class TD3(Extraction):
    """Follows the gradient of the critic: -Q(s, pi(s)). Critics value the actions of a target network with noise around
    them (TD3, arXiv 1802.09477). Its delayed policy is `ControlAgent.slices`. With `q_weight` it imitates the data too
    (TD3+BC, arXiv 2106.06860): |pi(s) - a of the data|^2 - q_weight * Q / mean |Q|."""

    trains = (DeterministicPolicy,)
    needs_slopes = True
    side_by_side = True

    smoothing: Weight = 0.2
    """Standard deviation of the noise around the actions of the target network."""
    smoothing_clip: Weight = 0.5
    """The largest such noise."""
    tau: Pace = 0.005
    """Share of the way to the policy that the target network moves after each step."""
    q_weight: Positive | None = None
    """Weight of Q, in units of mean |Q|, beside the squared distance to the action of the data, a mean over its
    coordinates; alpha of TD3+BC, 2.5 there. None: no imitation."""

    def make(self, policy: PolicyNets) -> Actor:
        assert isinstance(policy, DeterministicNets)
        target = copy.deepcopy(policy)
        target.std, target.clip = self.smoothing, self.smoothing_clip
        return Actor(policy, target=target)

    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch, noise: RunNoise
    ) -> tuple[Tensor, dict[str, Tensor]]:
        assert critic is not None
        action_BA = actor.policy.greedy(batch.state_BS, noise)
        score_B = critic.score(batch.state_BS, action_BA)
        score = score_B.mean(-1)
        if self.q_weight is None:
            return -score, {"score": score}
        distance = (action_BA - batch.action_BA).square().mean((-2, -1))
        weight = self.q_weight / score_B.detach().abs().mean(-1)
        return distance - weight * score, {"score": score, "imitation": distance}

    def after_step(self, actor: Actor) -> None:
        assert actor.target is not None
        polyak(actor.target, actor.policy, self.tau)


class AWR(Extraction):
    """Advantage-weighted regression (arXiv 1910.00177): imitates the actions of the data, weighted by
    exp(advantage / temperature). What the advantage is, the critic says (`CriticNets.advantage`)."""

    needs_scores = False
    side_by_side = True

    temperature: Positive = 1.0
    """What advantages are divided by, in units of the critic's score: the value, or with a `BCE` head its logit."""
    largest: Positive | None = None
    """What weights are cut to (IQL: 100); None: they are divided by their mean over the batch (AWAC)."""

    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch, noise: RunNoise
    ) -> tuple[Tensor, dict[str, Tensor]]:
        assert critic is not None
        advantage_B = critic.advantage(batch, actor.policy, noise)
        scaled_B = advantage_B / self.temperature
        if self.largest is None:
            weight_B = scaled_B.softmax(-1) * scaled_B.shape[-1]
        else:
            weight_B = scaled_B.exp().clamp(max=self.largest)
        imitation_B = actor.policy.imitation_loss(batch.state_BS, batch.action_BA, noise)
        loss = (weight_B * imitation_B).mean(-1)
        # the share of a batch that would have as much to say if all of it weighed alike
        used = weight_B.mean(-1).square() / weight_B.square().mean(-1)
        return loss, {"imitation": imitation_B.mean(-1), "advantage": advantage_B.mean(-1), "used": used}
