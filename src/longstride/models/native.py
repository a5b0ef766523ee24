"""Passes of a small Llama in C++ (`native.cpp`): what an engine samples with, and what a learner trains with.

How it works: the system's compiler builds the file on first use for this very processor, and the library is kept in the
user's cache folder. A whole pass is one call, which uses one core and lets other threads go on. What always holds: the
numbers are those of the model's own pass up to rounding, and the same bits on the same machine; where there is no
compiler, or the model is another, everything works without it.
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import LlamaForCausalLM

SOURCE = Path(__file__).with_name("native.cpp")
FLAGS = ("-O3", "-march=native", "-std=c++17", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC")
SMALL = 20_000_000
"""Parameters up to which one core computes a pass faster so; of a larger model matrix products are nearly all."""
NAMES = (
    "input_layernorm",
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.o_proj",
    "post_attention_layernorm",
    "mlp.gate_proj",
    "mlp.up_proj",
    "mlp.down_proj",
)
"""Of a layer's tensors, in the order of `native.cpp`."""


def library() -> ctypes.CDLL | None:
    """The library, built where it is not there yet; None where it cannot be built."""
    return _library()[0]


def trouble() -> str:
    """Why there is no library though there is a compiler; empty where there is one, or no compiler."""
    return _library()[1]


@cache
def _library() -> tuple[ctypes.CDLL | None, str]:
    try:
        path = _built()
        found = ctypes.CDLL(str(path)) if path else None
    except (OSError, subprocess.SubprocessError) as e:
        said = (getattr(e, "stderr", None) or b"").decode(errors="replace").strip().splitlines()
        return None, "; ".join([str(e), *said[:1]])
    if found is not None:
        found.make.restype, found.kept.restype = ctypes.c_void_p, ctypes.c_long
    return found, ""


def _built() -> Path | None:
    """Builds the library. Its name is made of all that its bits depend on: source, flags, compiler and processor."""
    names = [os.environ.get("CXX", ""), "c++", "g++", "clang++"]
    compiler = next((found for name in names if name and (found := shutil.which(name))), None)
    if compiler is None:
        return None
    says = [compiler, *FLAGS[:2], "-dM", "-E", "-x", "c++", os.devnull]
    target = subprocess.run(says, capture_output=True, check=True, timeout=60).stdout
    key = hashlib.sha256(SOURCE.read_bytes() + " ".join(FLAGS).encode() + target).hexdigest()[:16]
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "longstride"
    path = folder / f"native-{key}.so"
    if not path.exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as beside:
            made = Path(beside, path.name)
            subprocess.run(
                [compiler, *FLAGS, str(SOURCE), "-o", str(made)], capture_output=True, check=True, timeout=300
            )
            os.replace(made, path)  # whole or not at all, also where two processes build
    return path


def supported(model: nn.Module) -> bool:
    """Whether `native.cpp` knows this model: a small Llama in float32 on the CPU, without biases or adapters."""
    if type(model) is not LlamaForCausalLM:
        return False
    c, names = model.config, {f"model.layers.{i}.{n}.weight" for i in range(len(model.model.layers)) for n in NAMES}
    names |= {"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"}
    found = dict(model.named_parameters(remove_duplicate=False))
    size = c.head_dim or c.hidden_size // c.num_attention_heads
    return (
        found.keys() == names
        and all(p.dtype == torch.float32 and p.device.type == "cpu" and p.is_contiguous() for p in found.values())
        and sum(p.numel() for p in model.parameters()) <= SMALL
        and size % 8 == 0
        and c.hidden_act == "silu"
        and (c.rope_parameters or {}).get("rope_type", "default") == "default"
    )


class _Shape:
    """What every call says of a model.

    Args:
        model: one that is `supported`.
    """

    def __init__(self, model: Any) -> None:
        c = model.config
        size = c.head_dim or c.hidden_size // c.num_attention_heads
        self.layers: int = c.num_hidden_layers
        self.keys = c.num_key_value_heads, size
        self.words: int = c.vocab_size
        self.dims = np.array(
            [c.hidden_size, self.layers, c.num_attention_heads, *self.keys, c.intermediate_size, c.vocab_size], np.int64
        )
        self.epsilon = ctypes.c_float(c.rms_norm_eps)
        self._rotary = model.model.rotary_emb
        self.reach(c.max_position_embeddings)
        layers = [layer.get_parameter(f"{name}.weight") for layer in model.model.layers for name in NAMES]
        self.padding: int | None = model.model.embed_tokens.padding_idx
        self.tensors = [model.model.embed_tokens.weight, *layers, model.model.norm.weight, model.lm_head.weight]

    @torch.no_grad()
    def reach(self, context: int) -> None:
        """Makes the angles of so many positions."""
        self.context = context
        angles = self._rotary(torch.zeros(1), torch.arange(context).unsqueeze(0))
        self.cosine, self.sine = (x[0].float().contiguous() for x in angles)


class NativeSampler:
    """A model that samples over the keys and values of `engines.attention.KeyValueStore`.

    Args:
        model: one that is `supported`; its weights are taken as they are now.
    """

    def __init__(self, model: nn.Module) -> None:
        self._shape, self._library = _Shape(model), library()
        assert self._library is not None
        s = self._shape
        made = self._library.make(_at(s.dims), s.epsilon, _all(s.tensors), _at(s.cosine), _at(s.sine))
        self._model = ctypes.c_void_p(made)
        self._end = weakref.finalize(self, self._library.drop, self._model)

    def __call__(
        self, ids: Sequence[int], position_N: Tensor, at_N: Tensor, pieces: Any, store: Any, wanted: np.ndarray
    ) -> Tensor:
        """Logits (wanted, words) of one packed pass, whose keys and values are written.

        Args:
            ids: of N tokens.
            position_N: of each.
            at_N: of each, its flat place slot * capacity + position.
            pieces: slot, start and count of each row's tokens.
            store: keys and values.
            wanted: the tokens after which logits are asked for.
        """
        s, new = self._shape, torch.empty(0, *self._shape.keys)
        buffers = [store.layer(i, new, new) for i in range(s.layers)]
        ids_N, rows, after = np.array(ids, np.int64), np.array(pieces, np.int64), np.array(wanted, np.int64)
        logits = torch.empty(len(after), s.words)
        assert self._library is not None
        self._library.sample(
            self._model,
            _at(ids_N),
            _at(position_N),
            _at(at_N),
            _long(len(ids_N)),
            _at(rows),
            _long(len(rows)),
            _long(store.capacity),
            _all([k for k, _ in buffers]),
            _all([v for _, v in buffers]),
            _at(after),
            _long(len(after)),
            _at(logits),
        )
        return logits


class Decoder:
    """A model's decoder with a gradient, called as the model's own.

    Args:
        model: one that is `supported`; its parameters get the gradients.
    """

    def __init__(self, model: nn.Module) -> None:
        self._shape = _Shape(model)
        self._spare: list[Tensor] = []
        """Memory of passes whose gradient is known: new memory costs as much as a part of the pass."""

    def __call__(self, input_ids: Tensor, forest: Any = None, **more: Any) -> Any:
        """Hidden states (B, L, width) after the last norm, as `last_hidden_state`. `forest` says where rows branch
        (`learner.tree_attention.Forest`)."""
        (rows, length), ends = input_ids.shape, None
        if forest is None:
            position, lengths = np.tile(np.arange(length), rows), np.full(rows, length)
        else:
            position = forest.position_N.numpy()
            begins = np.flatnonzero(position == 0)
            lengths = np.diff(begins, append=length)
            ends = forest.end_N - begins.repeat(lengths)
        if position.max() >= self._shape.context:  # a learner may be given rows that are longer
            self._shape.reach(int(position.max()) + 1)
        trained = torch.is_grad_enabled()
        hidden: Any = _Hidden.apply(
            self._shape, self._spare, trained, input_ids, position, ends, lengths, *self._shape.tensors[:-1]
        )
        return SimpleNamespace(last_hidden_state=hidden.view(rows, length, -1))


class _Hidden(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        shape: _Shape,
        spare: list[Tensor],
        trained: bool,
        ids: Tensor,
        position: Any,
        ends: Any,
        rows: Any,
        *tensors: Tensor,
    ) -> Tensor:
        found, ids = library(), ids.flatten().contiguous()
        assert found is not None
        n = len(ids)
        need, keep = found.kept(_at(shape.dims), _long(n)), spare.pop() if spare else torch.empty(0)
        if len(keep) < need:
            keep = torch.empty(need)
        hidden = torch.empty(n, int(shape.dims[0]))
        ctx.given = [ids, position, ends, rows]
        ctx.shape, ctx.keep, ctx.spare = shape, keep, spare
        found.forward(
            _at(shape.dims),
            shape.epsilon,
            _all(tensors),
            _at(shape.cosine),
            _at(shape.sine),
            *(_at(x) for x in ctx.given),
            _long(len(rows)),
            _long(n),
            _at(keep),
            _at(hidden),
        )
        if not (trained and any(ctx.needs_input_grad)):  # under `no_grad` they say that a gradient is needed too
            spare.append(keep)
        return hidden

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        found, shape = library(), ctx.shape
        assert found is not None
        tensors = shape.tensors[:-1]
        gradients = [torch.zeros_like(t) for t in tensors]
        found.backward(
            _at(shape.dims),
            shape.epsilon,
            _all(tensors),
            _all(gradients),
            _at(shape.cosine),
            _at(shape.sine),
            *(_at(x) for x in ctx.given),
            _long(len(ctx.given[-1])),
            _long(len(ctx.given[0])),
            _at(ctx.keep),
            _at(slopes[0].contiguous()),
        )
        ctx.spare.append(ctx.keep)
        if shape.padding is not None:  # as in the model: the embedding of padding stays as it is
            gradients[0][shape.padding] = 0
        return (None,) * 7 + tuple(gradients)


_long = ctypes.c_long


def _at(x: Any) -> ctypes.c_void_p:
    """Where the numbers of a tensor or an array begin, or null."""
    if x is None:
        return ctypes.c_void_p()
    return ctypes.c_void_p(x.data_ptr() if isinstance(x, Tensor) else x.ctypes.data)


def _all(tensors: Sequence[Tensor]) -> Any:
    """Where the numbers of several begin."""
    return (ctypes.c_void_p * len(tensors))(*(t.data_ptr() for t in tensors))
