"""The likelihood: log pi of the trained tokens of a micro-batch, or the hidden states before them, from any Hugging
Face causal language model.

What always holds: logits are computed only where a token is trained, and their log-softmax in float32 at least;
dropout stays off: what is trained is the distribution that was sampled from. What a model can do (its head apart from
its decoder, rows that branch) is found out by putting a few ids through it both ways.
"""

import inspect
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers.modeling_layers import GradientCheckpointingLayer

from longstride.core.errors import ModelError
from longstride.engines.fit import misfit, usual_attention
from longstride.learner.auxiliary import HasLosses
from longstride.learner.batching import MicroBatch
from longstride.learner.compiled import compile_layers
from longstride.learner.config import LearnerConfig
from longstride.learner.fused_head import liger_head
from longstride.learner.head import in_parts
from longstride.learner.tree_attention import NAME, Forest
from longstride.models.kernels import settled
from longstride.models.native import Decoder, supported

EAGER_LENGTH = 512
"""Rows up to this length use plain attention in bfloat16 on a CPU, whose fused backward pass is slow there: 30,000
tokens a second against 17,000 at 84 tokens a row (0.4M parameters, 2 cores). Longer rows need the fused one's memory;
in float32 the fused one is faster at any length (1.1 times at 100 tokens, 3.4 at 1000)."""


LOGITS = 1 << 28
"""Bytes of float32 logits that are made at once."""


def native_bfloat16(device: torch.device) -> bool:
    """Whether the device computes in bfloat16 itself. A CPU without the instructions imitates it."""
    if device.type != "cpu":
        return True
    can = torch.cpu.get_capabilities()
    return any(can.get(name, False) for name in ("avx512_bf16", "amx_bf16", "bf16"))


def _close(a: Tensor, b: Tensor) -> bool:
    """Whether the logits of a probe agree, up to the rounding of their type."""
    if a.dtype in (torch.bfloat16, torch.float16):
        return bool((a - b).abs().max() <= 0.25 * b.std())
    return torch.allclose(a, b, rtol=1e-3, atol=1e-4)


def logits_of(model: nn.Module, ids_B_L: Tensor, **more: Any) -> Tensor:
    """What a model says, without keeping a cache where it has one."""
    if "use_cache" in inspect.signature(model.forward).parameters:
        more["use_cache"] = False
    return model(ids_B_L, **more).logits


def decoder_of(model: nn.Module) -> Any:
    """What of a model makes its last hidden states; None where it does not say."""
    whole: Any = model
    decoder = whole.get_decoder() if hasattr(model, "get_decoder") else None
    return None if decoder is model else decoder


def split_head(model: nn.Module) -> tuple[Any, Any] | None:
    """Decoder and head of a model whose logits are `head(decoder(ids))`; None for any other.

    Some models do more to their logits (Gemma 2 caps, Cohere scales), so a few ids are put through both ways.
    """
    whole: Any = model
    decoder = decoder_of(model)
    head = whole.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    if decoder is None or head is None:
        return None
    ids = torch.tensor([[0, 1, 1, 0]], device=next(model.parameters()).device)
    with torch.no_grad():
        want = logits_of(model, ids)
        got = head(decoder(input_ids=ids, use_cache=False).last_hidden_state)
    exact = got.dtype in (torch.float32, torch.float64)  # a soft cap moves small logits by little
    same = torch.allclose(got, want, rtol=1e-5, atol=1e-6) if exact else _close(got, want)
    return (decoder, head) if same else None


@torch.no_grad()
def takes_trees(model: nn.Module) -> bool:
    """Whether a model computes a row that branches: its attention can be replaced and its positions be given, and a few
    ids come out as they do in rows of their own."""
    whole: Any = model
    if misfit(model):
        return False
    device = next(model.parameters()).device
    want = whole(torch.tensor([[0, 1, 1, 0], [0, 1, 0, 1]], device=device), use_cache=False).logits
    usual = whole.config._attn_implementation
    forest = Forest([0, 1, 2, 3, 2, 3], [6, 6, 4, 4, 6, 6], device)
    try:
        whole.set_attn_implementation(NAME)
        got = whole(
            input_ids=torch.tensor([[0, 1, 1, 0, 0, 1]], device=device),
            position_ids=forest.position_N.unsqueeze(0),
            use_cache=False,
            forest=forest,
        ).logits[0]
    except (ModelError, TypeError, ValueError, RuntimeError, AttributeError):
        return False
    finally:
        whole.set_attn_implementation(usual)
    return _close(got[:4], want[0]) and _close(got[4:], want[1, 2:])


@torch.no_grad()
def takes_padding(model: nn.Module) -> bool:
    """Whether what stands behind a row changes nothing of it: rows of several lengths may be padded to one."""
    ids = torch.tensor([[0, 1, 1, 0, 0, 1, 1, 1], [1, 0, 1, 0, 0, 0, 0, 0]], device=next(model.parameters()).device)
    alone = torch.cat([logits_of(model, row[None, :4]) for row in ids])
    return _close(logits_of(model, ids)[:, :4], alone)


def log_likelihood(
    model: nn.Module,
    batch: MicroBatch,
    split: tuple[Any, Any] | None,
    entropy: bool = False,
    float32: bool = False,
    fused: Any = None,
) -> Tensor:
    """log pi of the trained tokens, shape (P,), float32 (float64 for a model in float64); with `entropy` it also sets
    `batch.entropy_P`.

    With decoder and head apart (`split`) the head runs on the P trained positions only, and where their logits would
    be large, on a part of them at a time, in float32 if that is asked for, or by a head of its own (`fused`). No
    attention mask is needed, for padding is on the right; without one SDPA takes its fast causal path.
    """
    read = partial(_logprobs_of, entropy=entropy)
    if split is None:
        logits_P_V = logits_of(model, batch.ids_B_L, **_trees(batch)).flatten(0, 1)[batch.at_P]
    else:
        decoder, head = split
        hidden_P_D = hidden_states(decoder, batch)
        if fused is not None and not entropy:
            batch.entropy_P = None
            return fused(hidden_P_D, batch.target_P)
        if float32 or 4 * len(hidden_P_D) * head.weight.shape[0] > LOGITS:
            logp_P, batch.entropy_P = in_parts(head, hidden_P_D, batch.target_P, read, float32, LOGITS)
            return logp_P
        logits_P_V = head(hidden_P_D)
    logp_P, batch.entropy_P = read(logits_P_V, batch.target_P)
    return logp_P


def _logprobs_of(logits_P_V: Tensor, target_P: Tensor, entropy: bool) -> tuple[Tensor, Tensor | None]:
    logits_P_V = logits_P_V.to(torch.promote_types(logits_P_V.dtype, torch.float32))
    logp_P_V = logits_P_V.log_softmax(-1) if entropy else None
    entropy_P = -(logp_P_V.exp() * logp_P_V).sum(-1) if logp_P_V is not None else None
    return -F.cross_entropy(logits_P_V, target_P, reduction="none"), entropy_P


def hidden_states(decoder: Any, batch: MicroBatch) -> Tensor:
    """The last hidden states at the places before the trained tokens, shape (P, D)."""
    found = decoder(input_ids=batch.ids_B_L, use_cache=False, **_trees(batch))
    return found.last_hidden_state.flatten(0, 1)[batch.at_P]


def _trees(batch: MicroBatch) -> dict[str, Any]:
    """What a model needs besides the ids of a batch whose rows branch."""
    if batch.forest is None:
        return {}
    return {"forest": batch.forest, "position_ids": batch.forest.position_N.unsqueeze(0)}


class TokenLikelihood(nn.Module):
    """log pi of the trained tokens of micro-batches under a model.

    Args:
        model: a causal language model.
        config: its `dtype`, `checkpointing`, `compile`, `head`, `float32_head` and `packed` are read.

    Raises:
        ModelError: `checkpointing`, `compile`, `head` or `float32_head` is asked for and cannot be had, or only with
            dropout.
    """

    def __init__(self, model: nn.Module, config: LearnerConfig) -> None:
        super().__init__()
        self.model: Any = model.eval()
        device = next(model.parameters()).device
        self._device_type = device.type
        self._split = split_head(model)
        plain = not (config.dtype == "bfloat16" or config.checkpointing or config.sharded or config.compile)
        known = plain and self._split is not None and supported(model)
        self.native = known and settled(config.kernels) == "native"
        """Whether one call computes a pass, on one core."""
        if self.native and self._split is not None:
            self._split = Decoder(model), self._split[1]
        by_device = not self.native and native_bfloat16(device)
        self._bfloat16 = by_device if config.dtype == "auto" else config.dtype == "bfloat16"
        self.trees = takes_trees(model) and not isinstance(model, HasLosses)
        """Whether rows may branch."""
        self.padded = takes_padding(model)
        """Whether rows of several lengths may stand in one pass."""
        self.layers = [m for m in model.modules() if isinstance(m, GradientCheckpointingLayer)]
        """The layers of the model, where it says which they are."""
        self.packed = self.trees and (device.type != "cpu" if config.packed == "auto" else config.packed)
        """Whether rows stand one behind the other."""
        self._float32_head = config.float32_head
        if config.float32_head and self._split is None:
            raise ModelError(f"learner.float32_head: the head of {type(model).__name__} cannot be run by itself")
        if config.head == "liger" and self._split is None:
            raise ModelError(f"learner.head = 'liger': the head of {type(model).__name__} cannot be run by itself")
        own = config.float32_head or config.head == "liger"
        if own and self._split is not None and hasattr(self._split[1], "lora_A"):
            raise ModelError(
                "learner.lora has adapters of the head, which learner.float32_head and learner.head = 'liger' would "
                "leave out; leave the head out of learner.lora.targets, or these settings"
            )
        self._fused: Any = None
        if config.head == "liger" and self._split is not None:
            self._fused = liger_head(self._split[1], config.float32_head)
        self._attention, self._usual = "", usual_attention(model)
        self._checkpointing = config.checkpointing
        if config.checkpointing:
            self._enable_checkpointing(device)
        if config.compile:
            compile_layers(self.layers, type(model).__name__)

    def forward(self, batch: MicroBatch, hidden: bool = False, entropy: bool = False) -> Tensor:
        """log pi, shape (P,) (see `log_likelihood`), or the `hidden_states`, shape (P, D).

        Raises:
            ModelError: the model does not say what makes its hidden states; or the batch has images or data, and it
                takes text alone.
        """
        decoder = self._split[0] if self._split is not None else decoder_of(self.model)
        if batch.media:
            raise ModelError(
                f"a sample has {next(iter(batch.media.values()))}, and {type(self.model).__name__} takes text alone; "
                "set chat.media=leave_out, which leaves images and data out of prompts and counts them"
            )
        if hidden and decoder is None:
            raise ModelError(f"{type(self.model).__name__} has no `get_decoder`: its hidden states cannot be read")
        self._choose_attention(batch)
        self._recompute(self._checkpointing and torch.is_grad_enabled())
        try:
            with torch.autocast(self._device_type, torch.bfloat16, enabled=self._bfloat16):
                if hidden:
                    return hidden_states(decoder, batch).float()
                return log_likelihood(self.model, batch, self._split, entropy, self._float32_head, self._fused)
        finally:
            self._recompute(False)

    def rest(self) -> None:
        """Leaves the model with an attention that works without trees; to be called after the last backward pass, which
        may compute layers again."""
        if self._attention == NAME:
            self._attend(self._usual)

    def _recompute(self, on: bool) -> None:
        """Layers recompute only in training mode. They alone are put into it, not what they hold: no dropout."""
        for layer in self.layers:
            layer.training = on

    def _enable_checkpointing(self, device: torch.device) -> None:
        ids, name = torch.tensor([[0, 1, 1, 0]], device=device), type(self.model).__name__
        want = logits_of(self.model, ids)
        try:
            enable = getattr(self.model, "activation_checkpointing_enable", None)  # its name in later versions
            (enable or self.model.gradient_checkpointing_enable)({"use_reentrant": False})
        except ValueError as e:
            raise ModelError(f"learner.checkpointing: {name} has no layers that can be computed again: {e}") from e
        self._recompute(True)
        got = logits_of(self.model, ids)
        self._recompute(False)
        if not _close(got, want):
            raise ModelError(f"learner.checkpointing: {name} drops out within its layers; set its dropout to 0")

    def _choose_attention(self, batch: MicroBatch) -> None:
        plain = self._bfloat16 and self._device_type == "cpu" and batch.ids_B_L.shape[1] <= EAGER_LENGTH
        self._attend(NAME if batch.forest is not None else "eager" if plain else self._usual)

    def _attend(self, kind: str) -> None:
        if self._attention != kind:
            self.model.set_attn_implementation(kind)
            self._attention = kind
