"""AnytimeReasoner: budget relative policy optimisation (BRPO). Qi et al., 2025, "Optimizing Anytime Reasoning via Budget
Relative Policy Optimization", arXiv 2505.13438.

What counts is the answer at every budget, not only at the largest. So a thought is cut at several budgets and an answer
is asked for at each of them; a token is paid for the answers at budgets behind it, less what could be expected: from the
answers that the same thought gave before, and from the other thoughts of the group.

| place | choice | paper and released code (R1-Distill-Qwen-1.5B) | here |
|---|---|---|---|
| plan | groups of one task | 8 thoughts, 64 tasks | 8 thoughts, 16 tasks |
| roll out | budgets | 4, equally far apart, 8,000 tokens | 4 segments of one token |
| roll out | summaries | 4 answers at each budget, from a policy trained apart | 4 answers, right with chance 0.9 where found, else 0.1 |
| score | verifier | mean of the answers of a budget | the same |
| credit | `BudgetRelative` | the equation below | the same, prior uniform |
| update | loss | GRPO's, no KL, one step a batch | `Reinforce`, one step |

With r_j the mean of the answers at budget j of S, P_j the prior, and segments counted from 0, a token of segment s has

    A = R_s - [s V1 + (S - s) V2] / S,   R_s = sum over j >= s of P_j r_j,
    V1 = (sum over j < s of 2^j r_j / sum over j < s of 2^j) (sum over j >= s of P_j),   V2 = mean of R_s in the group.

Deviations: tasks are enumerable (`setups.arms`). A segment finds the answer by one token of the vocabulary, which stays
found; the summary's policy is fixed and not trained. Bias: V1 knows only what came before the token, and is a baseline;
V2 has the thought's own R_s in it, so that in groups of n the expected gradient of segment s is 1 - (S - s) / (S n) of
the exact one (tested). Returns are weighed by P_j, so where only the last answer can be right BRPO's steps are a quarter
of GRPO's, and it is slower: the claim's control shows that.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from longstride.claims.claim import Claim
from longstride.core.numbers import Count
from longstride.core.trajectory import Trajectory
from longstride.methods import Constant, Credit, GroupRelative, Reinforce, Sample
from longstride.recipes.setups import arms
from longstride.rollout.planning import by_group
from longstride.stats import Ordering

BY_BUDGET = "by_budget"
"""In `Trajectory.evidence`: the mean of the answers at each budget, in order."""


class Thoughts(arms.Answers):
    """Thoughts of `length` segments, cut after each of them. Measures: `anytime`, the mean accuracy over budgets, and
    `success`, that of the largest one.

    Token 0 finds the answer, with the task's chance in every segment at the start; what is found stays found.
    """

    vocabulary: Annotated[int, Field(ge=2)] = 2
    length: Count = 4
    last_only: bool = False
    """Whether only the last segment can find it: earlier answers then say nothing."""
    summaries: Count = 4
    """Answers at a budget."""
    sure: arms.Chance = 0.9
    """Chance that an answer is right where it was found; 1 - this where not."""

    @property
    def accuracy(self) -> np.ndarray:
        """[K, S] chance that an answer at each budget is right, by thought."""
        return _accuracy(self.vocabulary, self.length, self.last_only, self.sure)

    def begin(self, rng: np.random.Generator) -> np.ndarray:
        logits = self.spread * rng.normal(size=self.tree.shape)
        others = np.log(np.exp(logits[..., 1:]).sum(-1))
        for c, (chance, *_) in enumerate(self.tasks):
            logits[c, :, 0] = others[c] + np.log(chance / (1 - chance))
        return logits

    def play(self, logits: np.ndarray, group: int, rng: np.random.Generator) -> list[Trajectory]:
        thoughts_QN = self.tree.sample(logits, group, rng)
        played = self.episodes(logits, thoughts_QN)
        for t, accuracy_S in zip(played, self.accuracy[thoughts_QN.ravel()], strict=True):
            scores = (rng.binomial(self.summaries, accuracy_S) / self.summaries).tolist()
            t.evidence[BY_BUDGET], t.reward, t.turns[0].reward = scores, scores[-1], scores[-1]
        return played

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        accuracy_S = (self.tree.answers(solution["logits"]) @ self.accuracy).mean(0)
        return {"anytime": float(accuracy_S.mean()), "success": float(accuracy_S[-1])}


@cache
def _accuracy(vocabulary: int, length: int, last_only: bool, sure: float) -> np.ndarray:
    tokens = np.arange(vocabulary**length)[:, None] // vocabulary ** np.arange(length)[::-1] % vocabulary
    finds = (tokens == 0) & (np.arange(length) >= (length - 1 if last_only else 0))
    return np.where(np.logical_or.accumulate(finds, axis=1), sure, 1 - sure)


class BudgetRelative(Credit):
    """BRPO: each sampled token is a segment, and has the advantage of the equation above."""

    prior: Literal["uniform", "linear", "base"] = "uniform"
    """P_j: the same for all budgets, proportional to them, or the largest one alone."""

    def __call__(self, trajectories: Sequence[Trajectory]) -> list[Sample]:
        samples = []
        for group in by_group(trajectories):
            advantages_NS = self.advantages(np.array([t.evidence[BY_BUDGET] for t in group]))
            samples += [Sample.of(t, t.turns[0], a) for t, a in zip(group, advantages_NS.tolist(), strict=True)]
        return samples

    def advantages(self, scores_NS: np.ndarray) -> np.ndarray:
        """[N, S] of a group, from the mean of its answers at each budget."""
        budgets = scores_NS.shape[1]
        shape = {"uniform": np.ones(budgets), "linear": np.arange(budgets) + 1.0, "base": np.eye(budgets)[-1]}
        prior_S = shape[self.prior] / shape[self.prior].sum()
        to_go_NS = (prior_S * scores_NS)[:, ::-1].cumsum(1)[:, ::-1]
        weight_S, left_S = 2.0 ** np.arange(budgets), prior_S[::-1].cumsum()[::-1]
        before_NS = np.cumsum(weight_S * scores_NS, 1) - weight_S * scores_NS
        own_NS = before_NS / np.maximum(np.cumsum(weight_S) - weight_S, 1) * left_S
        s = np.arange(budgets)
        return to_go_NS - (s * own_NS + (budgets - s) * to_go_NS.mean(0)) / budgets


RECIPE = arms.recipe(
    "anytime_reasoner",
    Thoughts(tasks=tuple((chance,) for chance in (0.05, 0.1, 0.2, 0.3) * 4)),
    arms.Grouped(credit=BudgetRelative(), loss=Reinforce(aggregation=Constant(per="episode")), rate=32.0),
    iterations=40,
)

_grpo = {"credit": GroupRelative(normalize="none")}
_last = {"problem": {"last_only": True}}

CLAIM = Claim(
    name="anytime_reasoner",
    paper="arXiv 2505.13438, section 4",
    statement="Paid for the answers at all budgets, by BRPO, thoughts are right earlier than when paid for the last "
    "answer: the mean accuracy over budgets is higher.",
    recipe=RECIPE,
    arms={
        "brpo": RECIPE,
        "grpo": RECIPE.replace(method=_grpo),
        "brpo_base": RECIPE.replace(method={"credit": {"prior": "base"}}),
        "last_brpo": RECIPE.replace(**_last),
        "last_grpo": RECIPE.replace(method=_grpo, **_last),
    },
    measure="anytime",
    expected=Ordering(relations=("brpo > grpo by 0.03",)),
    # where nothing can be found before the end, answers on the way say nothing
    control=Ordering(relations=("last_brpo > last_grpo by 0.02",)),
    seeds=arms.SEEDS,
)
