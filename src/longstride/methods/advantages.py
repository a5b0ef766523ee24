"""Advantages: how much better an action was than what could be expected, as functions of numbers and as members of
`Credit`.

What always holds: a failed episode is in no group and in no mean; an advantage belongs to sampled tokens alone; a
reward that is its baseline (within `EQUAL`) gives exactly 0, so that nothing is trained on rounding. Episodes are
compared within `Trajectory.group`. No torch.

Bias, as the tests measure it. Unbiased: no baseline, `leave_one_out`, a constant scale, a constant length. The gradient
times (n - 1) / n: `mean` over groups of n, `batch` over n episodes of one prompt. Another direction: dividing by a
deviation (the prompts are weighed anew; for binary rewards of one prompt the direction stays), by the length of the
episode; filtering groups.

GAE at lam = 1 is unbiased with whatever values (for episodes that terminated; a critic's are made before it learns of
these episodes). Another direction: whitening; lam < 1 with values that are not the policy's own; a discount below 1
(the factor discount^t in front of turn t is left out, as everywhere).
"""

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from longstride.core.numbers import Positive, Share
from longstride.core.trajectory import Trajectory
from longstride.methods.base import Advantage, Credit, turn_rewards

EQUAL = 1e-6
"""Rewards, or a reward and its baseline, that are closer than this are equal."""

Baseline = Literal["mean", "leave_one_out", "batch", "none"]
Normalize = Literal["std", "batch_std", "advantage_std", "none"] | Positive


def group_advantages(
    rewards_N: Sequence[float], groups_N: Sequence[int], baseline: Baseline = "mean", normalize: Normalize = "std"
) -> np.ndarray:
    """[N] advantages `(r - baseline) / normalize`.

    Args:
        rewards_N: one a member.
        groups_N: the group of each member, any numbers in any order.
        baseline: what is taken off: the mean of the group (GRPO, arXiv 2402.03300, section 4.1.2), that of the group's
            other members (RLOO, arXiv 2402.14740; a member without others gets 0), the mean of the batch, or nothing.
        normalize: what is divided by: the group's deviation (GRPO), that of all rewards of the batch (arXiv
            2508.08221), that of all `r - baseline` of the batch (ScaleRL, arXiv 2510.13786, section 4), smaller by
            what groups differ in, a constant, or nothing (Dr.GRPO, arXiv 2503.20783). A deviation has the divisor n, as
            in GRPO's formula; implementations with n - 1 give sqrt((n - 1) / n) times this. One below `EQUAL` divides
            nothing.
    """
    r = np.asarray(rewards_N, dtype=float)
    if not len(r):
        return r
    size_N, mean_N, std_N = _groups(r, groups_N)
    base_N = {"none": np.zeros_like(r), "batch": np.full_like(r, r.mean())}.get(baseline, mean_N)
    a = np.where(np.abs(r - base_N) < EQUAL, 0.0, r - base_N) if baseline != "none" else r
    if baseline == "leave_one_out":
        a = a * size_N / np.maximum(size_N - 1, 1)  # r - mean of the others
    if isinstance(normalize, str):
        deviation = {"std": std_N, "batch_std": r.std(), "advantage_std": a.std(), "none": 1.0}[normalize]
        return a / np.where(deviation < EQUAL, 1.0, deviation)
    return a / normalize


def _groups(r: np.ndarray, groups_N: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Size, mean and deviation of each member's group."""
    _, group_N, size_G = np.unique(np.asarray(groups_N, dtype=int), return_inverse=True, return_counts=True)
    mean_N = (np.bincount(group_N, r) / size_G)[group_N]
    std_N = np.sqrt(np.bincount(group_N, (r - mean_N) ** 2) / size_G)[group_N]
    return size_G[group_N], mean_N, std_N


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


class GroupRelative(Credit):
    """GRPO and its kin: every sampled token has the advantage of its episode among the episodes of its group.

    | method | baseline | normalize |
    |---|---|---|
    | GRPO (arXiv 2402.03300) | `mean` | `std` |
    | Dr.GRPO (arXiv 2503.20783) | `mean` | `none` |
    | RLOO (arXiv 2402.14740), LOOP (arXiv 2502.01600) | `leave_one_out` | `none` |
    | Lite PPO (arXiv 2508.08221) | `mean` | `batch_std` |
    | ScaleRL (arXiv 2510.13786) | `mean` | `advantage_std` |
    | REINFORCE (Williams 1992) | `none` or `batch` | `none` |
    """

    baseline: Baseline = "mean"
    """What is taken off the reward; see `group_advantages`."""
    normalize: Normalize = "std"
    """What rewards are divided by; see `group_advantages`."""
    length_divisor: Literal["turns"] | Positive = 1.0
    """Divisor of every turn's advantage: a constant k, or the number of turns of its own episode. The latter
    punishes a long failure less than a short one and so teaches to fail slowly (AsyncWebRL, arXiv 2606.05597, where
    k = 10 took its place)."""

    def advantages(self, played: Sequence[Trajectory]) -> list[list[float]]:
        rewards_N, groups_N = [t.reward for t in played], [t.group for t in played]
        advantages_N = group_advantages(rewards_N, groups_N, self.baseline, self.normalize)
        return [[a / self.divisor(t)] * t.length for t, a in zip(played, advantages_N.tolist(), strict=True)]

    def divisor(self, trajectory: Trajectory) -> float:
        """What the advantages of an episode are divided by."""
        return max(trajectory.length, 1) if self.length_divisor == "turns" else self.length_divisor


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
    which learns from `targets`, or has one of each token (`learner.critics.TokenValue`)."""
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
            value_S = self._by_step(t, value_T, size)
            after = value_S[-1] if t.stop.truncated and value_S else 0.0
            a_S = gae(reward_S.tolist(), value_S, after, self.discount, self.lam)
            yield value_T, np.split(a_S, np.cumsum(size)[:-1]) if len(size) else []

    def _by_step(self, t: Trajectory, value_T: np.ndarray, size: np.ndarray) -> list[float]:
        """Value before each step: a critic's of each token where there is one, else that of the step's turn."""
        of_tokens = self.over == "tokens" and self.values == "critic"
        by_turn = zip(t.turns, value_T.tolist(), size.tolist(), strict=True)
        return [v for turn, value, n in by_turn for v in ((turn.token_values if of_tokens else ()) or [value] * n)]

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
