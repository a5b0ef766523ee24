"""Credit of episodes in their group, and of turns among those from the same state (`StepRelative`)."""

from collections.abc import Sequence

from longstride.core.content import Content
from longstride.core.numbers import Positive, Share
from longstride.core.trajectory import Trajectory
from longstride.methods import GroupRelative, gae, group_advantages, turn_rewards, turn_states


class StepRelative(GroupRelative):
    """Advantages of episodes among their group (equation 3) plus, weighted, those of turns among all turns of the group
    that were taken in the same state (`turn_states`, equation 6), by their discounted returns to go (equations 5 and 7).
    Both have the same baseline and the same divisor.

    A turn that no other turn of the group can be compared with adds 0. So a state weighs as often as others came
    there, and the turn's part has not the gradient of the return, even with `leave_one_out`.
    """

    step_weight: Positive = 1.0
    """Weight of the turn's part: omega in equation 8."""
    discount: Share = 0.95
    """Weight of a reward one turn later."""

    def advantages(self, played: Sequence[Trajectory]) -> list[list[float]]:
        numbers: dict[tuple[int, tuple[str, Content]], int] = {}
        states = [numbers.setdefault((t.group, state), len(numbers)) for t in played for state in turn_states(t)]
        returns = [g for t in played for g in gae(turn_rewards(t), [0.0] * t.length, discount=self.discount)]
        of_turn = iter((self.step_weight * group_advantages(returns, states, self.baseline, self.normalize)).tolist())
        of_episode = super().advantages(played)
        return [
            [a + next(of_turn) / self.divisor(t) for a in turns] for t, turns in zip(played, of_episode, strict=True)
        ]
