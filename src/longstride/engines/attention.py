"""Attention over per-session keys and values, plugged into Hugging Face models through their attention interface.

A forward pass takes the new tokens of all its rows as one packed sequence of shape (1, N): no padding reaches a linear
layer, and one code path serves prompts and decoding. The model passes queries, keys and values of each layer to
`attend`, together with the pass's `Layout`, which says where each token belongs. What always holds: a token sees the
tokens of its own row at its own and smaller positions (within the layer's window) and no others; keys and values of
grouped heads are never expanded (the query heads of a group become query rows); nothing here knows of token ids,
sessions or sampling.
"""

import mmap
from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AttentionInterface

from longstride.core.errors import ModelError

NAME = "longstride"
"""Name under which the attention is registered."""
SCORES = 1 << 24
"""Attention scores (slots x queries x keys) of one call at most."""
QUERIES = {"cpu": 128, "cuda": 512}
"""Queries of a prompt that go through one call: keys behind the last of them are not even looked at."""
CALL = {"cpu": 1024, "cuda": 1 << 20}
"""What a call costs beside its scores, counted in scores."""
READ = 4
"""What reading a key and its value costs, counted in scores: single queries are as slow as memory is."""


class KeyValueStore:
    """Keys and values of `slots` rows and `capacity` positions, a pair of buffers for each layer.

    Buffers have shape (slots, capacity, heads of keys and values, head size), and are made when a layer first writes.
    Places that hold nothing are zero or old, never infinite: what is hidden from a query must still be a number. On a
    CPU they take no memory before they are written.
    """

    def __init__(self, slots: int = 0, capacity: int = 0) -> None:
        self.slots, self.capacity = slots, capacity
        self._layers: dict[int, tuple[Tensor, Tensor]] = {}

    @property
    def bytes_per_token(self) -> int:
        """Bytes of one position of one slot in all layers; 0 before the first pass."""
        return sum(b.element_size() * b.shape[2] * b.shape[3] for pair in self._layers.values() for b in pair)

    def resize(self, slots: int, capacity: int, keep: Sequence[tuple[int, int]]) -> None:
        """Makes room for `slots` x `capacity`; the first `keep[i][1]` positions of slot `keep[i][0]` become those of
        slot i."""
        for i, (keys, values) in self._layers.items():  # layer by layer: twice the memory of one, not of all
            self._layers[i] = (_moved(keys, slots, capacity, keep), _moved(values, slots, capacity, keep))
        self.slots, self.capacity = slots, capacity

    def copy(self, source: int, target: int, begin: int, end: int) -> None:
        """Copies positions `begin` to `end` of one slot to another."""
        for buffer in self._buffers():
            buffer[target, begin:end] = buffer[source, begin:end]

    def clear(self, slot: int) -> None:
        """Sets a slot to zero."""
        for buffer in self._buffers():
            buffer[slot] = 0

    def write(self, layer: int, at_N: Tensor, keys_N: Tensor, values_N: Tensor) -> tuple[Tensor, Tensor]:
        """Writes (N, heads, size) at flat places slot * capacity + position; returns the layer's buffers."""
        keys, values = self.layer(layer, keys_N, values_N)
        keys.flatten(0, 1).index_copy_(0, at_N, keys_N)
        values.flatten(0, 1).index_copy_(0, at_N, values_N)
        return keys, values

    def layer(self, layer: int, keys_N: Tensor, values_N: Tensor) -> tuple[Tensor, Tensor]:
        """The layer's buffers, for keys and values like these (N, heads, size)."""
        if layer not in self._layers:
            k, v = (_zeros(x, self.slots, self.capacity, *x.shape[1:]) for x in (keys_N, values_N))
            self._layers[layer] = (k, v)
        return self._layers[layer]

    def _buffers(self) -> Iterator[Tensor]:
        return (buffer for pair in self._layers.values() for buffer in pair)


def _moved(old: Tensor, slots: int, capacity: int, keep: Sequence[tuple[int, int]]) -> Tensor:
    new = _zeros(old, slots, capacity, *old.shape[2:])
    for i, (slot, count) in enumerate(keep):
        new[i, :count] = old[slot, :count]
    return new


def _zeros(like: Tensor, *shape: int) -> Tensor:
    if like.device.type != "cpu":
        return like.new_zeros(shape)
    memory = mmap.mmap(-1, prod(shape) * like.element_size(), access=mmap.ACCESS_COPY)
    return torch.frombuffer(memory, dtype=like.dtype).view(shape)


class Piece(NamedTuple):
    """Tokens of one slot at positions `start` to `start + count`."""

    slot: int
    start: int
    count: int


class SharedStart(NamedTuple):
    """Neighbouring pieces of one token whose slots begin with the same keys and values."""

    pieces: int
    length: int
    """Positions that begin all of them; at most their starts."""


class Layout:
    """Where the N packed tokens of one forward pass belong.

    Args:
        store: the buffers.
        pieces: what the pass encodes, in the order of the packed tokens; each slot at most once.
        device: of the model.
        shared: groups that the first pieces make, without a gap. Their beginnings are read once, except in layers with
            a window.
    """

    def __init__(
        self, store: KeyValueStore, pieces: Sequence[Piece], device: torch.device, shared: Sequence[SharedStart] = ()
    ) -> None:
        slots, starts, counts = np.array(pieces).T
        offset_R = np.cumsum(counts) - counts
        place_N = np.arange(counts.sum()) - offset_R.repeat(counts)
        position_N = starts.repeat(counts) + place_N
        self._store = store
        self.last_R = offset_R + counts - 1
        """Index of each piece's last token among the N."""
        self.position_N = torch.from_numpy(position_N).to(device)
        self.at_N = torch.from_numpy(slots.repeat(counts) * store.capacity + position_N).to(device)
        """Flat place of each token: slot * capacity + position."""
        self._pieces, self._shared = pieces, shared
        self._parts: dict[bool, list[_Part | _Trunks]] = {}

    def _plan(self, windowed: bool) -> "list[_Part | _Trunks]":
        """The calls of a layer."""
        if windowed not in self._parts:
            device = self.position_N.device
            queries, call = (size.get(device.type, size["cuda"]) for size in (QUERIES, CALL))
            grouped = 0 if windowed else sum(group.pieces for group in self._shared)
            parts: list[_Part | _Trunks] = []
            if grouped:
                parts.append(_Trunks(self._pieces[:grouped], self._shared, self._store.capacity, device))
            rest = self._pieces[grouped:]
            blocks = (Piece(s, a + i, min(queries, n - i)) for s, a, n in rest for i in range(0, n, queries))
            begin = grouped
            for together in _joined(blocks, call):
                parts.append(_Part(together, begin, self.position_N))
                begin = parts[-1].end
            self._parts[windowed] = parts
        return self._parts[windowed]

    def attend(
        self, layer: int, query_N: Tensor, key_N: Tensor, value_N: Tensor, scale: float, window: int | None
    ) -> Tensor:
        """Stores new keys and values (N, kv heads, size); answers queries (N, heads, size) with all that they see."""
        keys, values = (x.transpose(1, 2) for x in self._store.write(layer, self.at_N, key_N, value_N))
        query_N = query_N.unflatten(1, (keys.shape[1], -1))
        out_N = query_N.new_empty(*query_N.shape[:3], values.shape[3])
        for part in self._plan(window is not None):
            part.attend(out_N, query_N, keys, values, scale, window)
        return out_N.flatten(1, 2)


class _Trunks:
    """Single queries of groups whose slots begin alike: queries of a group meet their common beginning in one matrix
    product, as in Hydragen (Juravsky et al. 2024, arXiv 2402.05099), and what follows it row by row. One
    softmax goes over both."""

    def __init__(
        self, pieces: Sequence[Piece], groups: Sequence[SharedStart], capacity: int, device: torch.device
    ) -> None:
        slots, starts, _ = np.array(pieces).T
        ends = np.cumsum([group.pieces for group in groups])
        begins = np.repeat([group.length for group in groups], [group.pieces for group in groups])
        rest = np.arange((starts - begins).max() + 1)
        place_R_S = np.minimum(begins[:, None] + rest, starts[:, None])
        self.end = len(pieces)
        self._rest, self._longest = len(rest), int(begins.max())
        self._index = torch.from_numpy((slots[:, None] * capacity + place_R_S).ravel()).to(device)
        self._beyond_R_S = torch.from_numpy(rest > (starts - begins)[:, None]).to(device)
        self._groups = [
            (int(end) - group.pieces, int(end), pieces[int(end) - 1].slot, group.length)
            for end, group in zip(ends, groups, strict=True)
        ]
        """First and last row, the slot whose beginning is read, and its length."""

    def attend(
        self, out_N: Tensor, query_N: Tensor, keys: Tensor, values: Tensor, scale: float, window: int | None
    ) -> None:
        """Fills in the outputs of the groups' rows, as `_Part.attend` does; there is no window."""
        rows, rest, (kv_heads, group, size) = self.end, self._rest, query_N.shape[1:]
        query = query_N[:rows].transpose(0, 1).reshape(kv_heads, -1, size) * scale
        key_R_S, value_R_S = (
            x.transpose(1, 2).flatten(0, 1).index_select(0, self._index).unflatten(0, (rows, rest))
            for x in (keys, values)
        )
        scores = query.new_full((kv_heads, rows * group, rest + self._longest), -torch.inf)
        by_row = scores.view(kv_heads, rows, group, -1)[..., :rest]
        for head in range(kv_heads):
            by_row[head] = torch.bmm(query[head].view(rows, group, size), key_R_S[:, :, head].transpose(1, 2))
        by_row.masked_fill_(self._beyond_R_S.unsqueeze(1), -torch.inf)
        shared = [(slice(b * group, e * group), slice(rest, rest + n), slot, n) for b, e, slot, n in self._groups]
        for these, places, slot, n in shared:
            torch.bmm(query[:, these], keys[slot, :, :n].transpose(1, 2), out=scores[:, these, places])
        weights = scores.softmax(-1, dtype=torch.float32).to(values.dtype)
        answer = query.new_empty(kv_heads, rows * group, values.shape[3])
        for these, places, slot, n in shared:
            torch.bmm(weights[:, these, places], values[slot, :, :n], out=answer[:, these])
        by_row = weights.view(kv_heads, rows, group, -1)[..., :rest]
        for head in range(kv_heads):
            answer[head].view(rows, group, -1).baddbmm_(by_row[head], value_R_S[:, :, head])
        out_N[:rows].copy_(answer.view(kv_heads, rows, group, -1).transpose(0, 1))


class _Part:
    """Queries of neighbouring slots that go through one call: the slots are read where they are, idle ones included,
    and shorter pieces repeat their last query."""

    def __init__(self, pieces: Sequence[Piece], begin: int, position_N: Tensor) -> None:
        self._low, self._high = pieces[0].slot, pieces[-1].slot + 1
        self._length = max(p.start + p.count for p in pieces)
        rows, width = self._high - self._low, max(p.count for p in pieces)
        count = sum(p.count for p in pieces)
        self._begin, self.end = begin, begin + count
        self._shape = rows, width
        self._masks: dict[tuple[int, int | None], Tensor] = {}
        self._index: Tensor | None = None
        self._out: Tensor | None = None
        position = position_N[begin : self.end]
        if rows * width > count:
            row, counts = np.array([p.slot - self._low for p in pieces]), np.array([p.count for p in pieces])
            offset = np.cumsum(counts) - counts
            first, last = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
            first[row], last[row] = offset, offset + counts - 1
            index = np.minimum(first[:, None] + np.arange(width), last[:, None]).ravel()
            out = row.repeat(counts) * width + np.arange(count) - offset.repeat(counts)
            self._index = torch.from_numpy(index).to(position.device)
            self._out = torch.from_numpy(out).to(position.device)
            position = position.index_select(0, self._index)
        self._position_R_Q = position.view(rows, width)

    def attend(
        self, out_N: Tensor, query_N: Tensor, keys: Tensor, values: Tensor, scale: float, window: int | None
    ) -> None:
        """Fills in the outputs for the part's share of the N queries.

        Args:
            out_N: outputs (N, kv heads, group, size).
            query_N: queries, by the key head that a group of them shares: (N, kv heads, group, size).
            keys: of all slots, (slots, kv heads, capacity, size).
            values: like `keys`.
            scale: of the scores.
            window: positions that a query sees; None: all.
        """
        query, out = query_N[self._begin : self.end], out_N[self._begin : self.end]
        if self._index is not None:
            query = query.index_select(0, self._index)
        (rows, width), (kv_heads, group, size) = self._shape, query.shape[1:]
        if width > 1:  # (R, kv heads, Q * group, size): one matrix product serves all query heads that share a key head
            query = query.view(rows, width, kv_heads, group, size).transpose(1, 2).reshape(rows, kv_heads, -1, size)
        keys, values = (x[self._low : self._high, :, : self._length] for x in (keys, values))
        answer = nn.functional.scaled_dot_product_attention(
            query, keys, values, attn_mask=self._mask(group, window, query), scale=scale
        )
        if width > 1:
            answer = answer.view(rows, kv_heads, width, group, -1).transpose(1, 2)
        if self._out is None:
            out.view(answer.shape).copy_(answer)
        else:
            torch.index_select(answer.reshape(-1, *out.shape[1:]), 0, self._out, out=out)

    def _mask(self, group: int, window: int | None, like: Tensor) -> Tensor:
        """What is added to the scores, shape (R, 1, Q * group, length): minus infinity where a token must not look."""
        key = (group, window)
        if key not in self._masks:
            query_R_Q_1 = self._position_R_Q.unsqueeze(2)
            place = torch.arange(self._length, device=like.device)
            hidden = place > query_R_Q_1
            if window is not None:
                hidden |= place <= query_R_Q_1 - window
            mask = like.new_zeros(hidden.shape).masked_fill_(hidden, -torch.inf)
            self._masks[key] = mask.unsqueeze(2).expand(-1, -1, group, -1).flatten(1, 2).unsqueeze(1)
        return self._masks[key]


def _joined(pieces: Iterable[Piece], call: int) -> Iterator[list[Piece]]:
    """Runs of pieces of rising slots, for each of which one call costs less than two: a call costs its scores and what
    it reads, idle slots and repeated queries included, and `call` besides."""
    part: list[Piece] = []
    width = length = cost = 0
    for piece in pieces:
        slot, end = piece.slot, piece.start + piece.count
        alone = end * (piece.count + READ)
        if part and slot > part[-1].slot:
            w, n = max(width, piece.count), max(length, end)
            places = (slot - part[0].slot + 1) * n
            together = places * (w + READ)
            if together <= cost + alone + call and places * w <= SCORES:
                part.append(piece)
                width, length, cost = w, n, together
                continue
        if part:
            yield part
        part, width, length, cost = [piece], piece.count, end, alone
    if part:
        yield part


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
        raise ModelError(f"{type(module).__name__} asks for {', '.join(strange) or 'its own mask'}")
    query, key, value = (x[0].transpose(0, 1) for x in (query, key, value))
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    return layout.attend(module.layer_idx, query, key, value, scale, sliding_window).unsqueeze(0), None


AttentionInterface.register(NAME, attend)
