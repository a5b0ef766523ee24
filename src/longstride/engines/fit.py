"""Which models an attention of our own fits: what can be told of a model without its weights.

What always holds: a reason that is found is a reason; where none is found, the probe of who computes has the last word
(`local.LocalEngine`, `learner.likelihood.takes_trees`).
"""

import inspect
from typing import Any

import torch

from longstride.core.errors import ConfigError, ModelError
from longstride.engines.attention import NAME, KeyValueStore, Layout, Piece
from longstride.models.device import skeleton_of
from longstride.models.load import folder_of

ATTENTION = frozenset(("attention", "full_attention", "sliding_attention"))
"""Layers that see all that comes before, or a window of it, and keep nothing besides keys and values."""


def usual_attention(model: Any) -> str:
    """The fastest attention that a model has without an attention of our own."""
    return "sdpa" if getattr(model, "_supports_sdpa", False) else "eager"


def misfit(model: Any) -> str:
    """What of a model is in the way of an attention of our own; empty where nothing is known to be."""
    if not getattr(model, "_supports_attention_backend", False):
        return "its attention cannot be replaced"
    config = model.config.get_text_config()
    kinds = {kind for name in ("layer_types", "layers_block_type") for kind in getattr(config, name, None) or ()}
    if kinds - ATTENTION:
        return f"it has layers of {' and '.join(sorted(kinds - ATTENTION))}"
    if not {"position_ids", "logits_to_keep"} <= inspect.signature(model.forward).parameters.keys():
        return "its forward lacks position_ids or logits_to_keep"
    return ""


def misfit_of(model: str) -> str:
    """The same of a model as `Recipe.model` names it, from its configuration alone: what a pass without memory asks of
    the attention counts too. Empty for a configuration that cannot be read, which loading refuses."""
    return _found(model)[0]


def has_fixed_pass(model: str) -> bool:
    """Whether a pass runs the same operations whatever its numbers are, so that it can be captured. False for a
    configuration that cannot be read."""
    return _found(model)[1]


_KNOWN: dict[str, tuple[str, bool]] = {}
"""By configuration, or name on the hub, what `_found` found: a model without memory takes a tenth of a second."""


def _found(model: str) -> tuple[str, bool]:
    try:
        folder = folder_of(model)
        text = (folder / "config.json").read_text(encoding="utf-8") if folder else model
        if text not in _KNOWN:
            skeleton = skeleton_of(model)
            reason = misfit(skeleton)
            _KNOWN[text] = (reason, False) if reason else _in_a_pass(skeleton)
    except (ConfigError, ModelError, OSError, UnicodeDecodeError):
        return "", False
    return _KNOWN[text]


def _in_a_pass(skeleton: Any) -> tuple[str, bool]:
    layout = Layout(KeyValueStore(1, 4), [Piece(0, 0, 4)], torch.device("meta"))
    ids = torch.zeros(1, 4, dtype=torch.long, device="meta")
    skeleton.set_attn_implementation(NAME)
    try:
        with torch.no_grad():
            skeleton(ids, position_ids=layout.position_N[None], use_cache=False, logits_to_keep=1, layout=layout)
    except ModelError as e:
        return str(e), False
    except (TypeError, AttributeError):
        return "its attention takes no other in its place", False
    except (RuntimeError, NotImplementedError):  # of what depends on numbers, such as the experts of tokens
        return "", False
    return "", True
