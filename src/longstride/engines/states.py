"""States of rows that are decoded together, in transformers' own caches: rows join and leave.

What always holds: rows stand to the right, and what stands before a shorter one is padding; where the longest leaves,
what is padding for all goes too. Only layers whose every tensor is known are joined: keys and values, whole or of a
window, and the states of recurrences and convolutions, which have no length. Nothing here knows of tokens or models.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from longstride.core.errors import ModelError

KNOWN = frozenset(
    (
        "DummyLayer",
        "DynamicLayer",
        "DynamicSlidingWindowLayer",
        "LinearAttentionLayer",
        "LinearAttentionAndFullAttentionLayer",
        "LinearAttentionAndSlidingWindowAttentionLayer",
    )
)
"""Layers of caches that can be joined, by name: which of them there are depends on the version of transformers."""
STATES = "conv_states", "recurrent_states"


def size_of(cache: Any) -> int:
    """Bytes of its tensors."""
    tensors = (t for layer in cache.layers for t in _tensors(layer))
    return sum(t.numel() * t.element_size() for t in tensors)


def select(cache: Any, rows: Sequence[int], device: torch.device) -> None:
    """Keeps these rows, in this order; a row may be named several times."""
    cache.reorder_cache(torch.tensor(rows, device=device))


def shorten(cache: Any, cut: int) -> None:
    """Takes away the first `cut` positions, which are padding for all rows."""
    for layer in cache.layers:
        if (length := _length(layer)) is not None:
            _set_keys(layer, length - cut)


def join(cache: Any, other: Any) -> None:
    """Appends the rows of another cache of the same model.

    Raises:
        ModelError: a layer is not known.
    """
    for mine, theirs in zip(cache.layers, other.layers, strict=True):
        if type(mine).__name__ not in KNOWN or type(mine) is not type(theirs):
            raise ModelError(f"rows of a {type(mine).__name__} cannot be joined")
        if (length := _length(mine)) is not None:
            length = max(length, _length(theirs) or 0)
            for layer in (mine, theirs):
                _set_keys(layer, length)
            mine.keys, mine.values = (torch.cat([getattr(x, n) for x in (mine, theirs)]) for n in ("keys", "values"))
        for name in STATES:
            states: dict[int, Tensor | None] = getattr(mine, name, {})
            for k, state in states.items():
                if state is not None:
                    states[k] = torch.cat([state, getattr(theirs, name)[k]])


def _length(layer: Any) -> int | None:
    """Positions of the rows of a layer with keys and values; None for any other."""
    return layer.get_seq_length() if getattr(layer, "keys", None) is not None else None


def _set_keys(layer: Any, length: int) -> None:
    """Gives a layer's rows so many positions, by taking away or padding in front."""
    window = getattr(layer, "sliding_window", None)
    stored = length if window is None else min(length, window - 1)
    more = stored - layer.keys.shape[-2]
    for name in ("keys", "values"):
        setattr(layer, name, F.pad(getattr(layer, name), (0, 0, more, 0)))
    if window is not None:
        layer.cumulative_length = length


def _tensors(layer: Any) -> Iterator[Tensor]:
    for value in vars(layer).values():
        yield from (t for t in (value.values() if isinstance(value, dict) else [value]) if isinstance(t, Tensor))
