"""Decoding passes of a fixed shape, so that a GPU replays them as CUDA graphs: one launch in place of some 1,600.

How it works: a pass has a row for each slot, from the first to a power of two behind the last that is decoded, and
attention reads so many positions of each as the longest row needs, rounded up: these two numbers are a bucket. What a
pass depends on beside that (ids, positions, places) stands in buffers of one address, which are filled before a replay.
A graph is captured when its bucket first comes, and dropped when memory that it reads moves: the store's, or that of
weights. An update copies new weights to where the old ones are, so graphs outlive it.

What always holds: tokens see what they see in `attention.Layout`'s passes, and keys and values are written for decoded
rows alone: a row of an idle slot computes something and writes what another one writes. The uncaptured form, which runs
everywhere, is what tests hold against `Layout`, and on a card the captured one is held against the uncaptured.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from longstride.core.errors import ModelError
from longstride.engines.attention import KeyValueStore, Piece

LENGTH = 256
"""What a bucket's positions are a multiple of."""


class StaticLayout:
    """The places of one bucket, where `attention.Layout` has those of one pass."""

    def __init__(self, store: KeyValueStore, rows: int, length: int, device: torch.device) -> None:
        self.store, self.rows, self.length = store, rows, length
        self.id_R, self.position_R, self.at_R, self.source_R = (
            torch.zeros(rows, dtype=torch.long, device=device) for _ in range(4)
        )
        self._place_L = torch.arange(length, device=device)

    def fill(self, ids: Sequence[int], pieces: Sequence[Piece]) -> None:
        """Says what the next pass decodes: one token a piece."""
        first = pieces[0]
        idle = (0, 0, first.slot * self.store.capacity + first.start, first.slot)  # writes what the first one writes
        rows: list[tuple[int, int, int, int]] = [idle] * self.rows
        for token, piece in zip(ids, pieces, strict=True):
            at = piece.slot * self.store.capacity + piece.start
            rows[piece.slot] = (token, piece.start, at, piece.slot)
        new = torch.tensor(rows).T.contiguous().to(self.id_R.device)  # one transfer
        for buffer, row in zip((self.id_R, self.position_R, self.at_R, self.source_R), new, strict=True):
            buffer.copy_(row)

    def attend(
        self, layer: int, query_R: Tensor, key_R: Tensor, value_R: Tensor, scale: float, window: int | None
    ) -> Tensor:
        """As `Layout.attend`, for a query a slot: (R, heads, size)."""
        written = self.store.write(layer, self.at_R, key_R[self.source_R], value_R[self.source_R])
        keys, values = (x[: self.rows, : self.length].transpose(1, 2) for x in written)
        hidden_R_L = self._place_L > self.position_R[:, None]
        if window is not None:
            hidden_R_L = hidden_R_L | (self._place_L <= self.position_R[:, None] - window)
        mask_R_L = query_R.new_zeros(hidden_R_L.shape).masked_fill(hidden_R_L, -torch.inf)
        query = query_R.unflatten(1, (keys.shape[1], -1))
        mask = mask_R_L[:, None, None, :].expand(-1, -1, query.shape[2], -1)
        answer = nn.functional.scaled_dot_product_attention(query, keys, values, attn_mask=mask, scale=scale)
        return answer.flatten(1, 2)


class DecodeGraphs:
    """Passes of one model, the engine's twin; captured where it is on CUDA.

    Args:
        model: the twin.
        source: the model whose parameters it shares or has copies of.
    """

    def __init__(self, model: Any, source: nn.Module) -> None:
        self._model, self._device = model, next(model.parameters()).device
        theirs = {id(p) for p in source.parameters()}
        self._shared = {name for name, p in _parameters(model).items() if id(p) in theirs}
        self._addresses = _addresses(model)
        self._pool: Any = None
        """Of the graphs' memory, which they share."""
        self._logits_S_V: Tensor | None = None
        """Where all of them leave their logits, a row a slot: those of each bucket would take gigabytes."""
        self._store: KeyValueStore | None = None
        self._shape = (0, 0)
        self._buckets: dict[tuple[int, int], tuple[StaticLayout, Any]] = {}
        """By rows and length: the places, and the graph (None where it is not captured)."""

    @torch.no_grad()
    def take(self, source: nn.Module) -> bool:
        """Copies the weights of a module to where the twin has its own; those that are shared are there already.

        Returns:
            False, and nothing is copied, where that cannot be: a shared weight is another tensor now or has moved, or
            names, shapes or buffers differ. Then the twin must be made anew.
        """
        old, new = _parameters(self._model), _parameters(source)
        if old.keys() != new.keys() or self._addresses != _addresses(self._model):
            return False
        if any(old[name] is not p if name in self._shared else old[name].shape != p.shape for name, p in new.items()):
            return False
        buffers = dict(source.named_buffers())
        if any(b is not buffers[name] and not torch.equal(b, buffers[name]) for name, b in self._model.named_buffers()):
            return False
        for name in old.keys() - self._shared:
            old[name].copy_(new[name])
        return True

    def leading(self, pieces: Sequence[Piece], wanted: Sequence[int]) -> int:
        """How many of a pass's pieces, from the first, are decoded here: those of one token whose logits are wanted."""
        n = next((k for k, piece in enumerate(pieces) if piece.count > 1), len(pieces))
        return n if list(wanted[:n]) == list(range(n)) else 0

    def __call__(self, store: KeyValueStore, ids: Sequence[int], pieces: Sequence[Piece]) -> Tensor:
        """Encodes a token of each piece; logits after it, shape (pieces, vocabulary), float32.

        Raises:
            ModelError: the pass cannot be captured.
        """
        if store is not self._store or (store.slots, store.capacity) != self._shape:
            self._buckets.clear()
            self._pool = self._logits_S_V = None  # the pool ends with the last of its graphs
            self._store, self._shape = store, (store.slots, store.capacity)
        slots, starts, _ = zip(*pieces, strict=True)
        rows = min(1 << max(slots).bit_length(), store.slots)
        length = min(-(-(max(starts) + 1) // LENGTH) * LENGTH, store.capacity)
        known = self._buckets.get((rows, length))
        layout = known[0] if known else StaticLayout(store, rows, length, self._device)
        layout.fill(ids, pieces)
        if known is None:
            self._buckets[rows, length] = layout, self._captured(layout) if self._device.type == "cuda" else None
        if graph := self._buckets[rows, length][1]:
            graph.replay()
        else:
            self._pass(layout)
        assert self._logits_S_V is not None
        return self._logits_S_V[list(slots)].float()

    def _pass(self, layout: StaticLayout) -> None:
        logits_R_V = self._model(
            input_ids=layout.id_R.unsqueeze(0),
            position_ids=layout.position_R.unsqueeze(0),
            use_cache=False,
            layout=layout,
        ).logits[0]
        kept_S_V = self._logits_S_V
        if kept_S_V is None:
            kept_S_V = self._logits_S_V = logits_R_V.new_empty(layout.store.slots, logits_R_V.shape[1])
        kept_S_V[: layout.rows].copy_(logits_R_V)

    def _captured(self, layout: StaticLayout) -> Any:
        """Captures a pass, after two on another stream, which libraries allocate their own memory in."""
        graph, beside = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        try:
            beside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(beside):
                for _ in range(2):
                    self._pass(layout)
            torch.cuda.current_stream().wait_stream(beside)
            with torch.cuda.graph(graph, pool=self._pool):
                self._pass(layout)
            self._pool = graph.pool()
        except RuntimeError as e:
            name = type(self._model).__name__
            raise ModelError(
                f"engine.graphs: a decoding pass of {name} cannot be captured ({str(e)[:200]}); set engine.graphs=false"
            ) from e
        return graph


def _parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """By all their names: a tied head counts beside the embedding."""
    return dict(model.named_parameters(remove_duplicate=False))


def _addresses(model: nn.Module) -> list[tuple[int, torch.dtype]]:
    return [(p.data_ptr(), p.dtype) for p in model.parameters()]
