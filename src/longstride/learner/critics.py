"""Critics: what is learnt about the value of turns, beside the policy.

A critic of a recipe is a `CriticConfig`, and the critic at work a `Critic`: it fills in estimates before credit is
assigned, and learns before or after the policy's update. Credit reads estimates by name (`Turn.estimates`) and says
which it needs (`Credit.estimates`). Any credit may ask for any critic. No torch; what learns
stands in `turn_critic`, `token_critic` and `stored_critic`.
"""

import random
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self

from pydantic import model_validator

from longstride.core.component import Component
from longstride.core.experience import Experience
from longstride.core.implementation import implementation
from longstride.core.numbers import Count, CountOrZero, Positive, Share
from longstride.core.trajectory import Trajectory, Turn
from longstride.methods.base import Credit, Sample, turn_rewards

if TYPE_CHECKING:
    from torch import Tensor

    from longstride.learner.networks import TurnEncoder


class HiddenStates(Protocol):
    """Whose hidden states are read: a `learner.Learner`, or the ranks of a cluster."""

    device: Any
    """Where they are computed, as torch names it."""

    def features(self, samples: Sequence[Sample]) -> "Tensor":
        """See `Learner.features`."""
        ...


@dataclass(frozen=True, slots=True)
class CriticBatch:
    """What a critic is given in an iteration."""

    trajectories: Sequence[Trajectory]
    """What the policy is trained on now."""
    credit: Credit
    """The credit of the iteration."""
    experience: Experience
    """All that was collected so far, this iteration included: what an off-policy critic learns from."""
    rng: random.Random
    """For whatever the critic draws in this call."""


class Critic(Protocol):
    """A critic at work. All ranks make the same calls.

    What always holds: it reads the policy and never moves it; what it learns depends on its seed, on what it is given
    and on the order of calls alone.
    """

    def estimate(self, trajectories: Sequence[Trajectory]) -> None:
        """Fills in the estimates of every turn, and learns nothing."""
        ...

    def before_update(self, batch: CriticBatch) -> dict[str, float]:
        """Fills in the estimates of every turn, after learning if it learns off-policy; returns metrics."""
        ...

    def after_update(self, batch: CriticBatch) -> dict[str, float]:
        """Learns from what the policy, after its update, makes of the batch; returns metrics."""
        ...

    def state(self) -> "dict[str, Tensor]":
        """All that an exact resume needs, for safetensors; any names."""
        ...

    def load_state(self, tensors: "Mapping[str, Tensor]") -> None:
        """Takes back what `state` gave.

        Raises:
            RunError: it belongs to another critic.
        """
        ...


class CriticConfig(Component):
    """Family: a critic and its numbers."""

    estimates: ClassVar[frozenset[str]] = frozenset({"value"})
    """Names of what it fills in."""
    warmup: CountOrZero = 0
    """Iterations at the start of a run in which the critic alone learns."""

    @property
    def reads_by(self) -> str | None:
        """The model, other than the policy, that reads what the policy read and said, and so has to have its tokens;
        None where there is none."""
        return None

    @abstractmethod
    def make(self, policy: HiddenStates, seed: int) -> Critic:
        """The critic before it has learnt anything."""


class TurnValue(CriticConfig):
    """A learned value of the state before each turn: what `GAE(values="critic")` reads.

    A small network on the policy's last hidden state at the last token of a turn's prompt; the policy gets no gradient
    of it. So values are of turns, while the loss clips tokens (VL-DAC, arXiv 2508.04280).
    """

    head: Literal["scalar", "bce", "hl_gauss"] = "scalar"
    """What the network's output means (`models.heads`): the value, its logit, or a histogram."""
    low: float = 0.0
    """Least return that is possible; targets are cut to the range, and a histogram covers it."""
    high: float = 1.0
    """Largest return that is possible."""
    width: Count = 256
    """Units of a hidden layer."""
    depth: Count = 2
    """Hidden layers."""
    lr: Positive = 3e-4
    """Learning rate of Adam."""
    epochs: Count = 4
    """Passes over the turns of an iteration."""
    batch_turns: Count = 128
    """Turns of a step, at most."""
    warmup: CountOrZero = 2
    """Iterations at the start of a run in which the critic alone learns (two in VL-DAC's released code)."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low >= self.high:
            raise ValueError(f"high must be above low ({self.low}), got {self.high}")
        if self.head == "bce" and not 0 <= self.low < self.high <= 1:
            raise ValueError(f"head bce knows returns in [0, 1], not in [{self.low}, {self.high}]")
        return self

    def make(self, policy: HiddenStates, seed: int) -> Critic:
        """See `turn_critic.TurnCritic`."""
        return implementation(TurnValue)(self, policy, seed)


class TokenValue(TurnValue):
    """A learned value of the state before each sampled token, for tasks of a single turn: what `GAE(over="tokens",
    values="critic")` reads in place of one value a turn.

    It learns from answers that have ended alone, whole ones, whenever their tokens were sampled: before each token what
    the answer earned in the end (T-PPO, arXiv 2506.15050). An answer in pieces has its last piece's reward.
    """

    batch_turns: Count = 2048
    """Tokens of a step, at most."""

    def make(self, policy: HiddenStates, seed: int) -> Critic:
        """See `token_critic.TokenCritic`."""
        return implementation(TokenValue)(self, policy, seed)


@dataclass(frozen=True, slots=True)
class Moves:
    """The N turns of whole episodes, one behind the other, as temporal differences need them."""

    turns: list[Turn]
    rewards: list[float]
    """What each earned; the last one of an episode also what its evaluator gave."""
    discounts: list[float]
    """Weight of the state after each: 0 after the last turn of an episode that ended."""
    following: list[int]
    """Where that state's turn stands. An episode that a budget truncated goes on from its last state (see `GAE`)."""

    @staticmethod
    def of(trajectories: Sequence[Trajectory], discount: float) -> "Moves":
        """Those of these episodes."""
        moves = Moves([turn for t in trajectories for turn in t.turns], [], [], [])
        for t in (t for t in trajectories if t.turns):
            first = len(moves.rewards)
            moves.rewards.extend(turn_rewards(t))
            moves.discounts.extend([discount] * (t.length - 1) + [discount * t.stop.truncated])
            moves.following.extend([*range(first + 1, first + t.length), first + t.length - 1])
        return moves

    def returns(self) -> list[float]:
        """What was earned from each turn on, discounted; after a truncation nothing."""
        found = list(self.rewards)
        for n in reversed(range(len(found))):
            if self.following[n] > n:
                found[n] += self.discounts[n] * found[n + 1]
        return found


@dataclass(frozen=True, slots=True)
class StoredEstimates:
    """What the networks of `StoredValues` say of N turns, Q by two and V by `StoredValues.value_networks`."""

    q_2_N: "Tensor"
    v_M_N: "Tensor"
    target_q_2_N: "Tensor"
    """Of the networks that follow them slowly, as the next; without gradient."""
    target_v_M_N: "Tensor"


class StoredValues(CriticConfig):
    """Q of a turn's action and V of the state before it, learnt from stored episodes by what was done in them, whoever
    did it: no action that they lack is ever valued. Members say what Q and V are moved to.

    Small networks read hidden states of a language model, behind the prompt and behind the action. While that is
    frozen, what it says of an episode is computed once an iteration, and a step costs what the small networks cost.
    """

    estimates: ClassVar[frozenset[str]] = frozenset({"action_value", "value"})
    value_networks: ClassVar[int] = 2
    """How many V there are."""
    encoder: str = "base"
    """The model that reads prompts and actions: as `Recipe.model`, and of its tokenizer."""
    frozen: bool = True
    """Whether it stays as it is. If not, it learns with the values."""
    discount: Share = 0.95
    """Weight of what is one turn later."""
    tau: Share = 0.1
    """Part of the way that targets move to the networks after each step."""
    width: Count = 256
    """Units of a hidden layer."""
    depth: Count = 2
    """Hidden layers."""
    lr: Positive = 1e-3
    """Learning rate of Adam."""
    steps: Count = 1000
    """Optimiser steps of an iteration."""
    batch_episodes: Count = 32
    """Episodes of a step, drawn from all that are stored."""

    @property
    def reads_by(self) -> str:
        return self.encoder

    def make(self, policy: HiddenStates, seed: int) -> Critic:
        """See `stored_critic.StoredCritic`; it reads nothing of the policy, and computes where that does."""
        return implementation(StoredValues)(self, seed, str(policy.device))

    @abstractmethod
    def losses(self, said: StoredEstimates, moves: Moves) -> "dict[str, Tensor]":
        """By the names of metrics, terms of which the sum is minimised."""

    def prepare(self, encoder: "TurnEncoder", stored: Sequence[Trajectory], rng: random.Random) -> dict[str, float]:
        """Trains the encoder, if it is to learn anything before values are learnt on it; returns metrics.

        Args:
            encoder: whose parameters take gradients now.
            stored: the episodes of the first iteration, of at least a turn each.
            rng: of what is drawn.
        """
        return {}

    def of_two(self, value_M_N: "Tensor") -> "Tensor":
        """The estimate, of several networks': the least one."""
        return value_M_N.amin(0)
