"""Attention over per-session keys and values, plugged into Hugging Face models through their attention interface.

A forward pass takes the new tokens of all its rows as one packed sequence of shape (1, N): no padding reaches a linear
layer, and one code path serves prompts and decoding. The model hands queries, keys and values of each layer to
`attend`, together with the pass's `Layout`, which says where each token belongs. What always holds: a token sees the
tokens of its own row at its own and smaller positions (within the layer's window) and no others; keys and values of
grouped heads are never expanded (the query heads of a group become query rows); nothing here knows of token ids,
sessions or sampling.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AttentionInterface

from longstride.core.errors import ModelError

NAME = "longstride"
"""Name under which the attention is registered."""
DENSE = 0.5
"""Share of a range of slots from which on it is read in place, idle slots included, rather than copied."""


class KeyValueStore:
    """Keys and values of `slots` rows and `capacity` positions, a pair of buffers for each layer.

    Buffers have shape (slots, capacity, heads of keys and values, head size), and are made when a layer first writes.
    """

    def __init__(self) -> None:
        self.slots, self.capacity = 0, 0
        self._layers: dict[int, tuple[Tensor, Tensor]] = {}

    @property
    def bytes_per_token(self) -> int:
        """Bytes of one position of one slot in all layers; 0 before the first pass."""
        return sum(b.element_size() * b.shape[2] * b.shape[3] for pair in self._layers.values() for b in pair)

    def resize(self, slots: int, capacity: int, keep: Sequence[int]) -> None:
        """Makes room for `slots` x `capacity`; what stood in slot `keep[i]` then stands in slot i."""
        for i, (keys, values) in self._layers.items():  # layer by layer: twice the memory of one, not of all
            self._layers[i] = (_moved(keys, slots, capacity, keep), _moved(values, slots, capacity, keep))
        self.slots, self.capacity = slots, capacity

    def write(self, layer: int, at_N: Tensor, keys_N: Tensor, values_N: Tensor) -> tuple[Tensor, Tensor]:
        """Writes (N, heads, size) at flat places slot * capacity + position; returns the layer's buffers."""
        if layer not in self._layers:
            k, v = (x.new_zeros(self.slots, self.capacity, *x.shape[1:]) for x in (keys_N, values_N))
            self._layers[layer] = (k, v)
        keys, values = self._layers[layer]
        keys.flatten(0, 1).index_copy_(0, at_N, keys_N)
        values.flatten(0, 1).index_copy_(0, at_N, values_N)
        return keys, values


def _moved(old: Tensor, slots: int, capacity: int, keep: Sequence[int]) -> Tensor:
    new = old.new_zeros(slots, capacity, *old.shape[2:])
    n = min(capacity, old.shape[1])
    new[: len(keep), :n] = old[torch.as_tensor(keep, dtype=torch.long, device=old.device), :n]
    return new


class Layout:
    """Where the N packed tokens of one forward pass belong.

    Args:
        store: the buffers.
        slots: slot of each row, shape (R,), each at most once.
        starts: position of each row's first new token, shape (R,).
        counts: new tokens of each row, shape (R,), each at least 1.
        device: of the model.
    """

    def __init__(
        self, store: KeyValueStore, slots: np.ndarray, starts: np.ndarray, counts: np.ndarray, device: torch.device
    ) -> None:
        self._store, self._masks = store, {}
        rows, width = len(slots), int(counts.max())
        offset_R = np.cumsum(counts) - counts
        row_N = np.repeat(np.arange(rows), counts)
        place_N = np.arange(counts.sum()) - offset_R[row_N]
        position_N = starts[row_N] + place_N
        low, high = int(slots.min()), int(slots.max()) + 1
        if rows > DENSE * (
            high - low
        ):  # read the range in place: row r is slot low + r, and idle slots repeat the first token's query
            first_R, last_R = np.zeros(high - low, np.int64), np.zeros(high - low, np.int64)
            first_R[slots - low], last_R[slots - low] = offset_R, offset_R + counts - 1
            row_N = slots[row_N] - low
            self._rows: slice | Tensor = slice(low, high)
        else:
            first_R, last_R = offset_R, offset_R + counts - 1
            self._rows = torch.from_numpy(slots).to(device)
        # rows shorter than the widest repeat their last token
        index_R_Q = np.minimum(first_R[:, None] + np.arange(width), last_R[:, None])
        self.last_R = torch.from_numpy(offset_R + counts - 1).to(device)
        """Index of each row's last token among the N."""
        self.position_N = torch.from_numpy(position_N).to(device)
        self._at_N = torch.from_numpy(slots.repeat(counts) * store.capacity + position_N).to(device)
        self._index_R_Q = torch.from_numpy(index_R_Q).to(device)
        self._out_N = torch.from_numpy(row_N * width + place_N).to(device)
        self._whole = bool(index_R_Q.size == len(row_N) and (index_R_Q.ravel() == np.arange(len(row_N))).all())
        self._length = int((starts + counts).max())

    def write(self, layer: int, keys_N: Tensor, values_N: Tensor) -> tuple[Tensor, Tensor]:
        """Stores the new keys and values; returns those of all rows as (R, length, heads, size)."""
        keys, values = self._store.write(layer, self._at_N, keys_N, values_N)
        keys, values = keys[:, : self._length], values[:, : self._length]
        if isinstance(self._rows, slice):
            return keys[self._rows], values[self._rows]
        return keys.index_select(0, self._rows), values.index_select(0, self._rows)

    def by_row(self, packed_N: Tensor) -> Tensor:
        """(N, ...) as (R, Q, ...)."""
        if self._whole:
            return packed_N.unflatten(0, tuple(self._index_R_Q.shape))
        return packed_N.index_select(0, self._index_R_Q.flatten()).unflatten(0, tuple(self._index_R_Q.shape))

    def packed(self, by_row_R_Q: Tensor) -> Tensor:
        """(R, Q, ...) as (N, ...)."""
        flat = by_row_R_Q.flatten(0, 1)
        return flat if self._whole else flat.index_select(0, self._out_N)

    def mask(self, group: int, window: int | None, like: Tensor) -> Tensor:
        """What is added to the scores, shape (R, 1, Q * group, length): minus infinity where a token must not look."""
        key = (group, window)
        if key not in self._masks:
            query_R_Q_1 = self.position_N[self._index_R_Q].repeat_interleave(group, 1).unsqueeze(2)
            place = torch.arange(self._length, device=like.device)
            hidden = place > query_R_Q_1
            if window is not None:
                hidden |= place <= query_R_Q_1 - window
            self._masks[key] = like.new_zeros(hidden.shape).masked_fill_(hidden, -torch.inf).unsqueeze(1)
        return self._masks[key]


def attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    layout: Layout | None = None,
    sliding_window: int | None = None,
    **more: object,
) -> tuple[Tensor, None]:
    """Attention of one layer for packed queries (1, heads, N, size) and new keys and values (1, kv heads, N, size).

    Returns:
        outputs of shape (1, N, heads, size), and None for the weights.

    Raises:
        ModelError: the architecture asks for something that this attention does not do.
    """
    strange = [name for name in ("softcap", "s_aux", "position_bias", "head_mask") if more.get(name) is not None]
    if layout is None or attention_mask is not None or strange:
        raise ModelError(
            f"the local engine cannot run {type(module).__name__}: it asks for {', '.join(strange) or 'its own mask'}"
        )
    keys, values = layout.write(module.layer_idx, key[0].transpose(0, 1), value[0].transpose(0, 1))
    query_R_Q = layout.by_row(query[0].transpose(0, 1))  # (R, Q, heads, size)
    heads, kv_heads, size = query_R_Q.shape[2], keys.shape[2], query_R_Q.shape[3]
    group = heads // kv_heads
    # (R, kv heads, Q * group, size): one matrix product serves all query heads that share a key head
    rows = query_R_Q.unflatten(2, (kv_heads, group)).transpose(1, 2).flatten(2, 3)
    keys, values = keys.transpose(1, 2), values.transpose(1, 2)
    scale = size**-0.5 if scaling is None else scaling
    out = nn.functional.scaled_dot_product_attention(
        rows, keys, values, attn_mask=layout.mask(group, sliding_window, rows), scale=scale
    )
    out = out.unflatten(2, (-1, group)).transpose(1, 2).flatten(2, 3)
    return layout.packed(out).unsqueeze(0), None


AttentionInterface.register(NAME, attend)
