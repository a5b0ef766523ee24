"""BoN-aware fine-tuning: RL for the best of N answers. Chow et al., 2024, "Inference-Aware Fine-Tuning for Best-of-N
Sampling in Large Language Models", arXiv 2412.15287.

If N answers are drawn and a verifier keeps the best, a task is solved with chance 1 - f^N, f the chance that one answer
fails. The gradient of that is N f^(N-1) times the gradient of the success of one answer: what is solved anyway weighs
nothing, and where the policy cannot know which answer is right it learns to try several instead of the likeliest.

| place | choice | paper (Gemma 2B and 9B, section 4) | here |
|---|---|---|---|
| plan | groups of one task | 32 answers | 32 answers to each task |
| score | a verifier | right or wrong | the same |
| credit | `PassAtN` | weights of right and wrong answers in f^(N-1), from the empirical f | N w (r - mean of the others), w exact in expectation |
| update | `Reinforce` | REINFORCE with a KL to the start | the same without KL, the sum over tokens |
| test | `pass@16` | best of N with an exact verifier, pass@N | computed from the policy |

Deviations: tasks are enumerable (`setups.arms`): sixteen, four to a context, which the policy cannot tell apart and
which have different right answers. The objective is 1 - f^N, not its logarithm, so the paper's weights divided by
1 - f^N do not occur. f^(N-1) is not the power of an estimate, which is biased: it is the share of sets of N - 1 of the
*other* answers that all fail, which is independent of the answer that is weighed. So the expected update is the exact
gradient (tested to 1e-9), for N up to the size of the group; the best of N by an imperfect verifier is left out.

On puzzles: `longstride train grpo credit.type=longstride.recipes.reasoning.bon_aware:PassAtN credit.n=4`.
"""

from collections.abc import Sequence
from math import comb

from longstride.claims.claim import Claim
from longstride.core.errors import ConfigError
from longstride.core.numbers import Count
from longstride.core.trajectory import Trajectory
from longstride.methods import Constant, Credit, GroupRelative, Reinforce, Sample
from longstride.recipes.setups import arms
from longstride.rollout.planning import by_group
from longstride.stats import Ordering


class PassAtN(Credit):
    """The advantage of an episode for the chance that one of `n` solves the task.

    A = n w (r - b): w is the share of sets of n - 1 other episodes of its group of which none succeeded, b the mean
    reward of the others. Neither depends on the episode, so for rewards of 0 and 1 the expected gradient of a group is
    exactly that of 1 - f^n. `n` = 1 is `leave_one_out`.
    """

    n: Count = 16
    """Answers that are drawn at test time; a group must have as many or more."""

    def __call__(self, trajectories: Sequence[Trajectory]) -> list[Sample]:
        samples = []
        for group in by_group(trajectories):
            others, total = len(group) - 1, sum(t.reward for t in group)
            if others < max(self.n - 1, 1):
                raise ConfigError(
                    f"pass_at_n with n = {self.n} needs groups of {max(self.n, 2)} or more, got {others + 1}"
                )
            fails = sum(not t.success for t in group)
            for t in group:
                weight = self.n * comb(fails - (not t.success), self.n - 1) / comb(others, self.n - 1)
                advantage = weight * (t.reward - (total - t.reward) / others)
                samples += [Sample.of(t, u, [advantage] * len(u.sampled_ids)) for u in t.turns if u.sampled_ids]
        return samples


CHANCES = (0.4, 0.15, 0.1, 0.05)
ALIKE = arms.Answers(tasks=(CHANCES,) * 4, vocabulary=32)
APART = ALIKE.replace(tasks=tuple((chance,) for chance in CHANCES * 4))

RECIPE = arms.recipe(
    "bon_aware",
    ALIKE,
    arms.Grouped(credit=PassAtN(n=16), loss=Reinforce(aggregation=Constant(per="episode")), group=32, rate=16.0),
    iterations=40,
)

_plain = {"method": {"credit": GroupRelative(baseline="leave_one_out", normalize="none")}}

CLAIM = Claim(
    name="bon_aware",
    paper="arXiv 2412.15287, section 5.2",
    statement="Trained for the best of 16, a policy solves more tasks with 16 answers than one that was trained for a "
    "single answer.",
    recipe=RECIPE,
    arms={
        "best_of_16": RECIPE,
        "single": RECIPE.replace(**_plain),
        "apart_best_of_16": RECIPE.replace(problem=APART),
        "apart_single": RECIPE.replace(problem=APART, **_plain),
    },
    measure="pass@16",
    expected=Ordering(relations=("best_of_16 > single by 0.3",)),
    # a policy that can tell tasks apart has no reason to try several answers: success and pass@16 rise together
    control=Ordering(relations=("apart_best_of_16 > apart_single by 0.05",)),
    seeds=arms.SEEDS,
)
