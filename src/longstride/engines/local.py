"""The local engine: batched sampling from any Hugging Face causal language model in this process.

How it works: each session owns a slot of preallocated keys and values and keeps it between turns. A new prompt re-uses
what it shares with the cached tokens; the rest is encoded, packed with the rests of the other prompts; then all rows
are decoded together, and a row that is done leaves. What always holds: log-probabilities are those of a plain forward
pass to 1e-5 (float32); memory for keys and values stays under `cache_bytes`; a sampled token uses one uniform number
made of the request's seed and the token's index, so no request depends on its neighbours; a pass that fails leaves no
wrong cache behind.

The engine leaves the module that it is given as it is. It makes a twin: the same structure with a configuration of its
own (where the attention is replaced) and, in float32, the very same parameter tensors. So a learner may train the
module in place; it must call `update` after each change, since cached keys and values belong to the weights that made
them.
"""

import copy
import heapq
import inspect
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from longstride.core.errors import EngineFailure, ModelError
from longstride.engines.attention import NAME, KeyValueStore, Layout
from longstride.engines.base import Completion, Engine, Request

PIECE = 512
"""Longest part of a prompt that one pass encodes."""
SCORES = 1 << 24
"""Attention scores (rows x queries x keys) of one pass."""
PASS_TOKENS = {"cpu": 1024, "cuda": 16384}
"""Prompt tokens of one pass: on a CPU what stays in its cache between two layers, on a GPU what fills it."""
NUCLEUS = 32
"""Tokens that a nucleus is looked for in before the whole vocabulary is sorted, which takes three times as long."""
TOLERANCE = 0.02, 0.5
"""How far the probe's logits may lie off, relative to their spread (float32, otherwise): far above rounding."""
GOLDEN = 0x9E3779B97F4A7C15
"""Step of splitmix64 (Steele, Lea and Flood 2014)."""


@dataclass(slots=True)
class _Slot:
    """A session's row in the store, and the tokens whose keys and values stand there."""

    row: int
    ids: list[int] = field(default_factory=list)


@dataclass(slots=True)
class _Row:
    """A request on its way: prompt and sampled tokens, and how many of them are encoded."""

    request: Request
    limit: int
    """Tokens it may sample: what it asked for, or what the context leaves."""
    slot: _Slot
    ids: list[int]
    at: int
    logprobs: list[float] = field(default_factory=list)
    stopped: bool = False

    @property
    def piece(self) -> int:
        """Tokens that the next pass encodes."""
        return min(len(self.ids) - self.at, PIECE)


class LocalEngine(Engine):
    """A batched sampler (see the module's docstring).

    Args:
        model: a Hugging Face causal language model whose attention goes through the library's attention interface.
        end_ids: ids that end a turn.
        max_context: tokens of prompt and answer together.
        version: number of the weights.
        max_batch: requests that run together and sessions that are kept, at most.
        dtype: arithmetic and caches. With bfloat16 the twin holds a copy of the weights, refreshed by `update`; its
            log-probabilities then differ from the learner's by rounding.
        cache_bytes: memory for keys and values, at most. Where it is too small for all, the session used longest ago is
            dropped, and a large batch runs in parts.

    Raises:
        ModelError: the architecture cannot be run, which a short probe against the model itself finds out.
    """

    def __init__(
        self,
        model: nn.Module,
        end_ids: frozenset[int],
        max_context: int,
        version: int = 0,
        max_batch: int = 512,
        dtype: Literal["float32", "bfloat16"] = "float32",
        cache_bytes: int = 4 << 30,
    ) -> None:
        self.version, self.tokens_in, self.tokens_out = version, 0, 0
        self._end_ids, self._max_context = end_ids, max_context
        self._max_batch, self._cache_bytes = max_batch, cache_bytes
        self._dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[dtype]
        self._take(model)
        self._bytes_per_token = self._probe(model)

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Continues every prompt; completions come in the order of the requests.

        With temperature 0 the distribution is a single token and every log-probability is 0.

        Raises:
            EngineFailure: logits are not finite, or one prompt alone needs more than `cache_bytes`.
        """
        done: list[Completion] = []
        while len(done) < len(requests):
            done += self._wave(requests[len(done) :])
        return done

    def release(self, session: int) -> None:
        """Forgets what is cached for a session. Unknown sessions are ignored."""
        self._drop(session)

    def update(self, weights: Any, version: int) -> None:
        """Takes the weights of a module of the same architecture (the same module or another); drops all caches."""
        self._take(weights)
        self.version = version

    def _take(self, model: nn.Module) -> None:
        self._model = _twin(model, self._dtype)
        self._device = next(self._model.parameters()).device
        self._store = KeyValueStore()
        self._sessions: dict[Hashable, _Slot] = {}
        """The one used longest ago first."""
        self._free: list[int] = []
        """Rows of the store that no session has, as a heap: low rows first, so that rows in use lie close together."""

    @torch.inference_mode()
    def _probe(self, model: nn.Module) -> int:
        """Compares a prompt, encoded in two parts, with the model's own pass; returns the bytes of a cached token."""
        name = type(model).__name__
        if not getattr(model, "_supports_attention_backend", False):
            raise ModelError(f"the local engine cannot run {name}: its attention cannot be replaced")
        if not {"position_ids", "logits_to_keep"} <= inspect.signature(model.forward).parameters.keys():
            raise ModelError(f"the local engine cannot run {name}: its forward lacks position_ids or logits_to_keep")
        ids, training = [0, 1, 1, 0, 1, 0, 0, 1], model.training
        try:
            plain = model.eval()(input_ids=torch.tensor([ids], device=self._device), use_cache=False)
        finally:
            model.train(training)
        want = plain.logits[0, [2, -1]].float()
        self._store.resize(1, len(ids), [])
        one = np.ones(1, np.int64)
        parts = [(ids[:3], 0 * one, 3 * one), (ids[3:], 3 * one, 5 * one)]
        got = torch.cat([self._forward(part, 0 * one, start, count) for part, start, count in parts])
        exact = self._dtype == next(model.parameters()).dtype == torch.float32
        if not (got - want).abs().max() <= TOLERANCE[0 if exact else 1] * want.std():
            raise ModelError(f"the local engine cannot run {name}: its logits come out different from the model's own")
        size, self._store = self._store.bytes_per_token, KeyValueStore()
        return size

    def _forward(self, ids: list[int], slots: np.ndarray, starts: np.ndarray, counts: np.ndarray) -> Tensor:
        """Encodes the packed tokens of R rows; logits after each row's last one, shape (R, vocabulary)."""
        layout = Layout(self._store, slots, starts, counts, self._device)
        return self._model(
            input_ids=torch.tensor([ids], device=self._device),
            position_ids=layout.position_N.unsqueeze(0),
            use_cache=False,
            logits_to_keep=layout.last_R,
            layout=layout,
        ).logits[0].float()  # fmt: skip

    @torch.inference_mode()
    def _wave(self, requests: Sequence[Request]) -> list[Completion]:
        """Completes as many of the first requests as run together."""
        keys, need = self._together(requests)
        requests = requests[: len(keys)]
        slots = self._reserve(keys, need)
        rows = []
        for request, slot in zip(requests, slots, strict=True):
            # at least one token is encoded: its logits are wanted
            same = min(common_prefix(slot.ids, request.prompt), len(request.prompt) - 1)
            slot.ids = slot.ids[:same]
            rows.append(_Row(request, self._limit(request), slot, list(request.prompt), same))
        try:
            going = [row for row in rows if row.limit > 0]
            while going:
                for part in _parts(going, PASS_TOKENS.get(self._device.type, PASS_TOKENS["cuda"])):
                    self._advance(part)
                going = [row for row in going if not row.stopped and len(row.logprobs) < row.limit]
        finally:
            for row, key in zip(rows, keys, strict=True):
                row.slot.ids = row.ids[: row.at]
                if row.request.session is None:
                    self._drop(key)
        return [self._completion(row) for row in rows]

    def _advance(self, rows: Sequence[_Row]) -> None:
        """Encodes the next piece of each row, and samples a token where all is encoded."""
        pieces = [row.piece for row in rows]
        packed = [i for row, n in zip(rows, pieces, strict=True) for i in row.ids[row.at : row.at + n]]
        logits = self._forward(
            packed,
            np.array([row.slot.row for row in rows]),
            np.array([row.at for row in rows]),
            np.array(pieces),
        )
        for row, n in zip(rows, pieces, strict=True):
            self.tokens_in += max(min(row.at + n, len(row.request.prompt)) - row.at, 0)
            row.at += n
        ready = [i for i, row in enumerate(rows) if row.at == len(row.ids)]
        if not ready:
            return
        if len(ready) < len(rows):
            logits = logits[ready]
        drawn = [rows[i] for i in ready]
        tokens, logprobs = draw(logits, [row.request for row in drawn], [len(row.logprobs) for row in drawn])
        self.tokens_out += len(drawn)
        for row, token, logprob in zip(drawn, tokens, logprobs, strict=True):
            row.ids.append(token)
            row.logprobs.append(logprob)
            row.stopped = token in self._end_ids

    def _completion(self, row: _Row) -> Completion:
        sampled = row.ids[len(row.request.prompt) :]
        finish = "stop" if row.stopped else "length" if row.limit == row.request.max_new else "context"
        return Completion(sampled, row.logprobs, [self.version] * len(sampled), finish)

    def _limit(self, request: Request) -> int:
        return min(request.max_new, max(self._max_context - len(request.prompt), 0))

    def _together(self, requests: Sequence[Request]) -> tuple[list[Hashable], int]:
        """Sessions of the first requests that can run together (each once), and the positions that they need."""
        keys: dict[Hashable, None] = {}
        need = 1
        for request in requests:
            if not request.prompt:
                raise ValueError("a prompt needs at least one token")
            limit = self._limit(request)
            wanted = max(need, len(request.prompt) + limit) if limit else need
            key = object() if request.session is None else request.session
            if key in keys or (keys and len(keys) >= self._most_slots(wanted)):
                break
            keys[key], need = None, wanted
        return list(keys), need

    def _capacity(self, need: int) -> int:
        """Positions of a slot: a power of two, so that growing is rare."""
        return max(self._store.capacity, min(1 << (need - 1).bit_length(), self._max_context))

    def _most_slots(self, need: int) -> int:
        return min(self._max_batch, self._cache_bytes // (self._bytes_per_token * self._capacity(need)))

    def _reserve(self, keys: Sequence[Hashable], need: int) -> list[_Slot]:
        """A slot of at least `need` positions for each session; drops sessions used longest ago for want of room."""
        capacity, most = self._capacity(need), self._most_slots(need)
        if most < 1:
            raise EngineFailure(
                f"keys and values of {capacity} tokens take {capacity * self._bytes_per_token} bytes, over the limit "
                f"of {self._cache_bytes}: raise cache_bytes or shorten the context"
            )
        for key in keys:
            if key in self._sessions:
                self._sessions[key] = self._sessions.pop(key)
        new = [key for key in keys if key not in self._sessions]
        for key in list(self._sessions)[: max(len(self._sessions) + len(new) - most, 0)]:
            self._drop(key)
        used = len(self._sessions) + len(new)
        if used > self._store.slots or capacity > self._store.capacity:
            slots = min(most, max(1 << (used - 1).bit_length(), self._store.slots))
            self._store.resize(slots, capacity, [slot.row for slot in self._sessions.values()])
            for i, slot in enumerate(self._sessions.values()):
                slot.row = i
            self._free = list(range(len(self._sessions), slots))
        for key in new:
            self._sessions[key] = _Slot(heapq.heappop(self._free))
        return [self._sessions[key] for key in keys]

    def _drop(self, key: Hashable) -> None:
        slot = self._sessions.pop(key, None)
        if slot is not None:
            heapq.heappush(self._free, slot.row)


def draw(logits_R_V: Tensor, requests: Sequence[Request], indices: Sequence[int]) -> tuple[list[int], list[float]]:
    """One token for each row by inverting its cumulative distribution at one uniform number.

    The nucleus (Holtzman et al. 2020, section 3.1) is the smallest set of most likely tokens whose probability, at the
    given temperature, reaches top_p.

    Args:
        logits_R_V: float32.
        requests: of the rows.
        indices: how many tokens each row has sampled before.

    Returns:
        tokens, and their log-probabilities under the distribution that they were drawn from.

    Raises:
        EngineFailure: a row has no finite distribution.
    """
    temperature = [r.sampling.temperature for r in requests]
    greedy = [t <= 0 for t in temperature]
    if all(t in (0, 1) for t in temperature):
        chance = logits_R_V.softmax(-1)
    else:
        scale = [1.0 if t <= 0 else t for t in temperature]
        chance = (logits_R_V / logits_R_V.new_tensor(scale).unsqueeze(1)).softmax(-1)
    top_p = [r.sampling.top_p if r.sampling.top_p < 1 else 2.0 for r in requests]
    if min(top_p) < 1:
        limit = torch.tensor(top_p, dtype=torch.float64, device=chance.device).unsqueeze(1)
        ranked, order = chance.topk(min(NUCLEUS, chance.shape[1]))
        if (ranked.sum(-1, True, dtype=torch.float64) < limit).any():
            ranked, order = chance.sort(descending=True, stable=True)
        before = ranked.cumsum(-1, dtype=torch.float64) - ranked
        ranked[before >= limit] = 0.0
        chance = torch.zeros_like(chance).scatter(1, order, ranked)
    below = chance.cumsum(-1, dtype=torch.float64)
    total = below[:, -1:]
    if not torch.isfinite(total).all():
        raise EngineFailure("the model's logits are not finite; its weights have probably diverged")
    uniform = torch.from_numpy(uniforms([r.seed for r in requests], indices)).to(below.device).unsqueeze(1)
    # the first token whose cumulative probability exceeds u: never one of probability 0, since u < total
    token = torch.searchsorted(below, uniform * total, right=True)
    if any(greedy):
        best = logits_R_V.argmax(-1, keepdim=True)
        token = torch.where(torch.tensor(greedy, device=best.device).unsqueeze(1), best, token)
    logprob = (chance.gather(1, token) / total).log().flatten().tolist()
    return token.flatten().tolist(), [0.0 if g else p for g, p in zip(greedy, logprob, strict=True)]


def uniforms(seeds: Sequence[int], indices: Sequence[int]) -> np.ndarray:
    """A number in [0, 1) for each pair of seed and index: splitmix64 at a place of its own, with 53 random bits."""
    seed = np.array([s & 0xFFFFFFFFFFFFFFFF for s in seeds], np.uint64)
    index = np.array(indices, np.uint64)
    bits = _mixed(_mixed(seed) + (index + np.uint64(1)) * np.uint64(GOLDEN))
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mixed(z: np.ndarray) -> np.ndarray:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """How many items the two share from the start."""
    low, high = 0, min(len(a), len(b))  # a[:low] == b[:low]; comparing slices is much faster than items
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if a[low:middle] == b[low:middle] else (low, middle - 1)
    return low


def _parts(rows: Sequence[_Row], tokens: int) -> Iterator[list[_Row]]:
    """Rows sorted by length and cut into passes of about `tokens` tokens, so that rows of one pass differ little."""
    part: list[_Row] = []
    longest = 0
    for row in sorted(rows, key=lambda row: (row.piece, row.at)):
        width, longest = len(part) * row.piece + row.piece, max(longest, row.at + row.piece)
        if part and (width > tokens or width * longest > SCORES):
            yield part
            part, longest = [], row.at + row.piece
        part.append(row)
    yield part


def _twin(model: nn.Module, dtype: torch.dtype) -> Any:
    """A second module of the same structure whose parameters are those of `model`, or copies where the type differs."""
    shared: dict[int, Any] = {id(b): b for b in model.buffers()}
    for p in model.parameters():
        same = p.dtype == dtype or not p.is_floating_point()
        shared[id(p)] = p if same else nn.Parameter(p.detach().to(dtype), requires_grad=False)
    twin: Any = copy.deepcopy(model, shared)
    twin.set_attn_implementation(NAME)
    return twin.eval()
