"""T1: RL with many samples of a prompt, an entropy bonus and a moving anchor. Hou et al., 2025, "Advancing Language
Model Reasoning through Reinforcement Learning and Inference Scaling", arXiv 2501.11651.

A long run of RL stalls when the policy no longer explores. So each prompt is sampled far more often than a baseline
needs, at a high temperature; entropy is rewarded; and the policy is held to an average of its recent self, so that it
may go far but not fast. Such sampling also brings up repetition, endless thought and gibberish, which are punished.

| place | choice | paper (GLM-4-9B, Qwen2.5-14B and 32B) | here |
|---|---|---|---|
| plan | groups of one prompt | 64 answers, 32 prompts an update | 64 answers, 16 prompts |
| roll out | sampling | temperature 1.2, the best of 0.9 to 1.3 | temperature 1.2; tests at 1 |
| score | `Penalised` | 1 for a right answer, 0 for a wrong one, -1 for one with an unwanted pattern | the same |
| credit | `GroupRelative` | r - mean of the group's others (RLOO) | the same |
| update | `AnchoredReinforce` | KL to the anchor in the reward, less its mean; coefficient 2e-4 | the same, 0.05 |
| update | `MovingAverage` | exponential moving average of the policy | the same, decay 0.9 an update |
| update | entropy | bonus for the entropy of each token | the same, 0.001 |
| update | steps, rate | on-policy, 1.5e-6 | one step an iteration, 1e-3 |

Deviations: model and puzzles are those of `grpo`; the shipped base, which was trained on thoughts with trial and error,
stands for the paper's fine-tuned start. An answer has about 40 tokens here and not thousands, so the KL of an answer
needs a larger coefficient. The paper's decay and entropy coefficient were not found. Samples at temperature 1.2 are not
weighed anew for the policy at 1. The paper leaves out prompts that its start solves more than 3 times in 10; what it
says of success by length of a thought can be measured with `strategies.Anytime`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from longstride.claims.claim import Claim
from longstride.core.budget import StopReason
from longstride.core.numbers import Count
from longstride.core.trajectory import Trajectory
from longstride.engines.base import Sampling
from longstride.methods import KL, GroupRelative, Reinforce, Sample, Start, group_advantages
from longstride.methods.anchors import MovingAverage
from longstride.methods.base import ADVANTAGES, REFERENCE
from longstride.methods.losses import KL_COEFFICIENT
from longstride.recipes.setups import puzzles
from longstride.rewards import TaskReward, Verdict
from longstride.stats import Ordering


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
        reward = -1.0 if any(patterns.values()) else verdict.reward
        return Verdict(reward, verdict.success, {k: float(v) for k, v in patterns.items()}, verdict.evidence)

    def repeats(self, ids: Sequence[int]) -> bool:
        """Whether some sequence of `ngram` ids occurs at least `times` times; occurrences may overlap."""
        grams = Counter(zip(*(ids[k:] for k in range(self.ngram)), strict=False))
        return max(grams.values(), default=0) >= self.times


class AnchoredReinforce(Reinforce):
    """REINFORCE with the KL in the reward: `coefficient` times the log-ratio of an answer to the anchor, summed over its
    tokens and less the mean of the other answers of its group (on-policy KL normalisation), is taken off its advantage.

    For samples of the policy itself and `leave_one_out` credit the gradient is exactly that of the expected reward less
    `coefficient` times the divergence of complete answers: unlike a KL term in the loss, it counts what a token does to
    the divergence of later ones. Where a step holds a part of a group, the mean is that of the part.
    """

    kl: KL = KL()
    """Coefficient and anchor. The estimate in the loss has weight 0: it is only logged."""

    @property
    def depends_on_policy(self) -> bool:
        return True

    def reweigh(self, samples: Sequence[Sample], logprobs: Sequence[Sequence[float]]) -> list[Sample]:
        kl_N = [sum(now) - sum(s.streams[REFERENCE]) for s, now in zip(samples, logprobs, strict=True)]
        above_N = group_advantages(kl_N, [s.group for s in samples], "leave_one_out", "none")
        return [
            replace(s, streams=s.streams | {ADVANTAGES: [a - self.kl.coefficient * float(d) for a in s.advantages]})
            for s, d in zip(samples, above_N, strict=True)
        ]

    def coefficients(self, samples: Sequence[Sample]) -> dict[str, list[float]]:
        return super().coefficients(samples) | {KL_COEFFICIENT: [0.0] * len(samples)}


RECIPE = puzzles.recipe(
    "t1",
    iterations=20,
    episodes_per_iteration=1024,
    group_size=64,
    sampling=Sampling(temperature=1.2),
    reward=Penalised(),
    credit=GroupRelative(baseline="leave_one_out", normalize="none"),
    loss=AnchoredReinforce(entropy=0.001, kl=KL(coefficient=0.05, anchor=MovingAverage(decay=0.9))),
    learner={"lr": 1e-3, "epochs": 1, "batch_samples": 100_000},
    evaluation={"sampling": Sampling()},
)

ARM = RECIPE.replace(
    iterations=40,
    episodes_per_iteration=256,
    group_size=32,
    loss={"kl": {"coefficient": 0.5}},
    evaluation={"every": 40, "tasks": 300},
)
_fixed = {"loss": {"kl": {"anchor": Start()}}}
_short = {"iterations": 8}

CLAIM = Claim(
    name="t1",
    paper="arXiv 2501.11651, abstract",
    statement="In a long run a policy that is held to a moving average of itself ends above one that is held to its start, "
    "by the same coefficient.",
    recipe=ARM,
    arms={
        "moving": ARM,
        "fixed": ARM.replace(**_fixed),
        "short_moving": ARM.replace(**_short),
        "short_fixed": ARM.replace(**_fixed, **_short),
    },
    expected=Ordering(relations=("moving > fixed",)),
    # after a few iterations both anchors are still nearly the start
    control=Ordering(relations=("short_moving > short_fixed by 0.03",)),
    seeds=(10, 11, 12, 13, 14),
)
