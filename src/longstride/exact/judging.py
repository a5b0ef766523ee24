"""Scorers, trained on answers whose truth is known: what choosing by a score is worth, and a small network
that learns from labels.

Training and votes draw samples; the held-out answers are drawn once a run, and measures are of all of them.
"""

from collections.abc import Mapping

import numpy as np
from scipy.special import log_softmax

from longstride.exact.experiment import ExactProblem, State
from longstride.rewards.probe import sigmoid
from longstride.stats.agreement import calibration_error, pair_accuracy

__all__ = ["SEEDS", "Choosing", "ascend", "choice", "network", "output", "sigmoid", "softmax"]
SEEDS = tuple(range(200, 230))
"""Of claims; settings were chosen with seeds 0 to 9."""


class Choosing(ExactProblem):
    """Tasks with several answers, of which the one with the highest score is taken. A solution has `scores` [Q, N], which
    are probabilities, and `right` [Q, N]. Measures: `success`, the share of tasks whose chosen answer is right (of
    equals any is taken), `pair_accuracy`, and `calibration_error`."""

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        scores, right = solution["scores"], solution["right"]
        return {
            "success": choice(scores, right),
            "pair_accuracy": pair_accuracy(scores.ravel(), right.ravel()),
            "calibration_error": calibration_error(scores.ravel(), right.ravel()),
        }


def choice(scores_QN: np.ndarray, right_QN: np.ndarray) -> float:
    """The chance that an answer with the highest score is right, equals being as likely; the mean over tasks."""
    best_QN = scores_QN >= scores_QN.max(1, keepdims=True) - 1e-12
    return float(((best_QN * right_QN).sum(1) / best_QN.sum(1)).mean())


def network(width: int, hidden: int, rng: np.random.Generator) -> State:
    """A network with one hidden layer and one output, and the moments of Adam, all at 0."""
    weights = {
        "w1": rng.normal(size=(width, hidden)) / np.sqrt(width),
        "b1": np.zeros(hidden),
        "w2": rng.normal(size=hidden) / np.sqrt(hidden),
        "b2": np.zeros(()),
    }
    moments = {f"{of}_{name}": np.zeros_like(w) for name, w in weights.items() for of in ("mean", "square")}
    return weights | moments | {"steps": np.zeros(())}


def output(state: State, x_NW: np.ndarray) -> np.ndarray:
    """(N,) logits."""
    return np.tanh(x_NW @ state["w1"] + state["b1"]) @ state["w2"] + state["b2"]


def ascend(state: State, x_NW: np.ndarray, slope_N: np.ndarray, rate: float) -> State:
    """The state after a step of Adam (0.9, 0.999) up the sum over n of slope_n times output n."""
    h_NH = np.tanh(x_NW @ state["w1"] + state["b1"])
    back_NH = slope_N[:, None] * state["w2"] * (1 - h_NH**2)
    slopes = {"w1": x_NW.T @ back_NH, "b1": back_NH.sum(0), "w2": h_NH.T @ slope_N, "b2": slope_N.sum()}
    after, t = dict(state, steps=state["steps"] + 1), float(state["steps"]) + 1
    for name, g in slopes.items():
        mean = after[f"mean_{name}"] = 0.9 * state[f"mean_{name}"] + 0.1 * g
        square = after[f"square_{name}"] = 0.999 * state[f"square_{name}"] + 0.001 * g**2
        after[name] = state[name] + rate * mean / (1 - 0.9**t) / (np.sqrt(square / (1 - 0.999**t)) + 1e-8)
    return after


def softmax(logits: np.ndarray) -> np.ndarray:
    """Over the last axis."""
    return np.exp(log_softmax(logits, axis=-1))
