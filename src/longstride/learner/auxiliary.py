"""Losses that a model has of its own, such as those of the gates of experts: a learner adds them to what it minimises.

They are of all rows of a step at once (how evenly tokens are spread, which rows are of one task), so such a model is
trained in rows that do not branch, a step is one pass, and one process makes it; anything else is refused.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from longstride.core.errors import ConfigError
from longstride.learner.batching import MicroBatch
from longstride.methods.base import Sample


@runtime_checkable
class HasLosses(Protocol):
    """A model with losses of its own (`models.experts.LlamaExperts`)."""

    def watched(self, noise: int | None) -> AbstractContextManager[None]:
        """Within it, passes keep what `losses` needs, and draw noise of this seed, if any."""
        ...

    def losses(self, counted_B_L: Tensor, pair_B: Tensor) -> tuple[Tensor, dict[str, float]]:
        """Of the last pass: what is added to the loss of the step, and what it is made of, by name.

        Args:
            counted_B_L: which tokens are no padding.
            pair_B: of each row, `Sample.pair`; rows of one number, 0 or above, are of one task.
        """
        ...

    def stepped(self) -> None:
        """To be called after each optimiser step."""
        ...


def own_losses(model: HasLosses, batch: MicroBatch, samples: Sequence[Sample]) -> tuple[Tensor, dict[str, float]]:
    """`HasLosses.losses` of a pass over rows of these samples."""
    rows, length = batch.ids_B_L.shape
    row_P, place_P = batch.at_P // length, batch.at_P % length
    last_B = place_P.new_zeros(rows).scatter_reduce(0, row_P, place_P, "amax")
    counted_B_L = torch.arange(length, device=last_B.device) <= last_B[:, None]
    pair_P = torch.tensor([samples[n].pair for n in batch.sequence_P.tolist()], device=last_B.device)
    return model.losses(counted_B_L, pair_P.new_zeros(rows).scatter(0, row_P, pair_P))


def in_one_pass(batches: Sequence[tuple[MicroBatch, bool]], model: HasLosses) -> None:
    """Refuses a step that takes several passes.

    Raises:
        ConfigError: it does; the message says what has to be set.
    """
    if len(batches) > 1:
        shapes = [batch.ids_B_L.shape for batch, _ in batches]
        tokens = sum(rows for rows, _ in shapes) * max(length for _, length in shapes)
        raise ConfigError(
            f"the losses of {type(model).__name__} are of a whole step, and this one takes {len(batches)} passes: set "
            f"micro_tokens of the learner to {tokens} or more, or a smaller batch_samples"
        )
