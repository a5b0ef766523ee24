"""The critic of turns as data: what a recipe says of it. No torch; `turn_critic` is what learns."""

from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from longstride.core.component import Component
from longstride.learner.config import Count

if TYPE_CHECKING:
    from longstride.learner.turn_critic import Reads, TurnCritic


class Critic(Component):
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
    lr: Annotated[float, Field(gt=0)] = 3e-4
    """Learning rate of Adam."""
    epochs: Count = 4
    """Passes over the turns of an iteration."""
    batch_turns: Count = 128
    """Turns of a step, at most."""
    warmup: Annotated[int, Field(ge=0)] = 2
    """Iterations at the start of a run in which the critic alone learns (two in VL-DAC's released code)."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low >= self.high:
            raise ValueError(f"high must be above low ({self.low}), got {self.high}")
        if self.head == "bce" and not 0 <= self.low < self.high <= 1:
            raise ValueError(f"head bce knows returns in [0, 1], not in [{self.low}, {self.high}]")
        return self

    def make(self, policy: "Reads", seed: int) -> "TurnCritic":
        """The critic before it has learnt anything; see `TurnCritic`."""
        from longstride.learner.turn_critic import TurnCritic

        return TurnCritic(self, policy, seed)
