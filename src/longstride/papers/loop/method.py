"""Credit without small advantages (`DeadZone`), and PPO in the ratio that LOOP is held against (`TrajectoryPPO`)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from longstride.core.numbers import Weight
from longstride.core.trajectory import Trajectory
from longstride.methods import PPO, GroupRelative
from longstride.methods.tokens import LARGEST_LOG, Tokens, sequence_sums

if TYPE_CHECKING:
    from torch import Tensor


class DeadZone(GroupRelative):
    """Group-relative advantages, of which small ones are none."""

    below: Weight = 0.01
    """The smallest advantage that is trained on."""

    def advantages(self, played: Sequence[Trajectory]) -> list[list[float]]:
        return [[a if abs(a) >= self.below else 0.0 for a in turns] for turns in super().advantages(played)]


class TrajectoryPPO(PPO):
    """`PPO` in the ratio of a whole sequence, the product of its tokens'; its term is shared equally by the tokens, so
    that at ratio 1 the gradient is that of `PPO`. All tokens of a sequence have one advantage."""

    @property
    def of_sequences(self) -> bool:
        return True

    def _terms(self, logp_P: "Tensor", log_ratio_P: "Tensor", tokens: Tokens) -> "tuple[Tensor, Tensor]":
        number_P = tokens.sequence_P
        whole_P = sequence_sums(log_ratio_P, number_P).clamp(-LARGEST_LOG, LARGEST_LOG)
        loss_P, clipped_P = super()._terms(logp_P, whole_P, tokens)
        return loss_P / sequence_sums(loss_P.new_ones(len(loss_P)), number_P), clipped_P
