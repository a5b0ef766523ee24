"""Memory: what a run takes on its device, from the model's configuration alone, and what is said where it ran out.

What always holds: no weights are read for a plan. Parameters are counted exactly; what a pass keeps for its backward
pass is what torch keeps of a pass without memory (fake tensors), which leaves out what kernels need for a moment.
"""

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from transformers import AutoModelForCausalLM
from transformers.modeling_layers import GradientCheckpointingLayer

from longstride.core.errors import ConfigError, RunError
from longstride.engines.base import MAX_BATCH
from longstride.engines.config import VLLM, Local
from longstride.learner.likelihood import LOGITS
from longstride.methods.base import ANCHOR
from longstride.models.adapters import adapt
from longstride.models.device import TINY, available, settled_weights, skeleton_of
from longstride.models.load import folder_of
from longstride.models.room import ran_out, what_was_done
from longstride.run.folder import RunFolder
from longstride.run.recipe import Recipe

BYTES = {"float32": 4, "bfloat16": 2}
LENGTHS = 64, 128
"""Tokens of the passes that are looked at: what grows with them is of tokens, the rest of weights."""
LEAST = 512
"""Fewest tokens of a pass that are worth a suggestion, where the recipe has not fewer itself."""
GIB = 2**30


@dataclass(frozen=True, slots=True)
class Kept:
    """Bytes that a forward pass keeps for its backward pass, and how large the model is."""

    token: float
    """A token."""
    checkpointed: float
    """A token, where layers keep their inputs alone; the largest layer counts in full."""
    fixed: float
    """Besides: copies of weights in another type."""
    parameters: int
    trained: int
    """Of the parameters, or of adapters in their place."""
    words: int
    """Rows of the table of embeddings."""


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """What a run takes, in bytes."""

    device: str
    tokens: int
    """Of a training pass."""
    parts: dict[str, int]
    """By name, in the order in which they are said."""
    room: int | None
    """What the device has free; None where it is none of this machine."""
    kept: Kept
    """What a pass keeps."""

    @property
    def needed(self) -> int:
        return sum(self.parts.values())

    @property
    def fits(self) -> bool:
        return self.room is None or self.needed <= self.room

    def __str__(self) -> str:
        """A line for each part, one for their sum and one for what is left."""
        lines = [f"{name:44}{size / GIB:8.2f} GiB" for name, size in self.parts.items() if size]
        left = "not known: it is none of this machine" if self.room is None else ""
        left = left or f"{(self.room or 0) / GIB:8.2f} GiB, left {((self.room or 0) - self.needed) / GIB:.2f}"
        return "\n".join([*lines, f"{'in all':44}{self.needed / GIB:8.2f} GiB", f"{f'free on {self.device}':44}{left}"])


def plan(recipe: Recipe, other: MemoryPlan | None = None, processes: int | None = None) -> MemoryPlan:
    """The memory plan of a recipe, for each of its processes.

    Args:
        recipe: is not made.
        other: of the same recipe with other `micro_tokens`, whose passes need not be looked at again.
        processes: that train together; those of torchrun if left out.

    Raises:
        ConfigError: the model's configuration cannot be read, or its adapters do not fit.
    """
    learner, engine = recipe.learner, recipe.engine
    device = available() if recipe.device == "auto" else recipe.device
    weights = settled_weights(recipe.weights, device, learner.lora is None)
    bfloat16 = learner.dtype == "bfloat16" or learner.dtype == "auto" and device != "cpu"
    kept = other.kept if other else _kept(recipe, weights, bfloat16)
    size, trained = kept.parameters, kept.trained
    processes = int(os.environ.get("WORLD_SIZE", "1")) if processes is None else processes
    shards = processes if learner.sharded else 1
    whole, mine = size * BYTES[weights], trained * (4 if learner.lora else BYTES[weights]) // shards
    referred = sum(
        whole if name is None else BYTES[weights] * _parameters(name)
        for name in recipe.references
        if name is not None or learner.lora is None
    ) * (1 + any(ANCHOR in loss.needs for loss in recipe.losses))
    token = kept.checkpointed if learner.checkpointing else kept.token
    sampled, cache, captured = 0, 0, 0
    if isinstance(engine, Local):
        settled = engine.settled(device, recipe.start)
        sampled = size * BYTES[settled.dtype] * (settled.dtype != weights)
        cache = int(engine.cache_gigabytes * GIB)
        captured = of_captured(kept.words, settled.dtype) * (settled.graphs is True)
    taken = int(engine.memory * total_on(device)) if isinstance(engine, VLLM) and not engine.sleep else 0
    companions = [c.model for c in recipe.companions.values() if isinstance(c.model, str)]
    others = sum(map(_parameters, companions))
    parts = {
        f"weights ({size / 1e9:.2f}B parameters, {weights})": whole // shards,
        f"gradients ({trained / 1e9:.2f}B trained)": mine,
        "optimiser (two moments)": 2 * (trained + trained // 64 if learner.optimiser == "adamw_8bit" else mine),
        "reference": referred // shards,
        "weights with the adapters in them": whole * (learner.lora is not None),
        "weights made whole for engines": whole * (shards > 1 and learner.lora is None),
        "companions": 4 * others,
        "weights in the type of the arithmetic": int(kept.fixed),
        f"activations ({learner.micro_tokens} tokens a pass)": int(token * learner.micro_tokens),
        "logits, and their gradient": 3 * min(LOGITS, 4 * kept.words * learner.micro_tokens),
        "engine: weights in its own type": sampled,
        "engine: keys and values, at most": cache,
        "engine: logits of captured passes, at most": captured,
        "engine: vLLM's share of the device": taken,
    }
    return MemoryPlan(device, learner.micro_tokens, parts, room_on(device), kept)


def of_captured(words: int, dtype: str) -> int:
    """Bytes that captured decoding passes keep, at most: the logits of the largest one, and where all leave theirs."""
    return 2 * MAX_BATCH * words * BYTES[dtype]


def _parameters(model: str) -> int:
    """How many a model has."""
    return sum(p.numel() for p in skeleton_of(model).parameters())


def check_memory(recipe: Recipe) -> None:
    """Refuses a recipe that cannot fit its device, before anything is loaded. Models of a small file are not planned,
    nor those whose configuration cannot be read: loading refuses these.

    Raises:
        ConfigError: what it needs, what is free, and which settings would fit.
    """
    folder = folder_of(recipe.start)
    if folder is not None:
        sizes = [path.stat().st_size for path in folder.glob("*.safetensors")]
        if sizes and sum(sizes) <= 4 * TINY:
            return
    try:
        found = plan(recipe)
    except ConfigError:
        return
    if not found.fits:
        raise ConfigError(
            f"{recipe.model!r} does not fit: this run needs {found.needed / GIB:.1f} GiB on {found.device}, which has "
            f"{(found.room or 0) / GIB:.1f} GiB free; {suggestion(recipe)}\n{found}"
        )


def suggestion(recipe: Recipe) -> str:
    """The settings that would fit, with the least change first."""
    learner: dict[str, Any] = {}
    steps: list[tuple[str, dict[str, Any]]] = [
        ("", {}),
        ("learner.checkpointing=true", {"checkpointing": True}),
        ("learner.lora={}", {"lora": {}}),
    ]
    said: list[str] = []
    for name, change in steps:
        learner, said = learner | change, [*said, name] if name else said
        tokens, found = recipe.learner.micro_tokens, None
        while tokens >= min(LEAST, recipe.learner.micro_tokens):
            found = plan(recipe.replace(learner=learner | {"micro_tokens": tokens}), found)
            if found.fits:
                smaller = [f"learner.micro_tokens={tokens}"] if tokens < recipe.learner.micro_tokens else []
                return f"what fits: {' '.join([*said, *smaller])}"
            tokens //= 2
    return "neither checkpointing nor adapters would make it fit: take a smaller model, or a larger device"


def room_on(device: str) -> int | None:
    """Bytes that are free on a device (on a CPU: that the machine has); None where it is none of this machine."""
    if device == "cpu":
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else None
    if device != available():
        return None
    return torch.cuda.mem_get_info()[0] if device == "cuda" else torch.mps.recommended_max_memory()


def total_on(device: str) -> int:
    """Bytes that a CUDA device of this machine has; 0 for any other."""
    return torch.cuda.mem_get_info()[1] if device == available() == "cuda" else 0


def _kept(recipe: Recipe, weights: str, bfloat16: bool) -> Kept:
    """What a pass of the model keeps."""
    plain = skeleton_of(recipe.start)
    size, words = sum(p.numel() for p in plain.parameters()), plain.get_input_embeddings().weight.shape[0]
    # the product of stacked experts is known without memory in bfloat16 alone
    kind = "bfloat16" if any(p.dim() == 3 for p in plain.parameters()) else weights
    try:
        described = json.dumps(plain.config.to_dict() | {"_name_or_path": ""}, sort_keys=True)
        short, long = _passes(type(plain.config), described, kind, bfloat16)
    except RuntimeError as e:
        raise ConfigError(f"the memory of {recipe.start!r} cannot be planned: {str(e)[:100]}") from e
    if kind != weights:
        wider = BYTES[weights] / BYTES[kind]
        short, long = ([wider * size for size in sizes] for sizes in (short, long))
    if recipe.learner.lora is not None:  # whose own activations are small beside those of the layers that they adapt
        adapt(plain, recipe.learner.lora)
    trained = sum(p.numel() for p in plain.parameters() if p.requires_grad)
    grown = [(b - a) / (LENGTHS[1] - LENGTHS[0]) for a, b in zip(short, long, strict=True)]
    outside, inputs, *inside = grown
    token = outside + sum(inside)
    checkpointed = outside + inputs + max(inside) if inside else token
    fixed = max(0.0, sum(short) - short[1] - token * LENGTHS[0])
    return Kept(token, checkpointed, fixed, size, trained, words)


@lru_cache
def _passes(kind: Any, described: str, weights: str, bfloat16: bool) -> tuple[list[float], list[float]]:
    """`_bytes_of_pass` of a short and a long pass of a model with a configuration of class `kind`, in JSON."""
    config = kind.from_dict(json.loads(described))
    with FakeTensorMode():
        model: Any = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, weights))
        layers = [m for m in model.modules() if isinstance(m, GradientCheckpointingLayer)]
        short, long = (_bytes_of_pass(model, layers, n, bfloat16) for n in LENGTHS)
    return short, long


def _bytes_of_pass(model: Any, layers: list[Any], tokens: int, bfloat16: bool) -> list[float]:
    """Bytes kept outside of layers, those of all layers' inputs, and those kept in each layer."""
    own = {p.untyped_storage()._cdata for p in model.parameters()}
    found: list[dict[int, int]] = [{} for _ in range(len(layers) + 1)]
    alive: list[Any] = []
    at, inputs = 0, 0

    def entered(k: int) -> Callable[..., None]:
        def hook(module: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
            nonlocal at, inputs
            at = k
            inputs += (given[0] if given else named["hidden_states"]).nbytes

        return hook

    def left(*_: Any) -> None:
        nonlocal at
        at = 0

    def pack(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        alive.append(storage)  # so that no later one gets its address
        if storage._cdata not in own and not any(storage._cdata in part for part in found):
            found[at][storage._cdata] = storage.nbytes()
        return tensor

    hooks = [layer.register_forward_pre_hook(entered(k + 1), with_kwargs=True) for k, layer in enumerate(layers)]
    hooks += [layer.register_forward_hook(left) for layer in layers]
    ids = torch.zeros(1, tokens, dtype=torch.long)
    try:
        with (
            torch.autocast("cpu", torch.bfloat16, enabled=bfloat16),
            torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor),
        ):
            (model.get_decoder() or model)(input_ids=ids, use_cache=False)
    finally:
        for hook in hooks:
            hook.remove()
    outside, *inside = (float(sum(part.values())) for part in found)
    return [outside, float(inputs), *inside]


def trouble_on_device(error: RuntimeError) -> str | None:
    """What happened on a device, and what to do: it ran out of memory, it failed, or its processes lost one another;
    None for any other error."""
    first = str(error).strip().partition("\n")[0]
    if ran_out(error):
        wanted = re.search(r"[Tt]ried to allocate ([\d.]+ ?\w+)", str(error))
        return f"out of memory{f' (for {wanted[1]} more)' if wanted else ''} {what_was_done(error)}"
    lost = tuple(kind for kind in (getattr(torch, "AcceleratorError", None), torch.distributed.DistError) if kind)
    if isinstance(error, lost) or "gloo/transport" in first:  # gloo has no type of its own for it
        return (
            f"a device failed, or processes lost one another ({first}); where another process stopped first, its own "
            "message says why; no episode was rewarded for that: see to it"
        )
    return None


@contextmanager
def explained(run: RunFolder) -> Iterator[None]:
    """Adds to an error of the machine or of a device what is kept.

    Raises:
        RunError: in place of that error.
    """
    try:
        with run.explains_trouble():
            yield
    except RuntimeError as e:
        if (found := trouble_on_device(e)) is None:
            raise
        raise RunError(f"{found}; {run.folder} keeps the run up to {run.saved}: resume it with that") from e
