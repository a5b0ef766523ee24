"""A probe: a linear head on the hidden states of a frozen model, which says how likely an answer is to be right.

What always holds: the model is only read; the fit is the one minimum of a convex loss, so it has no seed. It asks
nobody: the model is one of its own, whoever the policy is. torch is imported when hidden states are made.
"""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from longstride.core.errors import ConfigError, ModelError
from longstride.core.numbers import Positive
from longstride.envs.judgements import Judgements
from longstride.rewards.scorers import Score, Scorer, Scoring

if TYPE_CHECKING:
    from longstride.models.load import Policy

STEPS = 50
"""Of Newton's method at most; it converges in about ten."""


class StateScorer(Scorer):
    """Family: the probability of a linear head on the hidden states of a model."""

    asks = False

    model: str
    """Whose hidden states are read: a folder, `base`, or a name on the Hugging Face hub."""

    @property
    def name(self) -> str:
        return self.type_name()

    @abstractmethod
    def linear_head(self) -> "LinearHead":
        """The head; read or fitted when it is first asked for."""

    def run(self, task: str, answers: Sequence[str]) -> Scoring:
        """Raises: ModelError where the head cannot be read, or is of another model; as `linear_head`."""
        states_ND, read = hidden_states(self.model, [(task, answer) for answer in answers])
        head = self.linear_head()
        yield from ()
        return [Score(None if np.isnan(p) else float(p), 0, n) for p, n in zip(head(states_ND), read, strict=True)]


class Probe(StateScorer):
    """A head that was trained on labels (an outcome reward model without fine-tuning), from a file."""

    head: str
    """File of the head, which `LinearHead.save` wrote."""

    def linear_head(self) -> "LinearHead":
        return LinearHead.load(Path(self.head))


class TaughtProbe(StateScorer):
    """A head that is fitted to solutions with labels when it is first asked: those of a file, or those that a policy
    wrote to tasks with verifiers. It learns from whole solutions, so it is to be shown all that was said
    (`shown=turn`)."""

    solutions: Judgements = Judgements()
    """What it learns from: those of them that are for training."""
    decay: Positive = 1.0
    """What holds its weights down; a head of few solutions is sure of what it should not be."""

    def linear_head(self) -> "LinearHead":
        """Raises: ConfigError where the solutions are all right, or all wrong."""
        return self._fitted

    @cached_property
    def _fitted(self) -> "LinearHead":
        labels = {(s.task, s.solution): float(s.right) for s in self.solutions.solutions["train"]}
        states_ND, _ = hidden_states(self.model, list(labels))
        held_N = np.isfinite(states_ND).all(1)
        try:
            return LinearHead.fit(states_ND[held_N], np.array(list(labels.values()))[held_N], self.decay)
        except ValueError as e:
            raise ConfigError(f"{self.name}: {e}") from e


class LinearHead:
    """P(right) = sigmoid(w h + b).

    Args:
        weight_D: w.
        bias: b.
    """

    def __init__(self, weight_D: np.ndarray, bias: float) -> None:
        self.weight_D, self.bias = weight_D, bias

    def __call__(self, states_ND: np.ndarray) -> np.ndarray:
        """(N,) probabilities.

        Raises:
            ModelError: the hidden states have another size.
        """
        if states_ND.shape[1] != len(self.weight_D):
            raise ModelError(
                f"the head reads hidden states of size {len(self.weight_D)}, and the model's have "
                f"{states_ND.shape[1]}; take the model that it was trained with"
            )
        return sigmoid(states_ND @ self.weight_D + self.bias)

    @classmethod
    def fit(cls, states_ND: np.ndarray, right_N: np.ndarray, decay: float = 1e-2) -> "LinearHead":
        """The head with the least mean cross-entropy plus decay / 2 times the square of its weights, where states are
        scaled to a deviation of 1.

        Args:
            states_ND: hidden states.
            right_N: 1 where the answer is right, 0 where it is not; soft labels may be between.
            decay: what holds the weights down.

        Raises:
            ValueError: the labels are all the same, or not one a state; a state is not finite.
        """
        if len(states_ND) != len(right_N) or np.ptp(np.asarray(right_N, float)) == 0:
            raise ValueError(f"a head needs right and wrong answers, one label a state; got {len(right_N)} labels")
        if not np.isfinite(states_ND).all():
            raise ValueError(
                "a head is fitted to finite states; leave out answers that the model's context cannot hold"
            )
        mean_D, scale_D = states_ND.mean(0), states_ND.std(0).clip(1e-6)
        x_NE = np.column_stack([(states_ND - mean_D) / scale_D, np.ones(len(states_ND))])
        hold_E = np.append(np.full(states_ND.shape[1], decay), 1e-9)
        w_E = np.zeros(x_NE.shape[1])
        for _ in range(STEPS):
            p_N = sigmoid(x_NE @ w_E)
            slope_E = x_NE.T @ (p_N - right_N) / len(x_NE) + hold_E * w_E
            curvature = (x_NE * (p_N * (1 - p_N))[:, None]).T @ x_NE / len(x_NE) + np.diag(hold_E)
            step_E = np.linalg.solve(curvature, slope_E)
            w_E = w_E - step_E / max(1.0, np.abs(step_E).max() / 2)  # a full step may overshoot far from the minimum
            if np.abs(step_E).max() < 1e-10:
                break
        weight_D = w_E[:-1] / scale_D
        return cls(weight_D, float(w_E[-1] - mean_D @ weight_D))

    def save(self, path: Path) -> None:
        """Writes a safetensors file."""
        from safetensors.numpy import save_file

        save_file({"weight": self.weight_D, "bias": np.array([self.bias])}, path)

    @classmethod
    def load(cls, path: Path) -> "LinearHead":
        """Raises: ModelError where it cannot be read."""
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        try:
            found = load_file(path)
            return cls(found["weight"].reshape(-1), float(found["bias"].reshape(-1)[0]))
        except (OSError, KeyError, IndexError, SafetensorError) as e:
            raise ModelError(f"{path} is no head of a probe ({e}); write one with LinearHead.fit(...).save(...)") from e


def hidden_states(model: str, answers: Sequence[tuple[str, str]]) -> tuple[np.ndarray, list[int]]:
    """The last hidden state at the last token of each answer, as the policy's turn after its task.

    Args:
        model: as `StateScorer.model`.
        answers: task and answer.

    Returns:
        (N, D) states, NaN where the model's context does not hold the answer, and the tokens that were read for each.

    Raises:
        ModelError: the model cannot be loaded.
    """
    import torch

    policy, read = _policy(model), [0] * len(answers)
    states_ND = np.full((len(answers), policy.model.config.get_text_config().hidden_size), np.nan)  # pyright: ignore
    for n, (task, answer) in enumerate(answers):
        ids = policy.chat.head(task) + policy.chat.observation("", first=True) + policy.chat.encode(answer)
        if len(ids) <= policy.max_context:
            with torch.inference_mode():
                came = policy.model.base_model(torch.tensor([ids], device=policy.device))  # pyright: ignore
            states_ND[n], read[n] = came.last_hidden_state[0, -1].float().cpu(), len(ids)
    return states_ND, read


@cache
def _policy(model: str) -> "Policy":
    from longstride.models.load import load_policy

    return load_policy(model)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)), without overflow."""
    return 0.5 * (1 + np.tanh(x / 2))
