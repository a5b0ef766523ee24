"""SPCT on items whose right criterion depends on the kind of prompt."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax

from longstride.claims.claim import Claim
from longstride.core.numbers import Count, Weight
from longstride.core.seeds import derive
from longstride.exact import judging
from longstride.exact.experiment import ExactMethod, ExactProblem, State, recipe
from longstride.exact.judging import choice, softmax
from longstride.papers.spct.method import is_right, kept
from longstride.rewards.probe import LinearHead
from longstride.stats import Ordering


class JudgedItems(NamedTuple):
    """Several judgements of each item: principles [N, K], and scores [N, K, answers], 1 to 10."""

    principles: np.ndarray
    scores: np.ndarray

    def right(self, best: np.ndarray) -> np.ndarray:
        """[N, K] whether the best answer has the highest score, alone."""
        return is_right(self.scores, best)


class Criteria(ExactProblem):
    """Items whose right criterion depends on the kind of prompt: kind z has criterion z modulo their number. A solution
    has the `totals` [N, answers] that a judge gives, and `best` [N]. Measures: `success`, how often the best answer
    has the highest total."""

    kinds: Count = 24
    """Of prompts."""
    criteria: Count = 8
    """By which an answer may be judged."""
    answers: Count = 3
    """Of an item."""
    noise: Weight = 0.5
    """Deviation of what is read of an answer; that of its quality is 1."""
    bias: Weight = 0.5
    """How much better the answer looks that stands first."""
    items: Count = 1000
    """Held-out ones."""

    def draw(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Kinds [n], qualities [n, answers, criteria], and the best answers [n]."""
        kinds, quality = rng.integers(self.kinds, size=n), rng.normal(size=(n, self.answers, self.criteria))
        return kinds, quality, quality[np.arange(n), :, kinds % self.criteria].argmax(1)

    def judge(self, logits: np.ndarray, quality: np.ndarray, k: int, rng: np.random.Generator) -> JudgedItems:
        """k judgements of each item by a policy with logits [n, criteria] of its principles."""
        n, p = len(quality), softmax(logits)
        principles = (p.cumsum(1)[:, None] < rng.random((n, k, 1)) * p.sum(1)[:, None, None]).sum(-1)
        read = quality.transpose(0, 2, 1)[np.arange(n)[:, None], principles]
        read += self.noise * rng.normal(size=read.shape)
        read += self.bias * (rng.random(read.shape).argmax(-1)[..., None] == np.arange(self.answers))  # who is first
        return JudgedItems(principles, np.rint(5.5 + 2 * read).clip(1, 10))

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        return {"success": choice(solution["totals"], np.arange(self.answers) == solution["best"][:, None])}


class CriteriaTuned(ExactMethod[Criteria]):
    """Rejective fine-tuning at the start; GRPO from there. `logits` [kinds, criteria] are of principles."""

    votes: Count = 32
    """k: judgements of a held-out item."""
    meta: bool = True
    """Whether only the half is summed that the filter finds likeliest to be right."""
    rate: Weight = 0.5
    """Of an update of the logits; 0 leaves it at the cold start."""
    beta: Weight = 0.08
    """Of the KL term to the cold start."""
    group: Count = 8
    """Judgements of an item."""
    batch: Count = 48
    """Items of an iteration."""
    cold: Count = 300
    """Items of the cold start."""

    def start(self, problem: Criteria, rng: np.random.Generator) -> State:
        logits = rejective(problem, self.cold, rng)
        kinds, quality, best = problem.draw(2000, rng)
        taught = problem.judge(logits[kinds], quality, 3, rng)
        head = LinearHead.fit(signs(problem, np.repeat(kinds, 3), taught), taught.right(best).ravel())
        kept = {"filter": np.append(head.weight_D, head.bias), "seed": rng.integers(2**40, size=())}
        return kept | {"logits": logits, "reference": logits.copy()}

    def step(self, problem: Criteria, state: State, rng: np.random.Generator) -> State:
        kinds, quality, best = problem.draw(self.batch, rng)
        made = problem.judge(state["logits"][kinds], quality, self.group, rng)
        reward = np.where(made.right(best), 1.0, -1.0)
        advantage = (reward - reward.mean(1, keepdims=True)) / (reward.std(1, keepdims=True) + 1e-6)
        p, ratio = (
            softmax(state["logits"]),
            log_softmax(state["logits"], axis=-1) - log_softmax(state["reference"], axis=-1),
        )
        said = made.principles[..., None] == np.arange(problem.criteria)
        slopes = (advantage[..., None] * (said - p[kinds][:, None])).mean(1)
        slope = -self.beta * p * (ratio - (p * ratio).sum(1, keepdims=True))
        np.add.at(slope, kinds, slopes * problem.kinds / self.batch)
        return dict(state, logits=state["logits"] + self.rate * slope)

    def solution(self, problem: Criteria, state: State) -> State:
        rng = np.random.default_rng(derive(int(state["seed"]), "held out"))
        kinds, quality, best = problem.draw(problem.items, rng)
        made = problem.judge(state["logits"][kinds], quality, self.votes, rng)
        counted = np.ones(made.principles.shape)
        if self.meta and self.votes > 1:
            head = LinearHead(state["filter"][:-1], float(state["filter"][-1]))
            sure = head(signs(problem, np.repeat(kinds, self.votes), made)).reshape(counted.shape)
            counted = kept(sure, self.votes // 2)
        return {"totals": (made.scores * counted[..., None]).sum(1), "best": best}


def rejective(problem: Criteria, n: int, rng: np.random.Generator) -> np.ndarray:
    """Logits of principles after fine-tuning a judge that writes any principle on what rejection leaves of three
    judgements of each of n items."""
    kinds, quality, best = problem.draw(n, rng)
    even = np.zeros((n, problem.criteria))
    made, hinted = problem.judge(even, quality, 3, rng), problem.judge(even, quality, 16, rng)
    right, hint, counts = made.right(best), hinted.right(best), np.ones((problem.kinds, problem.criteria))
    kept = right & ~right.all(1, keepdims=True)
    np.add.at(counts, (np.repeat(kinds, 3)[kept.ravel()], made.principles[kept]), 1)
    hard = ~right.any(1) & hint.any(1)  # what a hint makes the judge say: the first right one of more
    np.add.at(counts, (kinds[hard], hinted.principles[hard, hint[hard].argmax(1)]), 1)
    return np.log(counts / counts.sum(1, keepdims=True))


def signs(problem: Criteria, kinds: np.ndarray, made: JudgedItems) -> np.ndarray:
    """[N K, D] what the filter sees of each judgement: kind with principle, and by how much the highest score leads."""
    pair = kinds * problem.criteria + made.principles.ravel()
    lead = np.diff(np.sort(made.scores.reshape(len(pair), -1), axis=1)[:, -2:])
    return np.column_stack([pair[:, None] == np.arange(problem.kinds * problem.criteria), lead, lead > 0]).astype(float)


RECIPE = recipe("spct/exact", Criteria(), CriteriaTuned(), iterations=20)
_sum, _one, _settled, _single = {"meta": False}, {"votes": 1}, {"rate": 3.0}, {"criteria": 1}

CLAIM = Claim(
    name="spct/exact",
    paper="arXiv 2504.02495, abstract",
    statement="Of 32 judgements, those that a filter finds likely right choose the best answer more often than all of them.",
    recipe=RECIPE,
    arms={
        "filtered_32": RECIPE,
        "summed_32": RECIPE.replace(method=_sum),
        "summed_1": RECIPE.replace(method=_sum | _one),
        "cold_32": RECIPE.replace(method=_sum | {"rate": 0.0}),
        "cold_1": RECIPE.replace(method=_sum | _one | {"rate": 0.0}),
        "settled_filtered_32": RECIPE.replace(method=_settled),
        "settled_summed_32": RECIPE.replace(method=_sum | _settled),
        "single_filtered_32": RECIPE.replace(problem=_single),
        "single_summed_32": RECIPE.replace(problem=_single, method=_sum),
    },
    expected=Ordering(relations=("filtered_32 > summed_32 by 0.02",)),
    # where all judgements have one principle, the only one or the one that RL settled on, a filter has nothing to tell
    control=Ordering(
        relations=("single_filtered_32 > single_summed_32 by 0.02", "settled_filtered_32 > settled_summed_32 by 0.02")
    ),
    reported=Ordering(relations=("summed_32 > summed_1 by 0.05", "summed_32 > cold_32", "summed_1 > cold_1")),
    seeds=judging.SEEDS,
)
