"""Faster forwards for the modules that most architectures are made of: fewer passes over the activations.

What always holds: a module keeps its own forward unless it is built as expected and the faster one answers a random
input as its own does, up to rounding; weights are read where they are at every call, nothing is kept of them. A faster
forward writes over intermediate results, so it serves inference only, and attention must be the library's own.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from longstride.engines.attention import attend

TOKENS = 8
"""Of the random input."""


@torch.inference_mode()
def fuse(model: nn.Module) -> None:
    """Gives the modules of a twin faster forwards, where these are known and come out the same. Modules that are not
    in float32 are left alone: there the order of roundings is the architecture's own."""
    for module in model.modules():
        weight = next(module.parameters(), None)
        if weight is None or weight.dtype != torch.float32:
            continue
        noise = torch.Generator().manual_seed(0)
        for fused in (_norm, _gated, _attention):
            try:
                faster = fused(module, lambda *shape, d=weight.device, g=noise: torch.randn(shape, generator=g).to(d))
            except Exception:  # whatever goes wrong in a module that only looks alike, its own forward stays
                continue
            if faster is not None:
                module.forward = faster


def unfuse(model: nn.Module) -> None:
    """Takes the faster forwards away again. A module and its forward hold each other, so that neither would be freed
    before Python looks for cycles."""
    for module in model.modules():
        module.__dict__.pop("forward", None)


def _norm(module: Any, random: Callable[..., Tensor]) -> Callable[..., Tensor] | None:
    """Root mean square normalisation (Zhang and Sennrich 2019)."""
    weight, epsilon = getattr(module, "weight", None), getattr(module, "variance_epsilon", None)
    if weight is None or epsilon is None:
        return None

    def forward(hidden_states: Tensor) -> Tensor:
        norm = torch.linalg.vector_norm(hidden_states, dim=-1, keepdim=True)
        scale = norm.square_().mul_(1 / hidden_states.shape[-1]).add_(epsilon).rsqrt_()
        return (hidden_states * scale).mul_(module.weight)

    x = random(1, TOKENS, weight.shape[-1])
    return forward if _same(forward(x), module(x)) else None


def _gated(module: Any, random: Callable[..., Tensor]) -> Callable[..., Tensor] | None:
    """SwiGLU (Shazeer 2020)."""
    gate = getattr(module, "gate_proj", None)
    if gate is None or not hasattr(module, "up_proj") or not hasattr(module, "down_proj"):
        return None

    def forward(x: Tensor) -> Tensor:
        return module.down_proj(nn.functional.silu(module.gate_proj(x), inplace=True).mul_(module.up_proj(x)))

    x = random(1, TOKENS, gate.in_features)
    return forward if _same(forward(x), module(x)) else None


class _Heard:
    """Stands for a pass's layout, and hears what an attention asks of it."""

    asked: tuple[Any, ...] = ()

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, scale: float, window: int | None) -> Tensor:
        self.asked = (layer, scale, window), query, key, value
        return query[..., : value.shape[-1]].clone()


def _attention(module: Any, random: Callable[..., Tensor]) -> Callable[..., Any] | None:
    """Attention with rotary positions (Su et al. 2021), with or without norms of queries and keys."""
    names = ("q_proj", "k_proj", "v_proj", "o_proj", "head_dim", "layer_idx")
    if not all(hasattr(module, name) for name in names):
        return None
    size: int = module.head_dim
    q_norm, k_norm = (getattr(module, name, None) or nn.Identity() for name in ("q_norm", "k_norm"))
    x, angle, own = random(1, TOKENS, module.q_proj.in_features), random(1, TOKENS, size // 2), _Heard()
    position = angle.cos().repeat(1, 1, 2), angle.sin().repeat(1, 1, 2)
    want, _ = module(x, position_embeddings=position, attention_mask=None, layout=own)
    (_, scale, window), *_ = own.asked
    usual = module.forward

    def forward(
        hidden_states: Tensor,
        position_embeddings: tuple[Tensor, Tensor],
        attention_mask: Tensor | None = None,
        **more: Any,
    ) -> tuple[Tensor, Any]:
        if position_embeddings[0].shape[-1] != size:  # positions turn a part of each head
            return usual(hidden_states, position_embeddings=position_embeddings, attention_mask=attention_mask, **more)
        shape = (*hidden_states.shape[:-1], -1, size)
        query = q_norm(module.q_proj(hidden_states).view(shape))
        key = k_norm(module.k_proj(hidden_states).view(shape))
        value = module.v_proj(hidden_states).view(shape)
        query, key = (_rotated(x, *position_embeddings).transpose(1, 2) for x in (query, key))
        more |= {"scaling": scale, "sliding_window": window}
        answer, _ = attend(module, query, key, value.transpose(1, 2), attention_mask, **more)
        return module.o_proj(answer.flatten(2)), None

    heard = _Heard()
    got, _ = forward(x, position, layout=heard)
    same = all(_same(a, b) for a, b in zip((got, *heard.asked[1:]), (want, *own.asked[1:]), strict=True))
    return forward if same and heard.asked[0] == own.asked[0] else None


def _rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Heads (1, N, heads, size) turned by the angles of their positions (1, N, size)."""
    cos, sin, half = cos.unsqueeze(2), sin.unsqueeze(2), x.shape[-1] // 2
    turned = x * cos
    turned[..., :half].addcmul_(x[..., half:], sin[..., :half], value=-1)
    turned[..., half:].addcmul_(x[..., :half], sin[..., half:])
    return turned


def _same(got: Tensor, want: Tensor) -> bool:
    return got.shape == want.shape and torch.allclose(got, want, rtol=1e-4, atol=1e-5)
