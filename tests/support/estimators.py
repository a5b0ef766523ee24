"""Estimators against enumerable problems: episodes of paths, combinations of paths, and a policy that is a table."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from helpers import make_trajectory, make_turn
from torch import Tensor, nn
from torch.nn import functional as F

from longstride.core.trajectory import Trajectory
from longstride.exact.worlds.tabular import EnumerableMDP, Path
from longstride.learner.config import LearnerConfig
from longstride.learner.learner import Learner
from longstride.methods import PPO, Aggregation, Constant, ImportanceCorrection, Loss, Mean, Reinforce, Sample
from longstride.methods.ratios import CISPO, GSPO

OPEN: dict[str, Any] = {"clip_low": 1.0, "clip_high": 1e6}
"""A clip that never binds."""
LOSSES: dict[str, Loss] = {
    "reinforce": Reinforce(),
    "ppo": PPO(),
    "dual clip": PPO(clip_high=0.28, dual_clip=3.0),
    "gspo": GSPO(),
    "cispo": CISPO(),
    "decoupled ppo": PPO(correction=ImportanceCorrection()),
    "decoupled gspo": GSPO(correction=ImportanceCorrection(level="sequence")),
    "decoupled cispo": CISPO(correction=ImportanceCorrection(mode="mask", max=5.0)),
}
AGGREGATIONS: dict[str, Aggregation] = {
    **{over: Mean.model_validate({"over": over}) for over in ("token", "sequence", "episode", "prompt")},
    "constant": Constant(length=9, per="episode"),
}


def log_policy(logits: np.ndarray) -> np.ndarray:
    """[S, A] log-probabilities of a softmax policy."""
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def episode_of(path: Path, logits: np.ndarray | None = None, **fields: Any) -> Trajectory:
    """A path as an episode: states are prompts of one token, actions turns of one token, with the log-probabilities of
    a policy where one is given."""
    steps = zip(path.states, path.actions, path.rewards, strict=True)
    turns = [
        make_turn([a], [s], reward=float(r), observation=f"state {s}",
                  behaviour_logprobs=[-1.0 if logits is None else float(log_policy(logits)[s, a])])
        for s, a, r in steps
    ]  # fmt: skip
    return make_trajectory(turns, float(sum(path.rewards)), **fields)


def all_of(*paths: Iterable[Path]) -> Iterator[tuple[tuple[Path, ...], float]]:
    """Every combination of one path of each, and its probability."""
    for combination in itertools.product(*paths):
        yield combination, float(np.prod([path.probability for path in combination]))


def weighted_scores(policy: np.ndarray, samples: Sequence[Sample]) -> np.ndarray:
    """[S, A] sum of advantage times score over samples of one token after a prompt of one state."""
    total = np.zeros_like(policy)
    for s in samples:
        state, action = s.prompt_ids[0], s.sampled_ids[0]
        total[state] += s.advantages[0] * ((np.arange(policy.shape[1]) == action) - policy[state])
    return total


def by_formula(problem: EnumerableMDP, logits: np.ndarray, weight: Callable[[Path, int], float]) -> np.ndarray:
    """[S, A] sum over paths and turns of probability, weight and score."""
    policy, total = problem.policy(logits), np.zeros_like(logits)
    for path in problem.trajectories(logits):
        for t, (s, a) in enumerate(zip(path.states, path.actions, strict=True)):
            total[s] += path.probability * weight(path, t) * ((np.arange(policy.shape[1]) == a) - policy[s])
    return total


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float((a * b).sum() / np.linalg.norm(a) / np.linalg.norm(b))


class Table(nn.Module):
    """Logits that depend on the last token alone: a tabular softmax policy whose states are token ids."""

    def __init__(self, logits: np.ndarray) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.tensor(logits, dtype=torch.float32))

    def forward(self, input_ids: Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=F.embedding(input_ids, self.logits))

    def set_attn_implementation(self, kind: str) -> None:
        """It has none."""


def table_learner(logits: np.ndarray, loss: Loss, **numbers: Any) -> Learner:
    """A learner of a table."""
    return Learner(Table(logits), LearnerConfig(dtype="float32", **numbers), loss)


def ascent_of(logits: np.ndarray, samples: Sequence[Sample], loss: Loss, **numbers: Any) -> np.ndarray:
    """The direction in which a step on these samples moves a table."""
    learner = table_learner(logits, loss, **numbers)
    learner.accumulate(samples)
    found = learner.model.logits.grad
    return np.zeros_like(logits) if found is None else -found.numpy()  # None where no token is trained


def logprobs_of(logits: np.ndarray, sample: Sample) -> list[float]:
    """Log-probabilities of a sample's tokens under a table."""
    pairs = itertools.pairwise([sample.prompt_ids[-1], *sample.sampled_ids])
    return [float(log_policy(logits)[before, token]) for before, token in pairs]
