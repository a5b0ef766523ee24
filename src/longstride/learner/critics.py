"""Critics: what is learnt about the value of turns, beside the policy.

A critic of a recipe is a `CriticConfig`, and the critic at work a `Critic`: it fills in estimates before credit is
assigned, and learns before or after the policy's update. Credit reads estimates by name (`Turn.estimates`) and says
which it needs (`Credit.estimates`). Any credit may ask for any critic. No torch; what learns
stands in `turn_critic` and `token_critic`.
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
from longstride.core.numbers import Count, CountOrZero, Positive
from longstride.core.trajectory import Trajectory
from longstride.methods.base import Credit, Sample

if TYPE_CHECKING:
    from torch import Tensor


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
