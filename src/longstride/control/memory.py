"""Memories: what an agent keeps of the past of an episode, and the windows of transitions that it learns this from.

A memory reads the state of each step and the action before it. Policies and critics are given the state followed by the
memory, so they are the same with a memory and without.

What always holds: a memory begins as zeros in every episode and reads nothing of another one; transitions past the end
of an episode are masked; a memory is trained by the critics of its level, or by the policy where there are none, and
no target network follows it (as the encoder of DrQ-v2, arXiv 2107.09645).
"""

import math
from abc import abstractmethod
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from longstride.control.batches import Batch, NStep
from longstride.control.data import TransitionStore
from longstride.control.envs.base import Spec
from longstride.core.component import Component
from longstride.core.numbers import Count, CountOrZero


class MemoryNets(nn.Module):
    """The network of a memory.

    Args:
        size: M, the numbers that are carried from step to step.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    @abstractmethod
    def forward(self, seen_BUI: Tensor, before_BM: Tensor) -> Tensor:
        """[B, U, M] the memory after each of U steps, from what was seen in them and the memory before the first."""


class Windows(NamedTuple):
    """B windows of T transitions each, among U steps of their episodes."""

    seen_BUI: Tensor
    """What the memory reads from the beginning of the episode or of the burn-in on: the state and the action before."""
    rows: Batch
    """The transitions, [B, T, ...]."""
    at_BT: Tensor
    """The step, of U, that each begins in."""
    next_BT: Tensor
    """The step that each leads to."""
    mask_BT: Tensor
    """Whether a transition is one of the episode; where the episode has ended, it is not."""

    def remembered(self, memory: MemoryNets) -> Batch:
        """The transitions that are not masked, as single ones, each state followed by its memory."""
        memory_BUM = memory(self.seen_BUI, torch.zeros(len(self.seen_BUI), memory.size))
        state, after = (
            torch.cat((state_BTS, memory_BUM.take_along_dim(place_BT[..., None], 1)), -1)
            for state_BTS, place_BT in ((self.rows.state_BS, self.at_BT), (self.rows.next_state_BS, self.next_BT))
        )
        return Batch(*(value[self.mask_BT] for value in self.rows._replace(state_BS=state, next_state_BS=after)))


class Memory(Component):
    """Family: what is kept of the past of an episode. A row of a batch is a window of it."""

    window: Count = 16
    """T, the transitions of a window."""
    burn_in: CountOrZero = 0
    """Steps before a window that are read first, or fewer where the episode began later (R2D2, Kapturowski et al.,
    2019)."""

    @abstractmethod
    def make(self, seen: int, generator: torch.Generator) -> MemoryNets:
        """The network for states and actions of size `seen` together."""

    def windows(
        self,
        data: NStep,
        store: TransitionStore,
        spec: Spec,
        row_B: np.ndarray,
        rng: np.random.Generator,
        return_R: np.ndarray | None = None,
    ) -> Windows:
        """The windows that begin in given rows; for the arguments see `NStep.__call__`. Goals must be those of the
        episodes, or none."""
        last_B1 = store.last[store.episode_of(row_B)][:, None]
        first_B1 = store.first[store.episode_of(row_B)][:, None]
        begin_B1 = np.maximum(first_B1, row_B[:, None] - self.burn_in)
        seen_BU = np.minimum(begin_B1 + np.arange(self.burn_in + self.window + data.steps), last_B1)
        rows_BT = row_B[:, None] + np.arange(self.window)
        taken_BT = np.minimum(rows_BT, last_B1 - 1)
        ahead_BT = np.minimum(data.steps, last_B1 - taken_BT)
        state = data.states(store, seen_BU.ravel(), store.goal[store.episode_of(seen_BU.ravel())])
        before = np.where((seen_BU > first_B1)[..., None], store.action[seen_BU - 1], 0)
        seen = np.concatenate((state.reshape(*seen_BU.shape, -1), before), -1)
        batch = data(store, spec, taken_BT.ravel(), rng, return_R)
        at_BT = torch.from_numpy(taken_BT - begin_B1)
        return Windows(
            torch.from_numpy(seen.astype(np.float32)),
            Batch(*(value.unflatten(0, taken_BT.shape) for value in batch)),
            at_BT,
            at_BT + torch.from_numpy(ahead_BT),
            torch.from_numpy(rows_BT < last_B1),
        )


class GRU(Memory):
    """A gated recurrent unit (arXiv 1406.1078)."""

    size: Count = 64
    """M."""

    def make(self, seen: int, generator: torch.Generator) -> "GRUNets":
        return GRUNets(seen, self.size, generator)


class GRUNets(MemoryNets):
    """See `GRU`."""

    def __init__(self, seen: int, size: int, generator: torch.Generator) -> None:
        super().__init__(size)
        self.unit = nn.GRU(seen, size, batch_first=True)
        with torch.no_grad():
            for p in self.unit.parameters():
                p.uniform_(-1 / math.sqrt(size), 1 / math.sqrt(size), generator=generator)

    def forward(self, seen_BUI: Tensor, before_BM: Tensor) -> Tensor:
        return self.unit(seen_BUI, before_BM[None])[0]
