"""What the benchmark's value methods learn, of turns: an expectile of Q (`ExpectileQ`), and returns (`ReturnQ`)."""

from typing import TYPE_CHECKING, ClassVar

from longstride.core.numbers import Share
from longstride.learner.critics import Moves, StoredEstimates, StoredValues

if TYPE_CHECKING:
    from torch import Tensor


class ExpectileQ(StoredValues):
    """Implicit Q-learning (ILQL, arXiv 2206.11871), of turns in the place of tokens. With u = min Q_target(s, a) - V(s),

        |expectile - 1(u < 0)| u^2 / 2,   and for both Q   (Q(s, a) - r - discount V(s'))^2 / 2

    Towards 1, V is the value of the best action that was taken in a state."""

    value_networks: ClassVar[int] = 1
    expectile: Share = 0.8
    """tau of the papers; 0.5 is the mean."""

    def losses(self, said: StoredEstimates, moves: Moves) -> "dict[str, Tensor]":
        rewards_N, discounts_N = (said.q_2_N.new_tensor(of) for of in (moves.rewards, moves.discounts))
        q_goal_N = rewards_N + discounts_N * said.v_M_N[0, moves.following].detach()
        u_N = said.target_q_2_N.amin(0) - said.v_M_N[0]
        weight_N = (self.expectile - (u_N < 0).float()).abs()
        return {
            "action_value_loss": (said.q_2_N - q_goal_N).square().mean(1).sum() / 2,
            "value_loss": (weight_N * u_N.square()).mean() / 2,
        }


class ReturnQ(StoredValues):
    """Both Q and V are moved to what was earned from the turn on, discounted: values of the policy that was stored."""

    value_networks: ClassVar[int] = 1

    def losses(self, said: StoredEstimates, moves: Moves) -> "dict[str, Tensor]":
        returns_N = said.q_2_N.new_tensor(moves.returns())
        return {
            "action_value_loss": (said.q_2_N - returns_N).square().mean(1).sum() / 2,
            "value_loss": (said.v_M_N - returns_N).square().mean(1).sum() / 2,
        }
