"""Enumerable answers as a problem: tasks whose success is computed, and the learner that answers all of them.

The policy is a table (`exact.worlds.answers`), so a run takes seconds and a claim can have fifty seeds. Measures are
exact; only training samples. A right answer earns 1, a wrong one 0. A seed draws the policy at the start and the samples.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated

import numpy as np
from pydantic import Field

from longstride.core.budget import Budget, StopReason
from longstride.core.errors import ConfigError
from longstride.core.numbers import Count, Weight
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory, Turn
from longstride.exact.experiment import State
from longstride.exact.learner import TableLearner, Tabulated
from longstride.exact.worlds.answers import AnswerTree

DECOY = 0.5
"""What an answer earns that is good and not right."""
Chance = Annotated[float, Field(gt=0, lt=1)]
SEEDS = tuple(range(100, 140))
"""Of claims; settings were chosen with seeds 0 to 9."""


class Answers(Tabulated):
    """Tasks of known difficulty. Measures: `success` (mean over tasks), `pass@k`, `entropy` of answers in nats."""

    tasks: Annotated[tuple[tuple[Chance, ...], ...], Field(min_length=1)]
    """By context, the chance that the policy at the start gives a right answer to each of its tasks. The policy cannot
    tell tasks of one context apart; their right answers differ."""
    vocabulary: Annotated[int, Field(ge=2)] = 16
    """Tokens to choose from."""
    length: Count = 1
    """Tokens of an answer."""
    right: Count = 1
    """Right answers of a task."""
    spread: Weight = 1.0
    """Deviation of the logits at the start, within right and within wrong answers."""
    decoy: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """The chance that the policy at the start gives an answer that earns `DECOY` in all tasks of its context, and is not
    right; 0 is no such answer."""
    attempts: tuple[Count, ...] = (16,)
    """The k of `pass@k`."""

    @property
    def tree(self) -> AnswerTree:
        return _tree(tuple(map(len, self.tasks)), self.vocabulary, self.length, self.right, self.decoy > 0)

    def begin(self, rng: np.random.Generator) -> np.ndarray:
        """Logits of a random policy with the given chances."""
        tree, answers = self.tree, []
        free = tree.log_policy(self.spread * rng.normal(size=tree.shape))
        for c, chances in enumerate(self.tasks):
            shares = [*chances, *[self.decoy] * (self.decoy > 0)]
            if (rest := 1 - sum(shares)) <= 0:
                raise ConfigError(f"the chances of the answers of one context must add up to less than 1, got {shares}")
            p_K, rewards = np.exp(free[c, tree.places, tree.tokens].sum(-1)), tree.rewards[tree.context == c]
            sets = [*(rewards == 1), *(rewards[:1] == DECOY)[: self.decoy > 0], (rewards == 0).all(0)]
            answers.append(sum(share * p_K * of / (p_K @ of) for share, of in zip([*shares, rest], sets, strict=True)))
        return tree.logits_of(np.stack(answers))

    def play(self, logits: np.ndarray, group: int, rng: np.random.Generator) -> list[Trajectory]:
        """A group of answers to every task."""
        return self.episodes(logits, self.tree.sample(logits, group, rng))

    def episodes(self, logits: np.ndarray, answers_QN: np.ndarray) -> list[Trajectory]:
        """The single-turn episodes in which a policy gave these answers; what was read is the number of the task."""
        log_policy = self.tree.log_policy(logits)
        drawn = [(q, int(k)) for q, answers_N in enumerate(answers_QN) for k in answers_N]
        return [self.episode(log_policy, self.task(q), k, n, q) for n, (q, k) in enumerate(drawn)]

    def task(self, q: int) -> Task:
        """The task of this number."""
        return Task(id=f"task-{q}", source="exact", goal="", start="")

    def episode(
        self, log_policy: np.ndarray, task: Task, answer: int, ordinal: int, group: int, given: int = 0
    ) -> Trajectory:
        """The episode in which the policy gave an answer, whose first `given` tokens were there before it: what was read
        is the number of the task and these."""
        tree, q = self.tree, int(task.id.rpartition("-")[2])
        tokens_T = tree.tokens[answer]
        logp_T = log_policy[tree.context[q], tree.places[answer], tokens_T]
        ids, logp, reward = tokens_T.tolist(), logp_T.tolist()[given:], float(tree.rewards[q, answer])
        turn = Turn([q, *ids[:given]], ids[given:], logp, [0] * len(logp), "", "", "answer", reward=reward, given=given)
        episode = Trajectory(task, ordinal, 0, Budget(), [turn], StopReason.ANSWERED, reward=reward, group=group)
        episode.success = reward == 1
        return episode

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        p_CK = self.tree.answers(solution["logits"])
        p_Q = (p_CK[self.tree.context] * (self.tree.rewards == 1)).sum(1).clip(0, 1)
        entropy = -(p_CK * np.log(p_CK.clip(1e-300))).sum(1).mean()
        return {
            "success": float(p_Q.mean()),
            **{f"pass@{k}": float((1 - (1 - p_Q) ** k).mean()) for k in self.attempts},
            "entropy": float(entropy),
        }


@cache
def _tree(sizes: tuple[int, ...], vocabulary: int, length: int, right: int, decoy: bool) -> AnswerTree:
    """Right answers lie in an order that is shuffled once and for all, so they share beginnings only by chance."""
    answers = vocabulary**length
    if max(sizes) * right + decoy >= answers:
        raise ConfigError(f"{max(sizes)} tasks of {right} right answers leave no wrong one of {answers}")
    rewards, order = np.zeros((sum(sizes), answers)), np.random.default_rng(0).permutation(answers)
    places = [k for size in sizes for k in range(size)]
    for q, k in enumerate(places):
        rewards[q, order[k * right : (k + 1) * right]] = 1
    if decoy:
        rewards[:, order[-1]] = DECOY
    return AnswerTree(rewards, np.repeat(np.arange(len(sizes)), sizes), vocabulary, length)


class Grouped(TableLearner[Answers]):
    """Groups of answers to every task."""

    def collect(self, problem: Answers, logits: np.ndarray, state: State, rng: np.random.Generator) -> list[Trajectory]:
        return problem.play(logits, self.group, rng)
