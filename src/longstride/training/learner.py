"""The learner: samples with per-token weights become optimiser steps.

What a step minimises is an `algorithms.Loss`; left out, it is `Reinforce`: over N samples `-(1/N) sum_samples
sum_tokens w_t log pi(token | before)`. What always holds: the gradient does not depend on how a step is cut into
micro-batches; logits are computed only where a token is trained and their log-softmax in float32; a step whose
gradient is not finite changes nothing and is counted. The learner is blind to the algorithm. Dropout stays off: what
is trained is the distribution that was sampled from.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from longstride.algorithms.losses import Drift, Loss, Reinforce
from longstride.core.errors import RunError
from longstride.training.batching import MicroBatch, Trainable, chains, micro_batches, rows_of, shuffled, steps_of
from longstride.training.config import LearnerConfig

EAGER_LENGTH = 512
"""Rows up to this length use plain attention in bfloat16 on a CPU, whose fused backward pass is slow there: 30,000
tokens a second against 17,000 at 84 tokens a row (0.4M parameters, 2 cores). Longer rows need the fused one's memory;
in float32 the fused one is faster at any length (1.1 times at 100 tokens, 3.4 at 1000)."""
PATIENCE = 10
"""Steps in a row without a finite gradient after which training is given up."""


def native_bfloat16(device: torch.device) -> bool:
    """Whether the device computes in bfloat16 itself. A CPU without the instructions imitates it."""
    if device.type != "cpu":
        return True
    can = torch.cpu.get_capabilities()
    return any(can.get(name, False) for name in ("avx512_bf16", "amx_bf16", "bf16"))


def split_head(model: nn.Module) -> tuple[Any, Any] | None:
    """Decoder and head of a model whose logits are `head(decoder(ids))`; None for any other.

    Some models do more to their logits (Gemma 2 caps, Cohere scales), so a few ids are put through both ways.
    """
    if not (hasattr(model, "get_decoder") and hasattr(model, "get_output_embeddings")):
        return None
    whole: Any = model
    decoder, head = whole.get_decoder(), whole.get_output_embeddings()
    if decoder is None or decoder is model or head is None:
        return None
    ids = torch.tensor([[0, 1, 1, 0]], device=next(model.parameters()).device)
    with torch.no_grad():
        want = whole(ids).logits
        got = head(decoder(input_ids=ids, use_cache=False).last_hidden_state)
    return (decoder, head) if torch.allclose(got, want, rtol=1e-3, atol=1e-4) else None


def log_likelihood(model: nn.Module, batch: MicroBatch, split: tuple[Any, Any] | None) -> Tensor:
    """log pi of the trained tokens, shape (P,), float32.

    With decoder and head apart (`split`) the head runs on the P gathered positions only: a vocabulary of 150,000 times
    every prompt token is most of a small model's work. No attention mask is needed, for padding is on the right;
    without one SDPA takes its fast causal path.
    """
    if split is None:
        logits_P_V = model(batch.ids_B_L).logits.flatten(0, 1)[batch.at_P]
    else:
        decoder, head = split
        hidden_B_L_D = decoder(input_ids=batch.ids_B_L, use_cache=False).last_hidden_state
        logits_P_V = head(hidden_B_L_D.flatten(0, 1)[batch.at_P])
    return -F.cross_entropy(logits_P_V.float(), batch.target_P, reduction="none")


class Learner:
    """AdamW over a language model, with the linear warm-up and cosine of `LearnerConfig`.

    Args:
        model: a causal language model; its parameters are changed in place.
        config: the numbers.
        loss: what is minimised.
    """

    def __init__(self, model: nn.Module, config: LearnerConfig, loss: Loss | None = None) -> None:
        self.model: Any = model.eval()
        self.config = config
        self.loss = loss or Reinforce()
        self._attention = ""
        self._split = split_head(model)
        self.parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        first = next(iter(self.parameters.values()))
        self.device = first.device
        wanted = config.dtype
        self._bfloat16 = native_bfloat16(self.device) if wanted == "auto" else wanted == "bfloat16"
        self.optimiser = torch.optim.AdamW(
            self.parameters.values(), config.lr, config.betas, weight_decay=config.weight_decay, fused=True
        )
        self.steps = 0
        """Optimiser steps taken, skipped ones included: the place in the learning-rate schedule."""
        self.skipped = 0
        """Steps that were skipped because their loss or gradient was not finite."""
        self._skipped_in_a_row = 0

    def lr(self, step: int) -> float:
        """Learning rate of optimiser step `step`, counted from 0."""
        c = self.config
        if step < c.warmup_steps:
            return c.lr * (step + 1) / c.warmup_steps
        if c.decay_steps is None:
            return c.lr
        done = min((step - c.warmup_steps) / max(c.decay_steps - c.warmup_steps, 1), 1.0)
        return c.lr * (c.min_lr_ratio + (1 - c.min_lr_ratio) * (1 + math.cos(math.pi * done)) / 2)

    def accumulate(self, samples: Sequence[Trainable], prompt_weight: float = 0.0) -> tuple[float, dict[str, float]]:
        """Sets the gradients of one optimiser step's loss; returns the loss, and `tokens` (trained) with the metrics
        of `algorithms.losses.Drift`."""
        self.optimiser.zero_grad()
        shares, denominator = self.loss.aggregation(samples)
        loss, drift = 0.0, Drift()
        for batch in micro_batches(rows_of(samples, shares, prompt_weight), self.config.micro_tokens, self.device):
            terms = self.loss(self._log_likelihood(batch), batch)
            part = terms.loss_P.sum() / denominator
            part.backward()
            drift.add(terms)
            loss += part.item()
        return loss, {"tokens": drift.tokens, **drift.metrics()}

    def _log_likelihood(self, batch: MicroBatch) -> Tensor:
        self._choose_attention(batch.ids_B_L.shape[1])
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self._bfloat16):
            return log_likelihood(self.model, batch, self._split)

    @torch.no_grad()
    def _with_proximal(self, samples: Sequence[Any]) -> list[Any]:
        """Copies of samples with the log-probabilities of their tokens under the weights as they are now."""
        whole = [replace(s, weights=[1.0] * len(s.sampled_ids)) for s in samples]  # a weight of 0 would be left out
        found: list[list[float]] = [[] for _ in samples]
        for batch in micro_batches(rows_of(whole), self.config.micro_tokens, self.device):
            for n, logp in zip(batch.sequence_P.tolist(), self._log_likelihood(batch).tolist(), strict=True):
                found[n].append(logp)
        return [replace(s, proximal=logps) for s, logps in zip(samples, found, strict=True)]

    def _choose_attention(self, length: int) -> None:
        plain = self._bfloat16 and self.device.type == "cpu" and length <= EAGER_LENGTH
        kind = "eager" if plain else "sdpa"
        if self._attention != kind:
            self.model.set_attn_implementation(kind)
            self._attention = kind

    def step(self, samples: Sequence[Trainable], prompt_weight: float = 0.0) -> dict[str, float]:
        """One optimiser step on all of `samples`.

        Args:
            samples: at least one.
            prompt_weight: weight of the language-model loss on the newest observation (see `batching.row_of`).

        Returns:
            `loss`, `grad_norm` (before clipping), `lr`, `tokens` (trained), `skipped` (1 where the step changed
            nothing), and for a loss with a ratio the metrics of `algorithms.losses.Drift`.

        Raises:
            RunError: the tenth step in a row without a finite gradient.
        """
        lr = self.lr(self.steps)
        loss, found = self.accumulate(samples, prompt_weight)
        trained = [p for p in self.parameters.values() if p.grad is not None]
        norm = nn.utils.clip_grad_norm_(trained, self.config.clip).item() if trained else 0.0
        finite = math.isfinite(loss) and math.isfinite(norm)
        self.steps += 1
        if finite:
            for group in self.optimiser.param_groups:
                group["lr"] = lr
            self.optimiser.step()
            self._skipped_in_a_row = 0
        else:
            self.skipped += 1
            self._skipped_in_a_row += 1
            if self._skipped_in_a_row >= PATIENCE:
                raise RunError(
                    f"{PATIENCE} steps in a row had no finite gradient (last loss {loss}); the last checkpoint "
                    "is whole: run anew from it with a lower learner.lr or learner.dtype = 'float32'"
                )
        self.optimiser.zero_grad()
        return {"loss": loss, "grad_norm": norm, "lr": lr, "skipped": int(not finite), **found}

    def update(
        self,
        samples: Sequence[Trainable],
        rng: random.Random,
        progress: Callable[[int, int], None] | None = None,
    ) -> dict[str, Any]:
        """Trains on `samples` for `config.epochs`: shuffled, cut into steps of about `config.batch_samples`.

        Returns:
            means over the finite steps of `loss` and `grad_norm` (0 without any), the last `lr`, and counts:
            `trained_turns`, `trained_tokens` (both of one epoch times the epochs), `steps`, `skipped`. For a loss with
            a ratio also the metrics of `algorithms.losses.Drift`: means over the finite steps, of `ratio_max` the
            largest.
        """
        c = self.config
        chained = chains(self._with_proximal(samples) if self.loss.proximal else samples)
        batches = [b for _ in range(c.epochs) for b in steps_of(shuffled(chained, rng), c.batch_samples)]
        done: list[dict[str, float]] = []
        for n, batch in enumerate(batches, 1):
            done.append(self.step(batch))
            if progress is not None:
                progress(n, len(batches))
        finite = [d for d in done if not d["skipped"]]
        return {
            "loss": sum(d["loss"] for d in finite) / max(len(finite), 1),
            "grad_norm": sum(d["grad_norm"] for d in finite) / max(len(finite), 1),
            "lr": done[-1]["lr"] if done else self.lr(self.steps),
            "trained_turns": len(samples) * c.epochs,
            "trained_tokens": sum(int(d["tokens"]) for d in done),
            "steps": len(done),
            "skipped": len(done) - len(finite),
            **{
                name: max(values) if name == "ratio_max" else sum(values) / len(values)
                for name in ("clip_fraction", "approx_kl", "ratio_max")
                if (values := [d[name] for d in finite if name in d])
            },
        }

    def state(self) -> tuple[dict[str, Tensor], dict[str, float]]:
        """All that an exact resume needs besides the weights: tensors (the moments) and numbers, for safetensors
        and JSON."""
        tensors = {
            f"{key}/{name}": value.detach()
            for name, p in self.parameters.items()
            for key, value in self.optimiser.state.get(p, {}).items()
        }
        return tensors, {"steps": self.steps, "skipped": self.skipped, "skipped_in_a_row": self._skipped_in_a_row}

    def load_state(self, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> None:
        """Takes back what `state` gave.

        Raises:
            RunError: it belongs to another model.
        """
        known = {f"{key}/{name}" for name in self.parameters for key in ("step", "exp_avg", "exp_avg_sq")}
        strange = sorted(set(tensors) - known)
        if strange:
            raise RunError(f"optimiser state of another model: {strange[0]!r} is no parameter of this one")
        self.optimiser.state.clear()
        for full, value in tensors.items():
            key, _, name = full.partition("/")
            p = self.parameters[name]
            if key != "step" and value.shape != p.shape:
                raise RunError(
                    f"optimiser state of another model: {full!r} is {tuple(value.shape)}, not {tuple(p.shape)}"
                )
            self.optimiser.state[p][key] = value.to(p.device, copy=True)
        try:
            self.steps, self.skipped = int(numbers["steps"]), int(numbers["skipped"])
            self._skipped_in_a_row = int(numbers["skipped_in_a_row"])
        except (KeyError, TypeError, ValueError) as e:
            raise RunError(f"optimiser state is damaged: {type(e).__name__} {e}") from e
