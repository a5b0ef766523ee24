"""Proofs that a verifier checks step by step: theorems, and the search for a proof.

What always holds: the chance of a proof is computed from the table that is the prover; only searches sample. A run takes
a second, so a claim can have forty seeds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np
from scipy.special import softmax

from longstride.core.generators import driven
from longstride.core.numbers import Count, CountOrZero, Share
from longstride.exact.experiment import ExactProblem
from longstride.strategies.search import BestFirst, Partial

PROVED = "proved"
Step = tuple[int, int]
"""A kind of goal, and the tactic that was tried on it."""


@dataclass(frozen=True, slots=True)
class Proof:
    """Steps so far."""

    steps: tuple[Step, ...] = ()
    closed: int = 0
    """Goals that are closed."""
    logp: float = 0.0
    """Of all steps."""
    rejected: bool = False
    """Whether the verifier rejected the last step."""


class GoalTheorems(ExactProblem):
    """Theorems of `goals` goals each. A goal is of a kind, which the prover sees, and is closed by one tactic, which it
    has to guess: the trivial one, number 0, or one of the `special` ones that follow. The `idle` tactics after these
    are accepted and close nothing; the last is rejected wherever it is tried. Measures: `success`, the chance that one of
    `attempts` proofs of at most `longest` steps is right, of theorems that are not trained on, and `proved`, the share of
    training theorems that the last search proved."""

    kinds: Count = 8
    goals: Count = 4
    special: Count = 2
    idle: CountOrZero = 40
    trivial: Share = 0.5
    """Chance that the trivial tactic closes a goal."""
    longest: Count = 6
    attempts: Count = 16

    @property
    def tactics(self) -> int:
        """How many there are."""
        return 1 + self.special + self.idle + 1

    @cached_property
    def tested(self) -> np.ndarray:
        """[300, G, 2] theorems that are not trained on."""
        return self.draw(300, np.random.default_rng(0))

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """[n, G, 2] of each goal of each theorem the kind, and the tactic that closes it."""
        shape = n, self.goals
        tactics = np.where(rng.random(shape) < self.trivial, 0, rng.integers(1, 1 + self.special, shape))
        return np.stack([rng.integers(self.kinds, size=shape), tactics], -1)

    def idles(self, tactic: int) -> bool:
        """Whether a tactic is accepted and closes nothing."""
        return self.special < tactic < self.tactics - 1

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        policy = softmax(solution["logits"], axis=-1)  # of every tactic on every kind of goal
        closes = policy[self.tested[..., 0], self.tested[..., 1]]
        idles = policy[:, 1 + self.special : -1].sum(-1)[self.tested[..., 0]]
        at = np.zeros((len(closes), self.goals + 1))  # the chance to have closed so many goals
        at[:, 0] = 1
        for _ in range(self.longest):
            moved = at[:, :-1] * closes
            at[:, :-1] *= idles
            at[:, 1:] += moved
        return {
            "success": float((1 - (1 - at[:, -1]) ** self.attempts).mean()),
            "proved": float(solution["proved"]),
        }


def proof_of(
    problem: GoalTheorems, theorem: np.ndarray, policy: np.ndarray, search: BestFirst, rng: np.random.Generator
) -> tuple[Step, ...]:
    """The steps of a proof of a theorem [G, 2] that a search finds; none if it finds none."""
    below = policy.cumsum(-1).clip(max=1)

    def extend(partials: Sequence[Partial]) -> list[Partial]:
        return [after(p.state, u) for p, u in zip(partials, rng.random(len(partials)), strict=True)]

    def after(proof: Proof, u: float) -> Partial:
        if proof.rejected:
            return Partial(proof, -inf, True)
        kind, closes = theorem[proof.closed].tolist()
        tactic = min(int(np.searchsorted(below[kind], u, side="right")), problem.tactics - 1)
        logp = proof.logp + float(np.log(policy[kind, tactic]))
        steps, closed = (*proof.steps, (kind, tactic)), proof.closed + (tactic == closes)
        came = Proof(steps, closed, logp, tactic != closes and not problem.idles(tactic))
        done, ended = closed == problem.goals, len(steps) == 2 * problem.longest
        return Partial(came, -inf if came.rejected else logp / len(steps), done or ended, PROVED if done else None)

    found = driven(search.run(Partial(Proof()), rng), extend)
    return next((p.state.steps for p in found if p.answer == PROVED), ())
