"""Codes: real-valued actions as one of K, so that what is made for discrete actions learns and acts with them.

What always holds: a code is a row of K zeros with a one, as any discrete action; codes learn in phases that clone
(`TrainingPhase.cloning`) and stay as they are in all others, so a code means the same to values that are learned of it.
"""

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from longstride.control.batches import Batch
from longstride.core.component import Component
from longstride.core.numbers import Count


class CodeNets(nn.Module):
    """The networks of codes."""

    @abstractmethod
    def encode(self, state_BS: Tensor, action_BA: Tensor) -> Tensor:
        """[B, K] codes of [B, A] actions."""

    @abstractmethod
    def decode(self, state_BS: Tensor, code_BK: Tensor) -> Tensor:
        """[B, A] actions of [B, K] codes."""

    @abstractmethod
    def loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch with real-valued actions, a scalar, and metrics."""


class ActionCodes(Component):
    """Family: how actions become codes and codes actions."""

    side_by_side: ClassVar[bool] = False
    """Whether it knows an axis of runs before B (see `Batch`). A class says so for itself: what inherits from it may
    compute otherwise."""

    count: Count = 64
    """K."""

    @abstractmethod
    def make(self, state: int, action: int, generator: torch.Generator) -> CodeNets:
        """Networks for states of size `state` and actions of size `action`."""
