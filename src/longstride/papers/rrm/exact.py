"""RRM on preferences between vectors, with an artefact that goes with the label."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.core.numbers import Count, Positive, Share
from longstride.exact.experiment import ExactMethod, ExactProblem, State, recipe
from longstride.exact.judging import sigmoid
from longstride.papers.rrm.method import COMPARED
from longstride.stats import Ordering


class Pairs(NamedTuple):
    """Two answers to each prompt, the preferred one first."""

    prompts: np.ndarray
    """[N, D]."""
    answers: np.ndarray
    """[N, 2, D]."""
    artefact: np.ndarray
    """[N, 2], 1 or -1."""


class Preferences(ExactProblem):
    """Answers that fit their prompt more or less: quality is the scalar product of prompt and answer. People prefer one of
    two with probability sigmoid(sharpness times difference). Held-out pairs are labelled by quality itself.

    Measures: `success`, accuracy where the worse answer has the artefact; `agreeing`, where the better has it;
    `quality`, of the best of 16 answers by the reward, as a share of that of the best by quality; `artefact`, how often
    the chosen one has it.
    """

    size: Count = 4
    """D."""
    pairs: Count = 1000
    """Pairs that are learned from."""
    sharpness: Positive = 2.0
    """How surely people see quality."""
    rho: Share = 0.8
    """Correlation of artefact and label in these."""
    held_out: Count = 4000
    """Pairs that are measured, of each kind."""

    def draw(self, n: int, rng: np.random.Generator) -> Pairs:
        """Pairs with labels of people and an artefact on one answer of each."""
        prompts = rng.normal(size=(n, self.size))
        answers = (prompts[:, None] + rng.normal(size=(n, 2, self.size))) / np.sqrt(self.size)
        quality = np.einsum("nd,nkd->nk", prompts, answers)
        second = rng.random(n) > sigmoid(self.sharpness * (quality[:, 0] - quality[:, 1]))
        answers[second] = answers[second, ::-1]
        sides = np.where(rng.random(n) < (1 + self.rho) / 2, 1, -1)
        return Pairs(prompts, answers, np.stack([sides, -sides], 1))

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        rng, weights = np.random.default_rng(0), solution["weights"]
        prompts = rng.normal(size=(self.held_out, self.size))
        answers = (prompts[:, None] + rng.normal(size=(self.held_out, 16, self.size))) / np.sqrt(self.size)
        quality = np.einsum("nd,nkd->nk", prompts, answers)
        better = np.take_along_axis(answers, quality[:, :2].argsort(1)[:, ::-1, None], 1)
        right = [
            (rewards(weights, prompts, better[:, 0], side) > rewards(weights, prompts, better[:, 1], -side)).mean()
            for side in (-np.ones(self.held_out), np.ones(self.held_out))
        ]
        artefact = rng.choice([-1, 1], size=quality.shape)
        chosen = np.stack([rewards(weights, prompts, answers[:, k], artefact[:, k]) for k in range(16)], 1).argmax(1)
        at = np.arange(self.held_out), chosen
        return {
            "success": float(right[0]),
            "agreeing": float(right[1]),
            "quality": float(quality[at].mean() / quality.max(1).mean()),
            "artefact": float((artefact[at] > 0).mean()),
        }


def features(prompts: np.ndarray, answers: np.ndarray, artefact: np.ndarray) -> np.ndarray:
    """[N, D * D + 1]: products of prompt and answer, and the artefact."""
    return np.column_stack([np.einsum("nd,ne->nde", prompts, answers).reshape(len(prompts), -1), artefact])


def rewards(weights: np.ndarray, prompts: np.ndarray, answers: np.ndarray, artefact: np.ndarray) -> np.ndarray:
    return features(prompts, answers, artefact) @ weights


def augmented(pairs: Pairs, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Of each prompt, all fifteen pairs of its own two answers and those of two other prompts.

    Returns:
        differences of features, first minus second answer, and the probability with which the first wins.
    """
    n, order = len(pairs.prompts), rng.permutation(len(pairs.prompts))
    owners = [np.empty(n, int) for _ in range(3)]
    for shift, owner in enumerate(owners):  # a shift of a random order: nobody is paired with itself
        owner[order] = np.roll(order, shift)
    seen = [features(pairs.prompts, pairs.answers[o, k], pairs.artefact[o, k]) for o in owners for k in (0, 1)]
    both = [(seen[i] - seen[j], chance) for i, j, chance in COMPARED]
    return np.concatenate([d for d, _ in both]), np.repeat([label for _, label in both], n)


class RewardModel(ExactMethod[Preferences]):
    """Bradley-Terry on pairs, a step of Newton's method an iteration."""

    augment: bool = True
    """Whether answers of other prompts are compared as well."""
    decay: Positive = 1e-3
    """Times half the square of the weights, beside the mean loss."""

    def start(self, problem: Preferences, rng: np.random.Generator) -> State:
        return {"weights": np.zeros(problem.size**2 + 1), "seed": rng.integers(2**40, size=())}

    def spent(self, problem: Preferences, state: State) -> Mapping[str, float]:
        """Pairs that people labelled; what augmentation adds needs no label."""
        return {"labels": float(problem.pairs)}

    def data(self, problem: Preferences, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """What is learned from, as `augmented` gives it."""
        pairs = problem.draw(problem.pairs, rng)
        if self.augment:
            return augmented(pairs, rng)
        preferred, other = (features(pairs.prompts, pairs.answers[:, k], pairs.artefact[:, k]) for k in (0, 1))
        return preferred - other, np.ones(problem.pairs)

    def step(self, problem: Preferences, state: State, rng: np.random.Generator) -> State:
        x, label = self.data(problem, np.random.default_rng(int(state["seed"])))
        w = state["weights"]
        p = sigmoid(x @ w)
        slope = x.T @ (p - label) / len(x) + self.decay * w
        curvature = (x * (p * (1 - p))[:, None]).T @ x / len(x) + self.decay * np.eye(len(w))
        return dict(state, weights=w - np.linalg.solve(curvature, slope))


RECIPE = recipe("rrm/exact", Preferences(), RewardModel(), iterations=8)
_plain = {"method": {"augment": False}}
_doses = {f"rho_{rho:g}": RECIPE.replace(problem={"rho": rho}) for rho in (0.0, 0.45, 0.9)}

CLAIM = Claim(
    name="rrm/exact",
    paper="arXiv 2409.13156, abstract",
    statement="Where an artefact goes with the label in training, a reward model that also saw answers under other prompts "
    "is right more often on pairs whose worse answer has the artefact, each at its own best decay of weights, in most of the "
    "worlds that are drawn.",
    recipe=RECIPE,
    arms={
        "augmented": RECIPE,
        "plain": RECIPE.replace(**_plain),
        **{f"{rho}_augmented": arm for rho, arm in _doses.items()},
        **{f"{rho}_plain": arm.replace(**_plain) for rho, arm in _doses.items()},
    },
    expected=Ordering(relations=("augmented > plain by 0.1",)),
    # an artefact that goes with neither label misleads nobody; the more it goes with one, the more it misleads
    dose=tuple(f"{rho}_augmented > {rho}_plain" for rho in _doses),
    reported=Ordering(relations=("augmented > plain in quality", "plain > augmented by 0.1 in artefact")),
    worlds={
        "problem.rho": Between(low=0.3, high=0.95),
        "problem.sharpness": Between(low=0.7, high=6.0, log=True),
        "problem.pairs": Between(low=300, high=3000, log=True),
        "problem.size": Between(low=2, high=8),
    },
    grid={"method.decay": (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)},
    cost="labels",
    tuning_seeds=(900, 901, 902),
    seeds=tuple(range(1000, 1040)),
)

FINDING = (
    "It holds in 88 % of the worlds [74, 95], and the plain model is ahead in none: right in 0.88 and 0.53 of "
    "pairs whose worse answer has the artefact (+0.35 [0.29, 0.42]), each at its best decay, which is next to "
    "none. The less surely people see quality, the larger the lead; where the artefact goes with neither label, "
    "augmentation is still worth 0.07."
)
