"""AnytimeReasoner on thoughts of a few segments that are cut after each of them.

| place | choice | `anytime_reasoner` | here |
|---|---|---|---|
| roll out | budgets | 4, 160 tokens | 4 segments of one token |
| roll out | answers | 4, sampled by the policy and trained | 4, right with chance 0.9 where found, else 0.1; not trained |
| credit | `BudgetRelative` | prior uniform | the same |
| update | | `PPO` | `Reinforce`, one step |

A segment finds the answer by one token of the vocabulary, which stays found.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated

import numpy as np
from pydantic import Field

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.core.numbers import Count
from longstride.core.trajectory import Trajectory
from longstride.exact.answers import Answers, Chance, Grouped
from longstride.exact.learner import recipe
from longstride.methods import Constant, GroupRelative, Reinforce
from longstride.papers.anytime_reasoner.method import BY_BUDGET, SEGMENTS, BudgetRelative
from longstride.stats import Ordering


class Thoughts(Answers):
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
    sure: Chance = 0.9
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
            t.evidence |= {BY_BUDGET: scores, SEGMENTS: [1] * self.length}
            t.reward = t.turns[0].reward = scores[-1]
        return played

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        accuracy_S = (self.tree.answers(solution["logits"]) @ self.accuracy).mean(0)
        return {"anytime": float(accuracy_S.mean()), "success": float(accuracy_S[-1])}


@cache
def _accuracy(vocabulary: int, length: int, last_only: bool, sure: float) -> np.ndarray:
    tokens = np.arange(vocabulary**length)[:, None] // vocabulary ** np.arange(length)[::-1] % vocabulary
    finds = (tokens == 0) & (np.arange(length) >= (length - 1 if last_only else 0))
    return np.where(np.logical_or.accumulate(finds, axis=1), sure, 1 - sure)


RECIPE = recipe(
    "anytime_reasoner/exact",
    Thoughts(tasks=tuple((chance,) for chance in (0.05, 0.1, 0.2, 0.3) * 4)),
    Grouped(credit=BudgetRelative(), loss=Reinforce(aggregation=Constant(per="episode")), rate=32.0),
    iterations=40,
)

_grpo = {"credit": GroupRelative(normalize="none")}
_last = {"problem": {"last_only": True}}

CLAIM = Claim(
    name="anytime_reasoner/exact",
    paper="arXiv 2505.13438, section 4",
    statement="Paid for the answers at all budgets, by BRPO, thoughts are right earlier than when paid for the last "
    "answer: the mean accuracy over budgets is higher, each at its own best step, in most of the worlds that are drawn.",
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
    worlds={
        "problem.tasks": Between(low=0.02, high=0.4, log=True, shape=(16, 1)),
        "problem.spread": Between(low=0.5, high=2.0),
        "problem.sure": Between(low=0.75, high=0.99),
    },
    grid={"method.rate": (4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)},
    cost="samples",
    tuning_seeds=(900, 901),
    seeds=tuple(range(1000, 1040)),
)

FINDING = (
    "It holds in all 40 worlds: BRPO ends ahead by 0.128 [0.119, 0.136] (0.872 and 0.745), each at the best of seven steps. "
    "BRPO's best is the longest step that was tried, GRPO's is not."
)
