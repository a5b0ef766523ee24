"""SPCT on items whose right criterion depends on the kind of prompt."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.core.numbers import Count, Weight
from longstride.core.seeds import derive
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


HIGHEST = 10
"""Of scores; the lowest is 1."""


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
        return JudgedItems(principles, np.rint(5.5 + 2 * read).clip(1, HIGHEST))

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        return {"success": choice(solution["totals"], np.arange(self.answers) == solution["best"][:, None])}


class CriteriaTuned(ExactMethod[Criteria]):
    """Rejective fine-tuning at the start; GRPO from there. The state has `logits` [kinds, criteria] of principles, and
    `tally` [kinds criteria, scores, 2]: how many judgements of training had a kind and a principle, a lead of the highest
    score, and were wrong or right. From these the filter learns, which takes no further judgement and no further label."""

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
        logits, tally = rejective(problem, self.cold, rng)
        return {"logits": logits, "reference": logits.copy(), "tally": tally, "seed": rng.integers(2**40, size=())}

    def step(self, problem: Criteria, state: State, rng: np.random.Generator) -> State:
        kinds, quality, best = problem.draw(self.batch, rng)
        made = problem.judge(state["logits"][kinds], quality, self.group, rng)
        right = made.right(best)
        reward = np.where(right, 1.0, -1.0)
        advantage = (reward - reward.mean(1, keepdims=True)) / (reward.std(1, keepdims=True) + 1e-6)
        p, ratio = (
            softmax(state["logits"]),
            log_softmax(state["logits"], axis=-1) - log_softmax(state["reference"], axis=-1),
        )
        said = made.principles[..., None] == np.arange(problem.criteria)
        slopes = (advantage[..., None] * (said - p[kinds][:, None])).mean(1)
        slope = -self.beta * p * (ratio - (p * ratio).sum(1, keepdims=True))
        np.add.at(slope, kinds, slopes * problem.kinds / self.batch)
        tally = state["tally"] + tallied(problem, kinds, made, right)
        return dict(state, logits=state["logits"] + self.rate * slope, tally=tally)

    def solution(self, problem: Criteria, state: State) -> State:
        rng = np.random.default_rng(derive(int(state["seed"]), "held out"))
        kinds, quality, best = problem.draw(problem.items, rng)
        made = problem.judge(state["logits"][kinds], quality, self.votes, rng)
        counted = np.ones(made.principles.shape)
        if self.meta and self.votes > 1:
            sure = learned(problem, state["tally"])[pairs_and_leads(problem, kinds, made)].reshape(counted.shape)
            counted = kept(sure, self.votes // 2)
        return {"totals": (made.scores * counted[..., None]).sum(1), "best": best}


def rejective(problem: Criteria, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Logits of principles after fine-tuning a judge that writes any principle on what rejection leaves of three
    judgements of each of n items, and the tally of these judgements."""
    kinds, quality, best = problem.draw(n, rng)
    even = np.zeros((n, problem.criteria))
    made, hinted = problem.judge(even, quality, 3, rng), problem.judge(even, quality, 16, rng)
    right, hint, counts = made.right(best), hinted.right(best), np.ones((problem.kinds, problem.criteria))
    kept = right & ~right.all(1, keepdims=True)
    np.add.at(counts, (np.repeat(kinds, 3)[kept.ravel()], made.principles[kept]), 1)
    hard = ~right.any(1) & hint.any(1)  # what a hint makes the judge say: the first right one of more
    np.add.at(counts, (kinds[hard], hinted.principles[hard, hint[hard].argmax(1)]), 1)
    return np.log(counts / counts.sum(1, keepdims=True)), tallied(problem, kinds, made, right)


def pairs_and_leads(problem: Criteria, kinds: np.ndarray, made: JudgedItems) -> tuple[np.ndarray, np.ndarray]:
    """[N K] what the filter sees of each judgement of items with these kinds [N]: the number of its kind and principle,
    and by how much the highest score leads."""
    pair = kinds[:, None] * problem.criteria + made.principles
    lead = np.diff(np.sort(made.scores, axis=-1)[..., -2:])
    return pair.ravel(), lead.ravel().astype(int)


def tallied(problem: Criteria, kinds: np.ndarray, made: JudgedItems, right: np.ndarray) -> np.ndarray:
    """[kinds criteria, scores, 2] how many judgements the filter sees alike, wrong ones and right ones [N, K]."""
    found = np.zeros((problem.kinds * problem.criteria, HIGHEST, 2))
    np.add.at(found, (*pairs_and_leads(problem, kinds, made), right.ravel().astype(int)), 1)
    return found


def signs(problem: Criteria, pair: np.ndarray, lead: np.ndarray) -> np.ndarray:
    """[M, D] of what is told apart, as numbers."""
    return np.column_stack([pair[:, None] == np.arange(problem.kinds * problem.criteria), lead, lead > 0]).astype(float)


def learned(problem: Criteria, tally: np.ndarray) -> np.ndarray:
    """[kinds criteria, scores] how likely a judgement is right by what the filter sees of it, fitted to a tally."""
    pair, lead, right = np.indices(tally.shape).reshape(3, -1)
    times = tally.ravel().astype(int)
    head = LinearHead.fit(signs(problem, pair.repeat(times), lead.repeat(times)), right.repeat(times))
    return head(signs(problem, pair[::2], lead[::2])).reshape(tally.shape[:2])


RECIPE = recipe("spct/exact", Criteria(), CriteriaTuned(), iterations=20)
_sum, _one, _cold = {"meta": False}, {"votes": 1}, {"rate": 0.0}
_fewer = {f"criteria_{k}": RECIPE.replace(problem={"criteria": k}) for k in (1, 3)}

CLAIM = Claim(
    name="spct/exact",
    paper="arXiv 2504.02495, abstract",
    statement="Of 32 judgements, those that a filter finds likely right choose the best answer more often than all of them, "
    "each of a judge at its own best step of RL, in most of the worlds that are drawn.",
    recipe=RECIPE,
    arms={
        "filtered_32": RECIPE,
        "summed_32": RECIPE.replace(method=_sum),
        "summed_1": RECIPE.replace(method=_sum | _one),
        "cold_32": RECIPE.replace(method=_sum | _cold),
        "cold_1": RECIPE.replace(method=_sum | _one | _cold),
        **{f"{criteria}_filtered_32": arm for criteria, arm in _fewer.items()},
        **{f"{criteria}_summed_32": arm.replace(method=_sum) for criteria, arm in _fewer.items()},
    },
    expected=Ordering(relations=("filtered_32 > summed_32 by 0.02",)),
    # where all judgements have one principle, a filter has nothing to tell; the more there are, the more
    dose=(*(f"{criteria}_filtered_32 > {criteria}_summed_32" for criteria in _fewer), "filtered_32 > summed_32"),
    reported=Ordering(relations=("summed_32 > summed_1 by 0.05", "summed_32 > cold_32", "summed_1 > cold_1")),
    worlds={
        "problem.kinds": Between(low=12, high=48, log=True),
        "problem.criteria": Between(low=4, high=16, log=True),
        "problem.answers": Between(low=2, high=5),
        "problem.noise": Between(low=0.25, high=1.0, log=True),
        "problem.bias": Between(low=0.25, high=1.0, log=True),
        "method.cold": Between(low=150, high=600, log=True),
    },
    grid={"method.rate": (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)},
    # as many judgements and labels: the filter learns from those of training
    cost="iterations",
    tuning_seeds=(900, 901, 902),
    seeds=tuple(range(1000, 1040)),
)

FINDING = (
    "At the step of RL that is best for each, the filter is worth nothing: 0.916 and 0.914 (+0.001 [-0.002, 0.005]); by the margin of 0.02 "
    "it is ahead in one of 40 worlds. With one criterion it costs 0.006, with three 0.004, so the more there are the less it loses. "
    "Thirty-two judgements are worth 0.22 more than one, and RL 0.36 more than the cold start."
)
