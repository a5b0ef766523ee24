"""Weights: what of the data counts more than the rest, whatever the method that learns from it.

Episodes are weighed when batches are drawn (`EpisodeWeights`). Rows are weighed by networks that learn beside the agent
(`RowWeights`): a batch is drawn evenly, and what critics and policy learn from is drawn anew from it, with the weights
as probabilities. So no loss has to know of weights, and in expectation each is the weighted sum of its rows.
"""

from abc import abstractmethod
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from longstride.control.batches import Batch
from longstride.control.data import TransitionStore
from longstride.control.noise import RunNoise
from longstride.core.component import Component


class EpisodeWeights(Component):
    """Family: which episodes of a store are drawn more often than others."""

    @abstractmethod
    def __call__(self, store: TransitionStore) -> np.ndarray:
        """[E] how much each step of an episode weighs; at least 0, not all of them."""


class RowWeights(Component):
    """Family: how much each row of a batch counts, by networks that are trained with the critics' rate."""

    side_by_side: ClassVar[bool] = False
    """Whether it knows an axis of runs before B (see `Batch`). A class says so for itself."""

    @abstractmethod
    def make(self, state: int, action: int, generator: torch.Generator) -> nn.Module:
        """Networks for states of size `state` and actions of size `action`."""

    @abstractmethod
    def shares(self, nets: nn.Module, batch: Batch) -> Tensor:
        """[B] weights of the rows, which sum to 1."""

    @abstractmethod
    def loss(self, nets: nn.Module, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of the networks, a scalar, and metrics. `batch.return_B` is the reward of each row in units of the
        deviation of all rewards of its store."""


def unit_rewards(store: TransitionStore) -> np.ndarray:
    """[R] rewards divided by their standard deviation over all steps; as they are where all are the same."""
    step_R = np.ones(store.rows, bool)
    step_R[store.last] = False
    deviation = float(store.reward[step_R].std(dtype=float))
    return store.reward / (deviation or 1.0)


def drawn_anew(share_B: Tensor, noise: RunNoise) -> Tensor:
    """[B] numbers of rows, drawn with replacement with probabilities `share_B`."""
    return noise.choice(share_B.unsqueeze(-2), share_B.shape[-1]).squeeze(-2)
