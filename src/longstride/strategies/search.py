"""Search over solutions that grow step by step. No torch.

What always holds: a search knows nothing of who extends a solution and who scores it, so the same search runs on an
exact problem and on a language model; it yields the partials to be extended by one step each (one of them several times
for several continuations), is sent the extended ones in their order, and returns finished candidates, each once, the
chosen one first, and at least one; randomness of its own comes from the generator that it is given. Who extends sees to
it that every solution is finished after a bounded number of steps.

| search | spends | source |
|---|---|---|
| `Independent` | n solutions | votes: arXiv 2203.11171; weighted by score: arXiv 2408.03314 |
| `Beam` | n continuations a step, `ahead` more for each | arXiv 2408.03314; diverse: arXiv 2502.06703 |
| `Particles` | n continuations a step | arXiv 2502.01618 |
| `BestFirst` | `width` continuations an expansion | arXiv 2509.06493, inference |
| `TreeSearch` | the same | PUCT as in arXiv 2410.02052 |
"""

from abc import abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import log, sqrt
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from longstride.core.component import Component
from longstride.core.numbers import Count, CountOrZero, Positive, Weight
from longstride.strategies.base import settings_in

CLIP = 1e-7
"""Least distance of a score from 0 and 1 where its odds are taken (`its_hub` has the same)."""


@dataclass(frozen=True, eq=False, slots=True)
class Partial:
    """A solution as far as it goes."""

    state: Any
    """Whatever who extends it knows it by: steps so far, or token ids and turns."""
    score: float = 0.5
    """What the scorer says of it so far; a probability of being right where a search takes its odds."""
    done: bool = False
    answer: str | None = None
    """Of a finished one; None if it has none."""
    failed: bool = False
    """Whether no solution came of it: it is not extended, and is a candidate only where there is no other."""


Searching = Generator[Sequence[Partial], list[Partial], list[Partial]]
"""Yields partials to be extended by one step each, is sent the extended ones in their order, and returns finished ones,
the chosen one first; `core.generators.driven` runs it."""


def chosen(finished: Sequence[Partial], by: Literal["score", "votes", "weighted"]) -> Partial:
    """The candidate that counts, the first of equals.

    `score`: that with the highest score. `votes`: the answer that most candidates give, `weighted`: that with the
    highest sum of scores; of those with this answer the one with the highest score. Candidates without an answer have
    no vote.
    """
    votes: dict[str, float] = {}
    for p in finished:
        if p.answer is not None:
            votes[p.answer] = votes.get(p.answer, 0.0) + (p.score if by == "weighted" else 1.0)
    if by != "score" and votes:
        best = max(votes, key=votes.__getitem__)
        finished = [p for p in finished if p.answer == best]
    return max(finished, key=lambda p: p.score)


def effective_size(log_weights: np.ndarray) -> float:
    """(sum w)^2 / sum w^2: how many equally weighted particles these are worth, from 1 to N."""
    w = _normalised(log_weights)
    return float(1 / (w**2).sum())


def systematic(log_weights: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """[n] indices, ascending: each as often as its share of n, rounded up or down (Kitagawa, 1996)."""
    places = (rng.random() + np.arange(n)) / n
    below = _normalised(log_weights).cumsum()
    return np.searchsorted(below / below[-1], places, side="right").clip(max=len(below) - 1)


def _normalised(log_weights: np.ndarray) -> np.ndarray:
    w = np.exp(log_weights - log_weights.max())
    return w / w.sum()


def log_odds(score: float) -> float:
    """Of a probability, which is clipped at `CLIP` from 0 and 1."""
    p = min(max(score, CLIP), 1 - CLIP)
    return log(p / (1 - p))


class Search(Component):
    """Family: a way to look for a solution."""

    by: Literal["score", "votes", "weighted"] = "score"
    """Which finished candidate counts (see `chosen`)."""

    @property
    def name(self) -> str:
        """What metrics rows call it: different wherever fields are."""
        first = next(name for name in type(self).model_fields if name != "by")
        return f"{self.type_name()}_{getattr(self, first)}{settings_in(self, first, 'by')}_by_{self.by}"

    def run(self, root: Partial, rng: np.random.Generator) -> Searching:
        """Searches from a partial that is not finished, such as one without a step."""
        finished = list({id(p): p for p in (yield from self.candidates(root, rng))}.values())
        finished = [p for p in finished if not p.failed] or finished
        first = chosen(finished, self.by)
        return [first, *(p for p in finished if p is not first)]

    @abstractmethod
    def candidates(self, root: Partial, rng: np.random.Generator) -> Searching:
        """`run`, with the finished ones in any order and as often as they vote."""


def _onward(live: Sequence[Partial]) -> Searching:
    """The partials after one more step each; finished ones stay as they are. Asks for nothing where all are."""
    unfinished = [p for p in live if not p.done]
    came = iter((yield unfinished) if unfinished else ())
    return [p if p.done else next(came) for p in live]


class Independent(Search):
    """Independent solutions."""

    n: Count = 16
    """How many."""

    def candidates(self, root: Partial, rng: np.random.Generator) -> Searching:
        live = [root] * self.n
        while not all(p.done for p in live):
            live = yield from _onward(live)
        return live


class Beam(Search):
    """After every step the best n / width partials are kept, and each goes on `width` times; finished ones are kept
    like others, and go on as they are. What was finished when all that is kept is finished are the candidates."""

    n: Count = 16
    """Partials of a step."""
    width: Count = 4
    """Continuations of each that is kept; must divide n."""
    diverse: bool = False
    """Whether the best of every `width` partials is kept, so that the n / width trees stay apart, and not the best of
    all."""
    ahead: CountOrZero = 0
    """Steps that each partial is looked ahead for its score, which cost as much again each. The paper takes them
    greedily; here they are sampled as any others."""

    @model_validator(mode="after")
    def _divides(self) -> Self:
        if self.n % self.width:
            raise ValueError(f"width must divide n, got n={self.n} and width={self.width}")
        return self

    def candidates(self, root: Partial, rng: np.random.Generator) -> Searching:
        live, trees = [root] * self.n, [self.width] * (self.n // self.width) if self.diverse else [self.n]
        while True:
            live = yield from _onward(live)
            seen = live
            for _ in range(self.ahead):
                seen = yield from _onward(seen)
            kept = self._kept(live, [p.score for p in seen], trees)
            if all(p.done for p in kept):
                return [p for p in live if p.done]
            copies = [1 if p.done else self.width for p in kept]
            live = [p for p, times in zip(kept, copies, strict=True) for _ in range(times)]
            trees = copies if self.diverse else [len(live)]

    def _kept(self, live: Sequence[Partial], scores: Sequence[float], trees: Sequence[int]) -> list[Partial]:
        """The best of each tree, given how many of the partials, which stand in order, are of each."""
        keep, first, kept = 1 if self.diverse else self.n // self.width, 0, []
        for size in trees:
            kept += [
                live[k] for k in sorted(range(first, first + size), key=lambda k: (live[k].failed, -scores[k]))[:keep]
            ]
            first += size
        return kept


class Particles(Search):
    """Particle filtering: after every step the particles are drawn anew in proportion to the odds of their scores, so
    that what looks bad lives on as often as the scorer may be wrong. Finished particles keep their weight and are drawn
    like others. With several sweeps this is particle Gibbs: a particle of the sweep before, with all its past, stands
    in each later one.

    The paper's library draws independently (multinomial); systematic draws have the same mean and less scatter.
    """

    n: Annotated[int, Field(ge=2)] = 16
    """Particles of all sweeps together."""
    temperature: Positive = 1.0
    """Divides the log-odds; 1 takes the scorer at its word."""
    below: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Drawn anew where the effective sample size is less than this share of the particles; until then weights multiply.
    1 is the paper's: after every step."""
    sweeps: Count = 1

    @model_validator(mode="after")
    def _enough(self) -> Self:
        if self.n < 2 * self.sweeps:
            raise ValueError(f"a sweep takes two particles or more, got n={self.n} and sweeps={self.sweeps}")
        return self

    def candidates(self, root: Partial, rng: np.random.Generator) -> Searching:
        found: list[Partial] = []
        reference: list[Partial] = []
        for _ in range(self.sweeps):
            paths, log_weights = yield from self._sweep(root, reference, rng)
            found += [path[-1] for path in paths]
            reference = paths[int(systematic(log_weights, 1, rng)[0])]
        return found

    def _sweep(
        self, root: Partial, reference: Sequence[Partial], rng: np.random.Generator
    ) -> Generator[Sequence[Partial], list[Partial], tuple[list[list[Partial]], np.ndarray]]:
        """The particles of a sweep with their pasts, and their weights; the first is the reference, if there is one."""
        n = self.n // self.sweeps
        paths, log_weights = [[root] for _ in range(n)], np.zeros(n)
        for step in count(1):
            fixed = [reference[min(step, len(reference) - 1)]] if reference else []
            came = yield from _onward([path[-1] for path in paths[len(fixed) :]])
            paths = [path if path[-1] is p else [*path, p] for path, p in zip(paths, [*fixed, *came], strict=True)]
            log_weights = log_weights + [log_odds(path[-1].score) / self.temperature for path in paths]
            if all(path[-1].done for path in paths):
                return paths, log_weights
            if effective_size(log_weights) <= self.below * n:
                drawn = systematic(log_weights, n - len(fixed), rng)
                paths, log_weights = paths[: len(fixed)] + [paths[k] for k in drawn], np.zeros(n)
        raise AssertionError  # pragma: no cover


class BestFirst(Search):
    """The partial with the highest score is expanded, wherever it stands, the newest of equals. Ends with enough
    candidates, or when the expansions are spent; if nothing is finished then, the best partial goes on alone."""

    expansions: Count = 16
    """Partials that are extended."""
    width: Count = 4
    """Continuations of each."""
    finish: Count = 1
    """Candidates that are enough."""
    accepted: float = -1e9
    """Least score of a candidate that counts as one of these: 1 where a verifier gives 1 or 0."""

    def candidates(self, root: Partial, rng: np.random.Generator) -> Searching:
        frontier, finished, failed = [root], list[Partial](), list[Partial]()
        for _ in range(self.expansions):
            if not frontier or sum(p.score >= self.accepted for p in finished) >= self.finish:
                break
            best = max(range(len(frontier)), key=lambda k: (frontier[k].score, k))
            for p in (yield [frontier.pop(best)] * self.width):
                (failed if p.failed else finished if p.done else frontier).append(p)
        return finished or (yield from _to_the_end(frontier)) or failed


def _to_the_end(partials: Sequence[Partial]) -> Searching:
    """The best of the partials, if there is one, finished."""
    live = [max(partials, key=lambda p: p.score)] if partials else []
    while not all(p.done for p in live):
        live = yield live
    return live


@dataclass(eq=False, slots=True)
class _Node:
    """A partial in a tree, and what was seen below it."""

    partial: Partial
    children: "list[_Node]" = field(default_factory=list)
    visits: int = 0
    value: float = 0.0
    """Sum over visits."""
    closed: bool = False
    """Whether nothing below is left to be extended."""


class TreeSearch(Search):
    """Monte-Carlo tree search: from the root down to a partial that was not expanded, by PUCT,
    Q + c P sqrt(N) / (1 + n) with P = 1 / width, for continuations are drawn from the policy itself. There `width`
    continuations are made, and the score of each counts for all that stands above it. What has nothing left to be
    extended is not visited again; if nothing is finished when the expansions are spent, the partial with the highest
    score goes on alone."""

    expansions: Count = 16
    """Partials that are extended."""
    width: Count = 4
    """Continuations of each."""
    exploration: Weight = 1.0
    """c."""

    def candidates(self, root: Partial, rng: np.random.Generator) -> Searching:
        tree, made = _Node(root), list[Partial]()
        for _ in range(self.expansions):
            if tree.closed:
                break
            path = self._descend(tree)
            came = yield [path[-1].partial] * self.width
            made += came
            path[-1].children = [_Node(p, [], 1, p.score, p.done) for p in came]
            seen = [p for p in came if not p.failed]
            for node in reversed(path):
                node.visits += len(seen)
                node.value += sum(p.score for p in seen)
                node.closed = all(child.closed for child in node.children)
        finished = [p for p in made if p.done and not p.failed]
        return finished or (yield from _to_the_end([p for p in made if not p.done])) or made

    def _descend(self, tree: _Node) -> list[_Node]:
        """The way from the root to what is extended next."""
        path = [tree]
        while path[-1].children:
            parent = path[-1]
            bonus = self.exploration / self.width * sqrt(parent.visits)
            still = [child for child in parent.children if not child.closed]
            path.append(max(still, key=lambda child: child.value / child.visits + bonus / (1 + child.visits)))
        return path
