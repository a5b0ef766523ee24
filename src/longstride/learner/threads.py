"""Threads that share the micro-batches of a step, where a pass is one native call that leaves other threads alone.

What always holds: which thread computes a micro-batch depends on the micro-batches and the number of threads alone, and
gradients are summed in the order of the threads, so a step has the same bits whatever the timing.
"""

import copy
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import torch
from torch import nn

from longstride.learner.batching import MicroBatch
from longstride.learner.config import LearnerConfig
from longstride.learner.likelihood import TokenLikelihood
from longstride.learner.parallel import balance

T = TypeVar("T")
Pass = tuple[MicroBatch, bool]


def crew(first: TokenLikelihood, config: LearnerConfig) -> list[TokenLikelihood]:
    """What computes in each thread: the first, and others on the same weights with gradients of their own."""
    threads = config.settled().threads
    return [first, *(TokenLikelihood(_twin(first.model), config) for _ in range(1, int(threads)))]


def shared_out(
    work: Callable[[TokenLikelihood, Any], list[T]], crew: Sequence[TokenLikelihood], passes: list[Pass]
) -> list[T]:
    """Shares the passes out by their size, does the work of each thread, and sums the gradients up in the first's
    model; returns what was done, thread by thread."""
    shares = balance([batch.ids_B_L.numel() for batch, _ in passes], len(crew))
    before = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(len(crew), initializer=torch.set_num_threads, initargs=(1,)) as threads:
            parts = list(threads.map(work, crew, [[passes[k] for k in share] for share in shares]))
    finally:
        torch.set_num_threads(before)  # threads that are made later begin with what any set last
    for twin in crew[1:]:
        for mine, theirs in zip(crew[0].model.parameters(), twin.model.parameters(), strict=True):
            if theirs.grad is not None:
                mine.grad = theirs.grad if mine.grad is None else mine.grad.add_(theirs.grad)
                theirs.grad = None
    return [done for part in parts for done in part]


def _twin(model: nn.Module) -> nn.Module:
    """A model on the very same weights."""
    return copy.deepcopy(model, {id(p): nn.Parameter(p.detach(), p.requires_grad) for p in model.parameters()})
