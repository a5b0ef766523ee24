"""A reward that punishes unwanted patterns, and REINFORCE with the KL in the reward."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from longstride.core.budget import StopReason
from longstride.core.numbers import Count
from longstride.core.trajectory import Trajectory
from longstride.methods import KL, Reinforce, Sample, group_advantages
from longstride.methods.base import ADVANTAGES, REFERENCE
from longstride.methods.losses import KL_COEFFICIENT
from longstride.rewards import TaskReward, Verdict


class Penalised(TaskReward):
    """The task's reward, or -1 for an answer with an unwanted pattern, right or wrong; `terms` says of each pattern
    whether it was found (1) or not (0)."""

    ngram: Count = 12
    """Tokens of a sequence that may be repeated; an attempt at a Countdown has about as many."""
    times: Count = 3
    """Occurrences of a sequence from which on an answer is repetitive."""

    def __call__(self, trajectory: Trajectory, state: dict[str, Any], seed: int) -> Verdict:
        verdict = super().__call__(trajectory, state, seed)
        patterns = {
            "repeated": any(self.repeats(turn.sampled_ids) for turn in trajectory.turns),
            "overlong": trajectory.stop is StopReason.TOKENS,
            "gibberish": trajectory.stop is StopReason.PARSE_FAILURE,
        }
        reward = -1.0 - trajectory.earned if any(patterns.values()) else verdict.reward
        return Verdict(reward, verdict.success, {k: float(v) for k, v in patterns.items()}, verdict.evidence)

    def repeats(self, ids: Sequence[int]) -> bool:
        """Whether some sequence of `ngram` ids occurs at least `times` times; occurrences may overlap."""
        grams = Counter(zip(*(ids[k:] for k in range(self.ngram)), strict=False))
        return max(grams.values(), default=0) >= self.times


class AnchoredReinforce(Reinforce):
    """REINFORCE with the KL in the reward: `coefficient` times the log-ratio of an answer to the anchor, summed over the
    tokens of all its turns and less the mean of the other answers of its group (on-policy KL normalisation), is taken off
    its advantages.

    For samples of the policy itself and `leave_one_out` credit the gradient is exactly that of the expected reward less
    `coefficient` times the divergence of complete answers: unlike a KL term in the loss, it counts what a token does to
    the divergence of later ones. Where a step holds a part of a group or of an episode, sum and mean are those of the part.
    """

    kl: KL = KL()
    """Coefficient and anchor. The estimate in the loss has weight 0: it is only logged."""

    @property
    def depends_on_policy(self) -> bool:
        return True

    def reweigh(self, samples: Sequence[Sample], logprobs: Sequence[Sequence[float]]) -> list[Sample]:
        kl_of = dict[tuple[int, int], float]()
        for s, now in zip(samples, logprobs, strict=True):
            episode = s.group, s.episode
            kl_of[episode] = kl_of.get(episode, 0.0) + sum(now) - sum(s.streams[REFERENCE])
        above = group_advantages(list(kl_of.values()), [group for group, _ in kl_of], "leave_one_out", "none")
        charge = {episode: self.kl.coefficient * float(d) for episode, d in zip(kl_of, above, strict=True)}
        return [
            replace(s, streams=s.streams | {ADVANTAGES: [a - charge[s.group, s.episode] for a in s.advantages]})
            for s in samples
        ]

    def coefficients(self, samples: Sequence[Sample]) -> dict[str, list[float]]:
        return super().coefficients(samples) | {KL_COEFFICIENT: [0.0] * len(samples)}
