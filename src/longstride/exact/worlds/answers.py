"""Tasks with enumerable answers: what groups, baselines, stale samples and many passes over one batch do to a policy.

An answer is a sequence of `length` tokens, so there are K = V^length of them. A policy is a table of logits [C, M, V]
under a softmax: contexts, places (one for each beginning of an answer) and tokens. A softmax bandit is the case of one
token. The policy sees the context of a task and not the task, so tasks of one context are alike to it.

What always holds: probabilities, success and gradients are exact, with no sampling anywhere but in `sample`; an answer
is numbered by its tokens read as the digits of a number in base V. NumPy only.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from longstride.core.errors import ConfigError

MOST_ANSWERS = 1 << 16
"""More answers than these are not enumerated."""


@dataclass(frozen=True, eq=False)
class AnswerTree:
    """Tasks, their answers and what these earn.

    Args:
        rewards: [Q, K] reward of each answer to each task.
        context: [Q] what the policy sees of each task: a number from 0; every context has a task.
        vocabulary: number of tokens, at least 2.
        length: tokens of an answer.

    Raises:
        ConfigError: shapes do not fit, or there are too many answers to count them.
    """

    rewards: np.ndarray
    context: np.ndarray
    vocabulary: int
    length: int

    def __post_init__(self) -> None:
        answers = self.vocabulary**self.length
        if self.vocabulary < 2 or not 2 <= answers <= MOST_ANSWERS:
            raise ConfigError(f"expected 2 to {MOST_ANSWERS} answers, got {self.vocabulary}^{self.length}")
        if self.rewards.shape != (len(self.context), answers):
            raise ConfigError(
                f"rewards must be [{len(self.context)} tasks, {answers} answers], got {self.rewards.shape}"
            )
        if set(self.context.tolist()) != set(range(self.contexts)):
            raise ConfigError(f"contexts are numbered from 0 without a gap, got {sorted(set(self.context.tolist()))}")

    @property
    def contexts(self) -> int:
        return int(self.context.max()) + 1

    @property
    def shape(self) -> tuple[int, int, int]:
        """[C, M, V] of a policy's logits."""
        return self.contexts, sum(self.vocabulary**t for t in range(self.length)), self.vocabulary

    @cached_property
    def tokens(self) -> np.ndarray:
        """[K, length] the tokens of each answer."""
        answers, base = np.arange(self.vocabulary**self.length)[:, None], self.vocabulary
        return answers // base ** np.arange(self.length)[::-1] % base

    @cached_property
    def places(self) -> np.ndarray:
        """[K, length] the place at which each token of an answer is sampled."""
        answers, base = np.arange(self.vocabulary**self.length)[:, None], self.vocabulary
        before = np.cumsum([0] + [base**t for t in range(self.length - 1)])
        return before + answers // base ** np.arange(1, self.length + 1)[::-1]

    def log_policy(self, logits: np.ndarray) -> np.ndarray:
        """[C, M, V] log-probabilities of the tokens at each place."""
        above = logits - logits.max(-1, keepdims=True)
        return above - np.log(np.exp(above).sum(-1, keepdims=True))

    def answers(self, logits: np.ndarray) -> np.ndarray:
        """[C, K] probabilities of the answers."""
        return np.exp(self.log_policy(logits)[:, self.places, self.tokens].sum(-1))

    def success(self, logits: np.ndarray) -> np.ndarray:
        """[Q] expected reward of each task."""
        return (self.answers(logits)[self.context] * self.rewards).sum(1)

    def gradient(self, logits: np.ndarray, weights_Q: np.ndarray) -> np.ndarray:
        """[C, M, V] exact gradient of `weights_Q @ success` in the logits (the policy gradient theorem)."""
        worth_CK = np.zeros((self.contexts, self.rewards.shape[1]))
        np.add.at(worth_CK, self.context, np.asarray(weights_Q, float)[:, None] * self.rewards)
        earned_CK = self.answers(logits) * worth_CK
        policy, parts = np.exp(self.log_policy(logits)), []
        for t in range(self.length):
            parts.append(earned_CK.reshape(self.contexts, self.vocabulary**t, self.vocabulary, -1).sum(-1))
        earned_CMV = np.concatenate(parts, axis=1)
        return earned_CMV - policy * earned_CMV.sum(-1, keepdims=True)

    def logits_of(self, answers_CK: np.ndarray) -> np.ndarray:
        """[C, M, V] logits of the policy that gives answers these probabilities, all of them positive."""
        parts = []
        for t in range(self.length):
            reach = answers_CK.reshape(self.contexts, self.vocabulary**t, self.vocabulary, -1).sum(-1)
            parts.append(np.log(reach / reach.sum(-1, keepdims=True)))
        return np.concatenate(parts, axis=1)

    def sample(self, logits: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """[Q, n] independent answers to each task."""
        below_QK = self.answers(logits)[self.context].cumsum(1)
        draws_Qn = rng.random((len(self.context), n)) * below_QK[:, -1:]
        return np.stack([np.searchsorted(below, draws) for below, draws in zip(below_QK, draws_Qn, strict=True)])
