"""The head of a large vocabulary: log-probabilities of P tokens, a part of them at a time, so that the logits of
152,000 words are never there for all of them.

What always holds: values and gradients are those of all tokens at once, up to the order of sums; the backward pass
makes the logits of a part again (a head's work once more), and holds those of one part.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from longstride.learner.likelihood import logprobs_of


def in_parts(
    head: Any, hidden_P_D: Tensor, target_P: Tensor, entropy: bool = False, float32: bool = False, most: int = 1 << 28
) -> tuple[Tensor, Tensor | None]:
    """log pi of the targets, shape (P,), float32 at least, and the entropies if they are asked for.

    Args:
        head: makes logits of hidden states.
        hidden_P_D: the hidden states before the targets.
        target_P: ids.
        entropy: whether the entropy of each distribution is wanted.
        float32: whether the head computes in float32, whatever type weights and hidden states have.
        most: bytes of the float32 logits of a part, unless those of one token are more.
    """
    size = max(1, most // (4 * head.weight.shape[0]))
    parts = [
        checkpoint(_part, head, hidden_C_D, target_C, entropy, float32, use_reentrant=False, preserve_rng_state=False)
        for hidden_C_D, target_C in zip(hidden_P_D.split(size), target_P.split(size), strict=True)
    ]
    logp, entropies = zip(*parts, strict=True)  # pyright: ignore[reportArgumentType]
    return torch.cat(logp), torch.cat(entropies) if entropy else None


def _part(
    head: nn.Module, hidden_C_D: Tensor, target_C: Tensor, entropy: bool, float32: bool
) -> tuple[Tensor, Tensor | None]:
    return logprobs_of(_float32(head, hidden_C_D) if float32 else head(hidden_C_D), target_C, entropy)


def _float32(head: Any, hidden_C_D: Tensor) -> Tensor:
    kind = torch.promote_types(head.weight.dtype, torch.float32)
    bias = None if head.bias is None else head.bias.to(kind)
    with torch.autocast(hidden_C_D.device.type, enabled=False):
        return F.linear(hidden_C_D.to(kind), head.weight.to(kind), bias)
