"""How compute is spent: many problems with one right answer each, a policy that may share parameters
between them, and group-relative policy gradient on sampled answers.

What always holds: success is exact, and samples are drawn in training alone; an iteration samples the same number of
rollouts whatever the size of a group. All of a batch is computed at once, so a run of a hundred thousand rollouts takes
a second.
"""

from collections.abc import Mapping
from typing import Annotated, Generic, TypeVar

import numpy as np
from pydantic import Field

from longstride.core.errors import ConfigError
from longstride.core.numbers import Count, CountOrZero, Positive, Share
from longstride.exact.answers import Chance
from longstride.exact.experiment import ExactMethod, ExactProblem, State

UNIT = 16
"""Rollouts of a batch for which the rate is what is given."""


class Sharing(ExactProblem):
    """Problems with one right answer each, whose policy shares parameters. Measures: `success`; `early`, success after
    the first iteration; `rollouts`, how many were sampled."""

    problems: Count = 20
    """How many."""
    chances: Annotated[tuple[Chance, ...], Field(min_length=1)] = (0.3, 0.1, 0.03, 0.01, 0.003)
    """Of the right answer at the start, one problem after the other and again from the first."""
    answers: Annotated[int, Field(ge=2)] = 16
    """To choose from."""
    features: CountOrZero = 16
    """Numbers that a problem is known by; 0: parameters of its own."""
    overlap: Share = 0.5
    """Of the squared length of features, the part that all problems have in common."""

    def begin(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Features [Q, D], the base policy's logits [Q, K], and which answer is right [Q]."""
        Q, K, D = self.problems, self.answers, self.features
        own = rng.normal(size=(Q, D)) if D else np.eye(Q)
        own /= np.linalg.norm(own, axis=1, keepdims=True)
        common = np.eye(own.shape[1])[0] * bool(D)
        features = np.sqrt(1 - self.overlap * bool(D)) * own + np.sqrt(self.overlap) * common
        right, chance = rng.integers(K, size=Q), np.resize(self.chances, Q)
        p = np.exp(0.5 * rng.normal(size=(Q, K)))
        p[np.arange(Q), right] = 0
        p *= ((1 - chance) / p.sum(1))[:, None]
        p[np.arange(Q), right] = chance
        return {"features": features, "base": np.log(p), "right": right.astype(float)}

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        return {name: float(solution[name]) for name in ("success", "early", "rollouts")}


def policy(state: Mapping[str, np.ndarray], q: np.ndarray) -> np.ndarray:
    """[len(q), K] probabilities of the answers to problems q."""
    logits = state["base"][q] + state["features"][q] @ state["weights"]
    p = np.exp(logits - logits.max(1, keepdims=True))
    return p / p.sum(1, keepdims=True)


def group_gradient(p_BK: np.ndarray, counts_BK: np.ndarray, right_B: np.ndarray) -> np.ndarray:
    """[B, K] the group-relative gradient in the logits: the mean over n rollouts of (r - mean) / deviation times the
    gradient of their log-probability; 0 where all are right or all wrong."""
    rows, n = np.arange(len(p_BK)), counts_BK.sum(1, keepdims=True)
    mean = counts_BK[rows, right_B][:, None] / n
    pushed = -counts_BK * mean / n
    pushed[rows, right_B] += mean[:, 0]
    deviation = np.sqrt(mean * (1 - mean))
    pushed = np.divide(pushed, deviation, out=np.zeros_like(pushed), where=deviation > 0)
    return pushed - p_BK * pushed.sum(1, keepdims=True)


S = TypeVar("S", bound=Sharing)


class Shared(ExactMethod[S], Generic[S]):
    """Group-relative policy gradient; an iteration samples the same number of rollouts whatever n is."""

    rollouts: Count = 64
    """n, for each problem of a batch."""
    batch: Count = 4
    """B, or all problems where there are fewer."""
    budget: Count = 4096
    """Rollouts an iteration."""
    rate: Positive = 2.0
    """For a batch of `UNIT` rollouts; it grows with their square root."""

    def start(self, problem: S, rng: np.random.Generator) -> State:
        if self.batch * self.rollouts > self.budget:
            raise ConfigError(
                f"{self.batch} problems of {self.rollouts} rollouts are more than the {self.budget} of an iteration"
            )
        state = problem.begin(rng)
        state["weights"] = np.zeros((state["features"].shape[1], problem.answers))
        state |= {"rollouts": np.zeros(()), "early": np.zeros(())}
        return state | {"success": self._success(state)}

    def step(self, problem: S, state: State, rng: np.random.Generator) -> State:
        after, Q = dict(state), problem.problems
        B = min(self.batch, Q)
        rate = self.rate * np.sqrt(B * self.rollouts / UNIT)
        for _ in range(self.budget // (B * self.rollouts)):
            q = rng.integers(Q, size=B)
            p = policy(after, q)
            found = group_gradient(p, rng.multinomial(self.rollouts, p), state["right"][q].astype(int))
            after["weights"] = after["weights"] + rate / B * after["features"][q].T @ found
            after["rollouts"] = after["rollouts"] + B * self.rollouts
        after["success"] = self._success(after)
        if not state["rollouts"]:
            after["early"] = after["success"]
        return after

    def _success(self, state: State) -> np.ndarray:
        p, right = policy(state, np.arange(len(state["right"]))), state["right"].astype(int)
        return p[np.arange(len(p)), right].mean()
