"""Credit by rewards to come: advantages of turns and of tokens, not of whole episodes alone.

What always holds: as in `methods.advantages`. Bias, as the tests measure it: GAE at lam = 1 is unbiased with whatever
values (for episodes that terminated; a critic's are made before it learns of these episodes). Another direction:
whitening; lam < 1 with values that are not the policy's own; a discount below 1 (the factor discount^t in front of turn
t is left out, as everywhere). No torch.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from longstride.core.content import Content
from longstride.core.numbers import Positive, Share
from longstride.core.trajectory import Trajectory
from longstride.methods.advantages import GroupRelative, group_advantages
from longstride.methods.base import Advantage, Credit, turn_rewards, turn_states


def gae(
    rewards_T: Sequence[float], values_T: Sequence[float], after: float = 0.0, discount: float = 1.0, lam: float = 1.0
) -> np.ndarray:
    """[T] generalised advantage estimates (Schulman et al., arXiv 1506.02438, equation 16) over tokens or over turns.

        delta_t = r_t + discount V_{t+1} - V_t,  A_t = delta_t + discount lam A_{t+1}

    Args:
        rewards_T: reward of each step.
        values_T: value of the state before each step; all 0 and lam = 1 give the return to go.
        after: value of the state after the last step: 0 where the episode *terminated*, an estimate where it was only
            *truncated*. To give 0 for both teaches that the end of the budget is the end of the world.
        discount: in [0, 1].
        lam: 1 trusts rewards alone, 0 trusts values.
    """
    advantages, later = np.zeros(len(rewards_T)), 0.0
    for t, (reward, value) in reversed(list(enumerate(zip(rewards_T, values_T, strict=True)))):
        later = reward + discount * after - value + discount * lam * later
        advantages[t], after = later, value
    return advantages


class StepRelative(GroupRelative):
    """GiGPO (arXiv 2505.10978, section 4): the advantage of the episode plus that of the turn among all turns of the
    group that were taken in the same state (`turn_states`), by their discounted return to go.

    A turn that no other turn of the group can be compared with adds 0. So a state weighs as often as others came
    there, and the turn's part has not the gradient of the return, even with `leave_one_out`.
    """

    step_weight: Positive = 1.0
    """Weight of the turn's part."""
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


class GAE(Credit):
    """PPO's credit: generalised advantage estimates over turns or over tokens.

    With `values = "none"` and lam = 1 it is the return to go; whitened, REINFORCE++ (arXiv 2501.03262). An episode
    that a budget truncated goes on from the value of its last state, since none was seen after it (T-PPO's rule,
    arXiv 2506.15050); one that terminated goes on from 0.
    """

    over: Literal["turns", "tokens"] = "turns"
    """What a step is: a turn, all of whose tokens share its advantage, or a token, the last of a turn taking its
    reward."""
    discount: Share = 1.0
    """Weight of what is one step later."""
    lam: Share = 1.0
    """Weight of rewards against values; see `gae`."""
    values: Literal["none", "group", "critic"] = "none"
    """Value of a state: 0, or the mean return to go from the same turn on of the group's other episodes that came so
    far (0 without any): a baseline that the episode's own actions do not touch; or a critic's estimate,
    which learns from `targets`."""
    whiten: bool = False
    """Whether advantages get mean 0 and deviation 1 over all sampled tokens of the batch."""

    def advantages(self, played: Sequence[Trajectory]) -> Sequence[Sequence[Advantage]]:
        def by_token(own: np.ndarray, tokens: int) -> list[float]:
            return own.tolist()[:tokens] if self.over == "tokens" else own.tolist() * tokens

        found = [
            [by_token(own, len(turn.sampled_ids)) for turn, own in zip(t.turns, advantages, strict=True)]
            for t, (_, advantages) in zip(played, self._estimates(played), strict=True)
        ]
        return _whitened(found) if self.whiten else found

    @property
    def estimates(self) -> frozenset[str]:
        return frozenset({"value"} if self.values == "critic" else ())

    def targets(self, trajectories: Sequence[Trajectory]) -> list[list[float]]:
        """Lambda returns: the value that was used and the advantage before whitening."""
        played = [t for t in trajectories if not t.stop.failed]
        found = {
            id(t): [float(value + own[0]) for value, own in zip(value_T, advantages, strict=True)]
            for t, (value_T, advantages) in zip(played, self._estimates(played), strict=True)
        }
        return [found.get(id(t), []) for t in trajectories]

    def _estimates(self, played: Sequence[Trajectory]) -> Iterator[tuple[np.ndarray, list[np.ndarray]]]:
        """Of each episode the value before each turn, and the advantages of each turn's steps."""
        sizes = [
            np.array([max(len(u.sampled_ids), 1) if self.over == "tokens" else 1 for u in t.turns], dtype=int)
            for t in played
        ]
        rewards = [
            np.concatenate([[0.0] * (n - 1) + [r] for n, r in zip(size, turn_rewards(t), strict=True)] or [[]])
            for size, t in zip(sizes, played, strict=True)
        ]
        values = self._values(played, sizes, rewards)
        for t, size, reward_S, value_T in zip(played, sizes, rewards, values, strict=True):
            after = value_T[-1] if t.stop.truncated and len(value_T) else 0.0
            a_S = gae(reward_S.tolist(), np.repeat(value_T, size).tolist(), after, self.discount, self.lam)
            yield value_T, np.split(a_S, np.cumsum(size)[:-1]) if len(size) else []

    def _values(
        self, played: Sequence[Trajectory], sizes: Sequence[np.ndarray], rewards: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """Value before each turn of each episode."""
        if self.values == "none":
            return [np.zeros(len(size)) for size in sizes]
        if self.values == "critic":
            return [np.array([turn.estimates["value"] for turn in t.turns]) for t in played]
        to_go = [
            gae(reward_S.tolist(), [0.0] * len(reward_S), discount=self.discount)[np.cumsum(size) - size]
            for size, reward_S in zip(sizes, rewards, strict=True)
        ]
        others = [
            [to_go[k] for k, u in enumerate(played) if u.group == t.group and k != n] for n, t in enumerate(played)
        ]
        return [
            np.array([np.mean(seen) if (seen := [g[k] for g in rest if len(g) > k]) else 0.0 for k in range(len(size))])
            for size, rest in zip(sizes, others, strict=True)
        ]


def _whitened(tokens: list[list[list[float]]]) -> list[list[list[float]]]:
    """The numbers of all sampled tokens, by episode and turn, with mean 0 and deviation 1."""
    every = [a for turns in tokens for turn in turns for a in turn]
    white = iter(group_advantages(every, [0] * len(every), "batch", "batch_std").tolist())
    return [[[next(white) for _ in turn] for turn in turns] for turns in tokens]
