"""The micro-batches of a step, shared among threads.

What always holds: every thread has gradients of its own, which are added up in the order of threads, so the numbers
depend on how many threads there are and on nothing else.
"""

import copy
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import torch
from torch import nn

from longstride.learner.batching import MicroBatch
from longstride.learner.config import LearnerConfig
from longstride.learner.likelihood import Likelihood
from longstride.learner.parallel import balance

T = TypeVar("T")


class Threads:
    """Models on the very same weights, one a thread.

    Args:
        likelihood: the learner's own, which the first thread uses.
        config: of the others.
        number: of threads.
    """

    def __init__(self, likelihood: Likelihood, config: LearnerConfig, number: int) -> None:
        self._likelihoods = [
            likelihood, *(Likelihood(_twin(likelihood.model), config) for _ in range(1, number))
        ]  # fmt: skip

    def __call__(
        self, work: Callable[[Likelihood, Any], list[T]], passes: Sequence[tuple[MicroBatch, bool]]
    ) -> list[T]:
        """Does the work of a step. The threads share the passes by their size; gradients are those of all."""
        shares = balance([batch.ids_B_L.numel() for batch, _ in passes], len(self._likelihoods))
        with ThreadPoolExecutor(len(shares), initializer=torch.set_num_threads, initargs=(1,)) as threads:
            parts = list(threads.map(work, self._likelihoods, [[passes[k] for k in share] for share in shares]))
        first, *others = [likelihood.model for likelihood in self._likelihoods]
        for twin in others:
            for mine, theirs in zip(first.parameters(), twin.parameters(), strict=True):
                if theirs.grad is not None:
                    mine.grad = theirs.grad if mine.grad is None else mine.grad.add_(theirs.grad)
                    theirs.grad = None
        return [done for part in parts for done in part]


def _twin(model: nn.Module) -> nn.Module:
    """A model on the very same weights, with gradients of its own."""
    return copy.deepcopy(model, {id(p): nn.Parameter(p.detach(), p.requires_grad) for p in model.parameters()})
