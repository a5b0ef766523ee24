"""What is done to the local engine's twin of a model before it samples: faster modules, a head in float32, passes that
a GPU replays."""

from typing import Any

from torch import nn

from longstride.core.errors import ModelError
from longstride.engines.fusion import fuse
from longstride.engines.graphs import DecodeGraphs


def prepared(twin: Any, model: Any, graphs: bool, float32_head: bool) -> Any:
    """Prepares a twin of `model`, in place; returns what decodes (`graphs.DecodeGraphs`) where that is asked for.

    Raises:
        ModelError: a head in float32 is asked for, and the model does not say which its head is.
    """
    fuse(twin)
    if float32_head:
        _compute_in_float32(twin, model)
    if not graphs:
        return None
    return DecodeGraphs(twin, model)


def _compute_in_float32(twin: Any, model: Any) -> None:
    """Gives the twin's head the model's own weights in float32: those of the learner, before they were rounded."""
    head, theirs = twin.get_output_embeddings(), model.get_output_embeddings()
    if not isinstance(head, nn.Linear) or type(head) is not type(theirs):
        raise ModelError(f"engine.float32_head: {type(model).__name__} has no linear head of its own; leave it out")
    for name, p in theirs.named_parameters():
        setattr(head, name, nn.Parameter(p.detach().float().clone(), requires_grad=False))
    head.forward = lambda input: nn.Linear.forward(head, input.float())
