"""The local engine: continuous batching over any Hugging Face causal language model in this process.

How it works: each request gets a slot of preallocated keys and values, and a session keeps its slot between turns. A
prompt takes over what it shares with the tokens of its slot or of any other; where another request is just encoding
the same beginning, it waits for that; the logits after the newest whole prompts are kept, so that none is read twice. A
poll is one forward pass: a token of every row that is being decoded, packed together with the next pieces of prompts. A
row that is done leaves at once, and the next one waiting takes its place.

What always holds: log-probabilities are those of a plain forward pass to 1e-5 (float32); memory for keys and values
stays under `cache_bytes`; a sampled token uses one uniform number made of the request's seed and the token's index, so
no request depends on its neighbours; a pass that fails leaves no wrong cache behind, and fails no row beside its own.

The engine leaves the module that it is given as it is. It makes a twin: the same structure with a configuration of its
own (where the attention is replaced, and known modules are made faster: `fusion`) and either the very same parameter
tensors or copies of them. A learner that trains the module in place must call `update` after each change, since cached
keys and values belong to the weights that made them; where the tensors are the same, it must not train while the engine
is polled.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from longstride.core.errors import EngineFailure, ModelError
from longstride.engines.attention import NAME, KeyValueStore, Layout, Piece, SharedStart
from longstride.engines.base import MAX_BATCH, Outcome, Refused
from longstride.engines.cache import Cache, Slot, shared_beginnings
from longstride.engines.fit import misfit
from longstride.engines.fusion import unfuse
from longstride.engines.prepare import own_logits, prepared, twin_of
from longstride.engines.rows import LESS, PASS_TOKENS, RequestRow, RowEngine
from longstride.models.native import NativeSampler, supported
from longstride.models.room import doing, ran_out

KEPT = 1 << 24
"""Logits after whole prompts that are kept, in numbers, for who has the same prompt."""
SHARE = {"cpu": 512, "cuda": 16384}
"""Positions that need not be read, at least, for rows to attend to the beginning that they share together."""


class LocalEngine(RowEngine):
    """A batched sampler (see the module's docstring).

    Args:
        model: a Hugging Face causal language model whose attention goes through the library's attention interface.
        end_ids: ids that end a turn.
        max_context: tokens of prompt and answer together.
        version: number of the weights.
        max_batch: requests that run together and sessions that are kept, at most.
        dtype: arithmetic and caches; in bfloat16 log-probabilities differ from the learner's by rounding.
        cache_bytes: memory for keys and values, at most. Where it is too small for all, the session used longest ago is
            dropped, and requests wait.
        shared: whether the engine samples from the model's own tensors where their type is `dtype`, or from copies that
            only `update` refreshes.
        kernels: what computes a pass; `native` where `models.native` knows the model.
        graphs: whether decoding passes have fixed shapes (`graphs`), which CUDA replays.
        float32_head: whether the head computes in float32, from the weights as they were before they became `dtype`.

    Raises:
        ModelError: the architecture cannot be run, which a short probe against the model itself finds out.
    """

    def __init__(
        self,
        model: nn.Module,
        end_ids: frozenset[int],
        max_context: int,
        version: int = 0,
        max_batch: int = MAX_BATCH,
        dtype: Literal["float32", "bfloat16"] = "float32",
        cache_bytes: int = 4 << 30,
        shared: bool = True,
        kernels: Literal["torch", "native"] = "torch",
        graphs: bool = False,
        float32_head: bool = False,
    ) -> None:
        super().__init__(end_ids, max_context, version)
        self._kernels, self._graphs, self._float32_head = kernels, graphs, float32_head
        self._max_batch, self._cache_bytes, self._shared = max_batch, cache_bytes, shared
        self._dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[dtype]
        self._going: dict[int, tuple[RequestRow, Slot]] = {}
        self._last: dict[tuple[int, ...], Tensor] = {}
        """By prompt the logits after it, the oldest first."""
        self._take(model)
        self._bytes_per_token = self._probe(model)
        self._cache = self._empty_cache()

    @torch.inference_mode()
    def poll(self) -> list[tuple[int, Outcome]]:
        """One forward pass. A request fails where its prompt alone needs more than `cache_bytes`, and where the logits
        of one in its pass are not finite."""
        self._admit()
        if self._going:
            self._advance()
        return self._take_done()

    def release(self, session: int) -> None:
        self._cache.release(session)

    def update(self, weights: Any, version: int) -> None:
        """Takes the weights of a module of the same architecture (the same module or another); drops all caches. What
        is under way goes on: prompts and sampled tokens are encoded anew."""
        if self._decode is None or not self._decode.take(weights):
            self._take(weights)
        self.version = version
        self.forget()

    def forget(self) -> None:
        self._cache = self._empty_cache(None if self._decode is None else self._cache.store)  # graphs read its memory
        going, self._going, self._last = self._going, {}, {}
        self._waiting = {ticket: row for ticket, (row, _) in going.items()} | self._waiting

    def _take(self, model: nn.Module) -> None:
        if hasattr(self, "_model"):  # two at a time would need twice the memory
            unfuse(self._model)
            del self._model, self._native, self._decode
        self._model = twin_of(model, self._dtype, self._shared)
        self._model.set_attn_implementation(NAME)
        self._device = next(self._model.parameters()).device
        self._native: Callable[..., Tensor] | None = None
        if self._kernels == "native":
            self._native = NativeSampler(self._model) if supported(self._model) else None
        self._decode: Any = None
        if self._native is None:
            self._decode = prepared(self._model, model, self._graphs, self._float32_head)

    def _empty_cache(self, store: KeyValueStore | None = None) -> Cache:
        return Cache(self._bytes_per_token, self._cache_bytes, self._max_batch, self._max_context, store)

    @torch.inference_mode()
    def _probe(self, model: nn.Module) -> int:
        """Compares a prompt, encoded in two parts, with the model's own pass; returns the bytes of a cached token."""
        ids, reason = [0, 1, 1, 0, 1, 0, 0, 1], misfit(model)
        store = KeyValueStore(1, len(ids))
        if not reason:
            want, bound = own_logits(model, ids, self._dtype)
            parts = [Piece(0, 0, 3), Piece(0, 3, 5)]
            try:
                with doing("sampling 1 rows", LESS):
                    got = torch.cat([self._forward(store, ids[p.start : p.start + p.count], [p], [0]) for p in parts])
                if not (got - want[[2, -1]]).abs().max() <= bound:
                    reason = "its logits come out different from the model's own"
            except ModelError as e:
                reason = str(e)
            except (TypeError, ValueError, RuntimeError, AttributeError) as e:
                if ran_out(e):
                    raise
                reason = f"its passes fail with other attention ({type(e).__name__}: {str(e)[:100]})"
        if reason:
            name = type(model).__name__
            raise ModelError(
                f"the local engine cannot run {name}: {reason}; with engine.plain=true it runs plainly, which is slower"
            )
        return store.bytes_per_token

    def _forward(
        self,
        store: KeyValueStore,
        ids: list[int],
        pieces: list[Piece],
        wanted: list[int],
        shared: Sequence[SharedStart] = (),
    ) -> Tensor:
        """Encodes packed tokens; logits after the last one of each wanted piece, shape (wanted, vocabulary)."""
        n = self._decode.leading(pieces, wanted) if self._decode else 0
        if n:
            rest = [self._forward(store, ids[n:], pieces[n:], [k - n for k in wanted[n:]])] if pieces[n:] else []
            return torch.cat([self._decode(store, ids[:n], pieces[:n]), *rest])
        layout = Layout(store, pieces, self._device, shared)
        if self._native is not None:
            return self._native(ids, layout.position_N, layout.at_N, pieces, store, layout.last_R[wanted])
        return (
            self._model(
                input_ids=torch.tensor([ids], device=self._device),
                position_ids=layout.position_N.unsqueeze(0),
                use_cache=False,
                logits_to_keep=torch.tensor(layout.last_R[wanted], device=self._device),
                layout=layout,
            )
            .logits[0]
            .float()
        )

    def _admit(self) -> None:
        """Gives slots to those who wait longest, as far as there is room; shorter prompts get lower slots, so that rows
        of like length lie together."""
        wave: list[RequestRow] = []
        need = 1
        for row in self._waiting.values():
            room = self._cache.room(max(need, row.need))
            if room and len(self._going) + len(wave) >= room:  # the next to get room is this one, however much it needs
                break
            if room:  # otherwise its error says that there is never enough
                need = max(need, row.need)
            wave.append(row)
        self._cache.expect((row.request.session for row in wave), need)
        for row in sorted(wave, key=lambda row: len(row.ids)):
            session = row.request.session
            if self._cache.must_wait(session, row.ids):
                continue
            most = len(row.ids) - (tuple(row.ids) not in self._last)
            try:
                self._going[row.ticket] = row, self._cache.take(session, row.ids, row.need, most)
            except Refused as e:
                self._refuse(row, e)
            del self._waiting[row.ticket]

    def _plan(self) -> tuple[list[tuple[RequestRow, Slot, Piece]], list[SharedStart]]:
        """What the next pass encodes: a token of each row that is decoded, and pieces of prompts, the oldest first.
        Rows whose beginning is read for all of them stand in front, as `Layout` wants them."""
        decoded: list[tuple[RequestRow, Slot, Piece]] = []
        begun: list[tuple[RequestRow, Slot, Piece]] = []
        left = PASS_TOKENS.get(self._device.type, PASS_TOKENS["cuda"])
        for row, slot in self._going.values():
            todo = len(row.ids) - slot.at
            if todo == 1:
                decoded.append((row, slot, Piece(slot.row, slot.at, 1)))
            elif left:
                begun.append((row, slot, Piece(slot.row, slot.at, min(todo, left))))
                left -= begun[-1][2].count
        least = SHARE.get(self._device.type, SHARE["cuda"])
        together = shared_beginnings([slot for _, slot, _ in decoded], least)
        place = {slot: i for i, slot in enumerate(slot for group, _ in together for slot in group)}
        decoded.sort(key=lambda part: (place.get(part[1], len(place)), part[1].row))
        begun.sort(key=lambda part: part[1].row)
        return decoded + begun, [SharedStart(len(group), length) for group, length in together]

    def _advance(self) -> None:
        """One forward pass, and a token for each row of which all is encoded; before it, one for each row whose prompt
        was read before."""
        if known := [row for row, slot in self._going.values() if slot.at == len(row.ids)]:
            try:
                self._draw(known, torch.stack([self._last[tuple(row.ids)] for row in known]))
            except EngineFailure as e:
                self._fail(known, e)
        plan, shared = self._plan()
        if not plan:
            return
        ids = [i for row, _, piece in plan for i in row.ids[piece.start : piece.start + piece.count]]
        ready = [k for k, (row, _, piece) in enumerate(plan) if piece.start + piece.count == len(row.ids)]
        try:
            with doing(f"sampling {len(plan)} rows", LESS):
                logits = self._forward(self._cache.store, ids, [piece for *_, piece in plan], ready, shared)
            for row, slot, piece in plan:
                slot.at += piece.count
                self.tokens_in += max(min(slot.at, len(row.request.prompt)) - piece.start, 0)
            self._draw([plan[k][0] for k in ready], logits)
        except EngineFailure as e:
            self._fail([row for row, *_ in plan], e)

    def _fail(self, rows: Sequence[RequestRow], error: EngineFailure) -> None:
        for row in rows:
            self._cache.forget(self._going[row.ticket][1])
            self._leave(row.ticket)
            self._done[row.ticket] = error

    def _draw(self, rows: Sequence[RequestRow], logits_R_V: Tensor) -> None:
        begun = [(tuple(row.ids), last) for row, last in zip(rows, logits_R_V, strict=True) if not row.logprobs]
        super()._draw(rows, logits_R_V)
        for prompt, last in begun:
            if prompt not in self._last:
                self._last[prompt] = last.clone()
        while len(self._last) * logits_R_V.shape[-1] > KEPT:
            del self._last[next(iter(self._last))]

    def _leave(self, ticket: int) -> None:
        _, slot = self._going.pop(ticket)
        self._cache.give_back(slot)
