"""Expected updates on enumerable answers: the mean over all groups that a policy can sample, no sampling anywhere."""

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from longstride.core.trajectory import Trajectory
from longstride.exact.answers import Answers
from longstride.exact.learner import gradient
from longstride.methods import Credit, Loss, Sample
from longstride.methods.base import REFERENCE


def groups(problem: Answers, sampler: np.ndarray, size: int) -> Iterator[tuple[float, list[Trajectory]]]:
    """Every batch of one group of `size` a task, and its probability."""
    tree = problem.tree
    chances_QK, answers = tree.answers(sampler)[tree.context], range(tree.rewards.shape[1])
    for drawn in itertools.product(answers, repeat=len(tree.context) * size):
        answers_QN = np.array(drawn).reshape(len(tree.context), size)
        chance = np.prod([chances_QK[q, k] for q, row in enumerate(answers_QN) for k in row])
        yield float(chance), problem.episodes(sampler, answers_QN)


def ascent(
    problem: Answers,
    logits: np.ndarray,
    credit: Credit | Callable[[Sequence[Trajectory]], list[Sample]],
    loss: Loss,
    size: int,
    sampler: np.ndarray | None = None,
    reference: np.ndarray | None = None,
) -> np.ndarray:
    """[C, M, V] minus the expected gradient of the loss, for groups of `size` answers of `sampler` (the policy itself
    if left out)."""
    total, tree = np.zeros(problem.tree.shape), problem.tree
    for chance, episodes in groups(problem, logits if sampler is None else sampler, size):
        samples = credit(episodes)
        if reference is not None:
            for s in samples:
                s.streams[REFERENCE] = logprobs(problem, reference, s)
        if loss.depends_on_policy:
            samples = list(loss.reweigh(samples, [logprobs(problem, logits, s) for s in samples]))
        total -= chance * gradient(tree, logits, samples, loss)
    return total


def logprobs(problem: Answers, logits: np.ndarray, sample: Sample) -> list[float]:
    """Log-probabilities of a sample's tokens."""
    tree, context = problem.tree, problem.tree.context[sample.prompt_ids[0]]
    answer = int(np.dot(sample.sampled_ids, tree.vocabulary ** np.arange(tree.length)[::-1]))
    return tree.log_policy(logits)[context, tree.places[answer], tree.tokens[answer]].tolist()
