"""The plain engine: a model's own passes over transformers' caches, for every causal language model.

How it works: a poll is one pass of each batch, a token for each of its rows, and a pass over the next prompts. Rows
stand to the right, padded on the left, and new ones join those that are under way. Where padding changes what a model
says, as it does where it leaks into a state, rows of one length make a batch, and none joins later. Where a model's
cache does not give the numbers of a whole pass, each token takes a whole pass. Which of the three it is, a short probe
against the model itself finds out.

What always holds: log-probabilities are those of an ordinary pass, up to rounding; memory for caches stays under
`cache_bytes`; a prompt that several rows have is read once. What it does not do: keep what was read for a later turn,
or read a long prompt in parts. It leaves the module that it is given as it is, as `local` says.
"""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

import torch
from torch import Tensor, nn

from longstride.core.errors import EngineFailure, ModelError
from longstride.engines import states
from longstride.engines.base import MAX_BATCH, Outcome, Refused, Request
from longstride.engines.fit import usual_attention
from longstride.engines.fusion import unfuse
from longstride.engines.prepare import compute_in_float32, own_logits, twin_of
from longstride.engines.rows import LESS, PASS_TOKENS, RequestRow, RowEngine
from longstride.models.room import doing, ran_out

CACHES = "past_key_values", "cache_params"
"""What a forward calls its cache."""
PROBE = 0, 1, 1, 0, 1, 0, 0, 1
"""Ids of the probe."""


class Way(Enum):
    """How rows are decoded together, the fastest first."""

    PADDED = "rows of any length"
    LEVEL = "rows of one length"
    WHOLE = "rows of one length, a whole pass for each token"


@dataclass(slots=True, eq=False)
class RowBatch:
    """Rows that are decoded together."""

    rows: list[RequestRow]
    cache: Any
    """Of all of their tokens but the last; None where each token takes a whole pass."""


class PlainEngine(RowEngine):
    """A sampler for any model (see the module's docstring).

    Args:
        model: a Hugging Face causal language model.
        end_ids: ids that end a turn.
        max_context: tokens of prompt and answer together.
        version: number of the weights.
        max_batch: rows that are under way at most.
        dtype: arithmetic and caches; in bfloat16 log-probabilities differ from the learner's by rounding.
        cache_bytes: memory for caches, at most; requests wait where it is too small for all.
        shared: whether the engine samples from the model's own tensors where their type is `dtype`, or from copies that
            only `update` refreshes.
        float32_head: whether the head computes in float32, from the weights as they were before they became `dtype`.

    Raises:
        ModelError: the model's logits depend on what comes later, or a pass of it fails.
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
        float32_head: bool = False,
    ) -> None:
        super().__init__(end_ids, max_context, version)
        self._max_batch, self._cache_bytes, self._shared = max_batch, cache_bytes, shared
        self._float32_head = float32_head
        self._dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[dtype]
        self._going: dict[int, RequestRow] = {}
        self._batches: list[RowBatch] = []
        self._take(model)
        self._fixed = self._per_token = 0
        """Bytes of the cache of a row, and of each of its positions."""
        self.way = self._probe(model)
        """How rows are decoded together."""

    @torch.inference_mode()
    def poll(self) -> list[tuple[int, Outcome]]:
        """A pass of each batch, and one over the next prompts. A request fails where its cache alone needs more than
        `cache_bytes`, and where the logits of one in its pass are not finite."""
        for batch in list(self._batches):
            self._advance(batch)
        if begun := self._admitted():
            self._begin(begun)
        return self._take_done()

    def release(self, session: int) -> None:
        """Nothing is kept for a session."""

    def update(self, weights: Any, version: int) -> None:
        """Takes the weights of a module of the same architecture (the same module or another); drops all caches. What
        is under way goes on: prompts and sampled tokens are encoded anew."""
        self._take(weights)
        self.version = version
        self.forget()

    def forget(self) -> None:
        going, self._going, self._batches = self._going, {}, []
        self._waiting = going | self._waiting

    def _take(self, model: nn.Module) -> None:
        if hasattr(self, "_model"):  # two at a time would need twice the memory
            unfuse(self._model)
            del self._model
        self._model = twin_of(model, self._dtype, self._shared)
        self._model.set_attn_implementation(usual_attention(model))
        if self._float32_head:
            compute_in_float32(self._model, model)
        self._device = next(self._model.parameters()).device
        takes = inspect.signature(self._model.forward).parameters
        self._takes = {name for name in ("position_ids", "logits_to_keep") if name in takes}
        self._cache_name = next((name for name in CACHES if name in takes), "")

    def _leave(self, ticket: int) -> None:
        del self._going[ticket]  # its batch drops it before the next pass

    @torch.inference_mode()
    def _probe(self, model: nn.Module) -> Way:
        """The fastest way that gives the model's own numbers."""
        kept = _kept(model)
        want, bound = own_logits(model, PROBE, self._dtype)
        if kept != _kept(model):
            raise ModelError(
                f"{type(model).__name__} keeps states of its passes among its modules, where those of sampling and of "
                "training would mix; take a model that gives its states back as a cache"
            )
        for way in Way:
            self.way = way
            try:
                found, places = self._tried()
            except Exception as e:  # whatever a model has against a cache that it does not take
                if ran_out(e) or way is Way.WHOLE:
                    raise
                continue
            if (found - want[places]).abs().max() <= bound:
                return way
        raise ModelError(
            f"the logits of {type(model).__name__} change with what comes later, so that it cannot write; take a model "
            "that was made to generate text"
        )

    def _tried(self) -> tuple[Tensor, list[int]]:
        """Logits of rows that begin together, go on, and of which the first leaves, where the way lets them with one
        that joins and rows of several lengths; and of which id of the probe each came after."""
        first, second, third = (RequestRow(k, Request([], 0, 0), 0, list(PROBE[:n])) for k, n in enumerate((4, 4, 3)))
        if padded := self.way is Way.PADDED:
            second.ids = second.ids[:2]
        batch, found = self._encoded([first, second])
        self._measure(batch.cache)
        places = [len(row.ids) - 1 for row in batch.rows]
        if padded:
            self._joined(batch, self._encoded([third])[0])
        for stay in (range(len(batch.rows)), range(1, len(batch.rows))):
            self._keep(batch, stay)
            for row in batch.rows:
                row.ids.append(PROBE[len(row.ids)])
            found = torch.cat([found, self._next(batch)])
            places += [len(row.ids) - 1 for row in batch.rows]
        return found, places

    def _measure(self, cache: Any) -> None:
        """Finds out what caches take, from one of two rows of four positions."""
        self._fixed = self._per_token = 0
        if cache is not None:
            longer, _ = self._encoded([RequestRow(0, Request([], 0, 0), 0, list(PROBE))])
            few, many = states.size_of(cache) // 2, states.size_of(longer.cache)
            self._per_token = (many - few) // 4
            self._fixed = few - 4 * self._per_token

    def _admitted(self) -> list[RequestRow]:
        """Rows whose prompts the next pass reads: those that wait longest, as far as there is room, as one pass should
        have no more tokens, and as they may be decoded together."""
        wave: list[RequestRow] = []
        prompts: set[tuple[int, ...]] = set()
        need, width = max((row.need for row in self._going.values()), default=1), 0
        most = PASS_TOKENS.get(self._device.type, PASS_TOKENS["cuda"])
        for row in list(self._waiting.values()):
            if not self._room(row.need):
                lacking = Refused(
                    f"the cache of {row.need} tokens takes {self._fixed + row.need * self._per_token} bytes, over the "
                    f"limit of {self._cache_bytes}: raise engine.cache_gigabytes, or lower the budget"
                )
                self._refuse(row, lacking)
                del self._waiting[row.ticket]
                continue
            if self.way is not Way.PADDED and wave and len(row.ids) != width:
                continue
            need, width = max(need, row.need), max(width, len(row.ids))
            prompts.add(tuple(row.ids))
            full = len(self._going) + len(wave) >= self._room(need)
            read = len(wave) + 1 if self.way is Way.WHOLE else len(prompts)  # later passes read what is sampled, too
            if full or (wave and width * read > most):
                break
            wave.append(row)
        for row in wave:
            self._going[row.ticket] = self._waiting.pop(row.ticket)
        return wave

    def _room(self, need: int) -> int:
        """How many rows of `need` positions there may be."""
        size = self._fixed + need * self._per_token
        return min(self._max_batch, self._cache_bytes // size) if size else self._max_batch

    def _begin(self, rows: list[RequestRow]) -> None:
        """Reads prompts, and draws the token after each."""
        try:
            with doing(f"reading {len(rows)} prompts", LESS):
                batch, logits = self._encoded(rows)
            self.tokens_in += sum(map(len, {tuple(row.request.prompt) for row in rows}))
            self._draw(rows, logits)
        except EngineFailure as e:
            self._fail(rows, e)
            return
        self._batches.append(batch)
        if self.way is Way.PADDED and len(self._batches) > 1:
            self._keep_going(batch)
            if batch.rows:
                self._joined(self._batches[0], batch)
            self._batches.pop()

    def _advance(self, batch: RowBatch) -> None:
        """A token for each row of a batch."""
        self._keep_going(batch)
        if not batch.rows:
            self._batches.remove(batch)
            return
        rows = batch.rows
        try:
            with doing(f"sampling {len(rows)} rows", LESS):
                logits = self._next(batch)
            self._draw(rows, logits)
        except EngineFailure as e:
            self._batches.remove(batch)
            self._fail(rows, e)

    def _fail(self, rows: Sequence[RequestRow], error: EngineFailure) -> None:
        for row in rows:
            self._leave(row.ticket)
            self._done[row.ticket] = error

    def _encoded(self, rows: list[RequestRow]) -> tuple[RowBatch, Tensor]:
        """Reads all ids of rows, the same ones once; logits after the last."""
        place = {ids: k for k, ids in enumerate(dict.fromkeys(tuple(row.ids) for row in rows))}
        width = max(map(len, place))
        ids_U_L = [[0] * (width - len(ids)) + list(ids) for ids in place]
        logits_U_V, cache = self._forward(ids_U_L, [len(ids) for ids in place], None, self.way is not Way.WHOLE)
        index = [place[tuple(row.ids)] for row in rows]
        if cache is not None and index != list(range(len(place))):
            states.select(cache, index, self._device)
        return RowBatch(list(rows), cache), logits_U_V[index]

    def _next(self, batch: RowBatch) -> Tensor:
        """Reads the last id of each row; logits after it."""
        if batch.cache is None:
            return self._encoded(batch.rows)[1]
        lengths = [len(row.ids) for row in batch.rows]
        logits_B_V, batch.cache = self._forward([row.ids[-1:] for row in batch.rows], lengths, batch.cache, True)
        return logits_B_V

    def _forward(
        self, ids_B_Q: list[list[int]], lengths_B: list[int], cache: Any, keep: bool
    ) -> tuple[Tensor, Any | None]:
        """The model's pass over the last ids of rows, which have so many with those in the cache; logits after each
        row's last one, float32, and the cache, where it is to be kept."""
        length, width = max(lengths_B), len(ids_B_Q[0])
        inputs: dict[str, Any] = {"use_cache": keep}
        before_B_1 = length - torch.tensor(lengths_B, device=self._device).unsqueeze(1)
        place_L = torch.arange(length, device=self._device)
        if min(lengths_B) < length:
            inputs["attention_mask"] = (place_L >= before_B_1).long()
        if "position_ids" in self._takes:
            inputs["position_ids"] = (place_L[-width:] - before_B_1).clamp(min=0)
        if "logits_to_keep" in self._takes:
            inputs["logits_to_keep"] = 1
        if cache is not None:
            inputs[self._cache_name] = cache
        out = self._model(input_ids=torch.tensor(ids_B_Q, device=self._device), **inputs)
        return out.logits[:, -1].float(), getattr(out, self._cache_name) if keep else None

    def _keep_going(self, batch: RowBatch) -> None:
        stay = [k for k, row in enumerate(batch.rows) if self._going.get(row.ticket) is row]
        if len(stay) < len(batch.rows):
            self._keep(batch, stay)

    def _keep(self, batch: RowBatch, stay: Sequence[int]) -> None:
        """Keeps some rows of a batch."""
        before = max(len(row.ids) for row in batch.rows)
        batch.rows = [batch.rows[k] for k in stay]
        if batch.cache is not None and stay:
            states.select(batch.cache, stay, self._device)
            if cut := before - max(len(row.ids) for row in batch.rows):
                states.shorten(batch.cache, cut)

    def _joined(self, batch: RowBatch, other: RowBatch) -> None:
        """Appends the rows of another batch."""
        states.join(batch.cache, other.cache)
        batch.rows = batch.rows + other.rows


def _kept(model: nn.Module) -> list[int]:
    """The tensors that modules hold beside parameters and buffers."""
    return [id(value) for module in model.modules() for value in vars(module).values() if isinstance(value, Tensor)]
