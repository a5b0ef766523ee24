"""The head of a large vocabulary: log-probabilities of P tokens, a part of them at a time, so that the logits of
152,000 words are never there for all of them.

What always holds: values and gradients are those of all tokens at once, up to the order of sums; the backward pass
makes the logits of a part again (a head's work once more), and holds those of one part.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

Read = Callable[[Tensor, Tensor], tuple[Tensor, Tensor | None]]
"""Makes log pi of (P,) targets, and their entropies or None, of (P, V) logits."""


def in_parts(
    head: Any, hidden_P_D: Tensor, target_P: Tensor, read: Read, float32: bool, most: int
) -> tuple[Tensor, Tensor | None]:
    """What `read` makes of the logits of all targets.

    Args:
        head: makes logits of hidden states.
        hidden_P_D: the hidden states before the targets.
        target_P: ids.
        read: is asked for one part after the other.
        float32: whether the head computes in float32, whatever type weights and hidden states have.
        most: bytes of the float32 logits of a part, unless those of one token are more.
    """
    size = max(1, most // (4 * head.weight.shape[0]))
    parts = [
        checkpoint(_part, head, hidden_C_D, target_C, read, float32, use_reentrant=False, preserve_rng_state=False)
        for hidden_C_D, target_C in zip(hidden_P_D.split(size), target_P.split(size), strict=True)
    ]
    logp, entropies = zip(*parts, strict=True)  # pyright: ignore[reportArgumentType]
    return torch.cat(logp), None if entropies[0] is None else torch.cat(entropies)


def _part(
    head: nn.Module, hidden_C_D: Tensor, target_C: Tensor, read: Read, float32: bool
) -> tuple[Tensor, Tensor | None]:
    return read(_float32(head, hidden_C_D) if float32 else head(hidden_C_D), target_C)


def _float32(head: Any, hidden_C_D: Tensor) -> Tensor:
    kind = torch.promote_types(head.weight.dtype, torch.float32)
    bias = None if head.bias is None else head.bias.to(kind)
    with torch.autocast(hidden_C_D.device.type, enabled=False):
        return F.linear(hidden_C_D.to(kind), head.weight.to(kind), bias)
