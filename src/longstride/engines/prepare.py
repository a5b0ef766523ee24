"""The twin of a model that an engine of this process samples from, and what is done to it before: faster modules, a
head in float32, passes that a GPU replays."""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from longstride.core.errors import ModelError
from longstride.engines.fusion import fuse
from longstride.engines.graphs import DecodeGraphs

TOLERANCE = 0.02, 0.5
"""How far the logits of a probe may lie off, relative to their spread (float32, otherwise): far above rounding."""


def twin_of(model: nn.Module, dtype: torch.dtype, shared: bool) -> Any:
    """A second module of the same structure with a configuration of its own, whose parameters are those of `model`
    where the type is `dtype` and they are to be shared, and copies otherwise."""
    known: dict[int, Any] = {id(b): b for b in model.buffers()}
    for p in model.parameters():
        same = p.dtype == dtype or not p.is_floating_point()
        copied = nn.Parameter(p.detach().to(p.dtype if same else dtype, copy=True), requires_grad=False)
        known[id(p)] = p if same and shared else copied
    twin: Any = copy.deepcopy(model, known)
    return twin.eval()


def own_logits(model: Any, ids: Sequence[int], dtype: torch.dtype) -> tuple[Tensor, float]:
    """What a model itself says after each of some ids, (ids, vocabulary) in float32, and how far a twin in `dtype` may
    lie off.

    Raises:
        ModelError: its weights change with a pass, so that no twin could share them.
    """
    training, versions = model.training, [p._version for p in model.parameters()]
    try:
        found = model.eval()(input_ids=torch.tensor([ids], device=next(model.parameters()).device), use_cache=False)
    finally:
        model.train(training)
    if versions != [p._version for p in model.parameters()]:
        raise ModelError(
            f"a pass of {type(model).__name__} changes its weights, so that what samples and what trains would differ; "
            "for RWKV set rescale_every to 0 in config.json"
        )
    exact = dtype == next(model.parameters()).dtype == torch.float32
    logits = found.logits[0].float()
    return logits, TOLERANCE[0 if exact else 1] * logits.std().item()


def prepared(twin: Any, model: Any, graphs: bool, float32_head: bool) -> Any:
    """Prepares a twin of `model`, in place; returns what decodes (`graphs.DecodeGraphs`) where that is asked for.

    Raises:
        ModelError: a head in float32 is asked for, and the model does not say which its head is.
    """
    fuse(twin)
    if float32_head:
        compute_in_float32(twin, model)
    if not graphs:
        return None
    return DecodeGraphs(twin, model)


def compute_in_float32(twin: Any, model: Any) -> None:
    """Gives the twin's head the model's own weights in float32: those of the learner, before they were rounded."""
    head, theirs = twin.get_output_embeddings(), model.get_output_embeddings()
    if not isinstance(head, nn.Linear) or type(head) is not type(theirs):
        raise ModelError(f"engine.float32_head: {type(model).__name__} has no linear head of its own; leave it out")
    for name, p in theirs.named_parameters():
        setattr(head, name, nn.Parameter(p.detach().float().clone(), requires_grad=False))
    head.forward = lambda input: nn.Linear.forward(head, input.float())
