"""A Llama whose last layers have experts in the place of their feed-forward network: two mixtures side by side, one in
which tokens choose and one in which tasks are told apart (T2MIR, Wu et al., 2025, arXiv 2506.05426).

What always holds: a token is computed by `chosen` experts of each mixture and depends on nothing that comes after it;
the numbers that are saved are all of it, so a folder loads as any other (`AutoModelForCausalLM`, once this module is
imported); noise is drawn and losses are kept only where the model is `watched`.

The losses are those of the released code (NJU-RL/T2MIR), but for the load, whose formula is that of Shazeer et al.,
2017 (arXiv 1701.06538, appendix A).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from longstride.core.component import Component
from longstride.core.errors import ModelError
from longstride.core.numbers import Count, Share, Weight

Several = Annotated[int, Field(ge=2)]
LEAST = 0.01
"""Of the deviation of a logit's noise."""


class Experts(Component):
    """The shape of the experts and the weights of their losses; numbers are those of the released code (dark rooms),
    but for `tasks`, which it sets to 12 there and to 8 elsewhere, and `ffn`, 128 there."""

    tokens: Several = 6
    """Experts among which tokens choose, all as often as each other (the balance)."""
    tasks: Several = 8
    """Experts among which tasks are told apart (the contrast)."""
    chosen: Count = 2
    """Experts of each kind that compute a token."""
    ffn: Count = 48
    """Inner width of an expert. Those that compute a token have as many weights as one network of 5/3 `chosen` times
    this width."""
    layers: Count = 1
    """How many of the last layers have experts."""
    balance: Weight = 0.1
    """Weight of the balance."""
    contrast: Weight = 0.01
    """Weight of the contrast."""
    momentum: Share = 0.005
    """How far the gate that makes the keys of the contrast follows the gate in each step (tau)."""

    @model_validator(mode="after")
    def _some_are_left_out(self) -> Self:
        if self.chosen >= min(self.tokens, self.tasks):
            raise ValueError(f"chosen ({self.chosen}) must be below tokens ({self.tokens}) and tasks ({self.tasks})")
        return self


class LlamaExpertsConfig(LlamaConfig):
    """`experts` holds the fields of `Experts`."""

    model_type = "llama_experts"
    experts: dict[str, Any] | None = None


class Expert(nn.Module):
    """A gated network from D to M."""

    def __init__(self, width: int, inner: int, out: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, out, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Mixture(nn.Module):
    """Experts, of which those with the greatest logits compute a token, weighed by a softmax over them."""

    def __init__(self, width: int, out: int, number: int, shape: Experts) -> None:
        super().__init__()
        self.experts = nn.ModuleList(Expert(width, shape.ffn, out) for _ in range(number))
        self.out, self.chosen = out, shape.chosen

    def forward(self, x_N_D: Tensor, logits_N_E: Tensor) -> Tensor:
        top_N_K, which_N_K = logits_N_E.topk(self.chosen)
        weight_N_K = top_N_K.softmax(-1)
        out_N_M = x_N_D.new_zeros(len(x_N_D), self.out)
        for number, expert in enumerate(self.experts):
            token, place = (which_N_K == number).nonzero(as_tuple=True)
            part = weight_N_K[token, place, None] * expert(x_N_D[token])
            out_N_M = out_N_M.index_add(0, token, part.to(out_N_M.dtype))
        return out_N_M


@dataclass(slots=True)
class GatesSaid:
    """What the gates said in a pass, [B, L, E] each."""

    logits: Tensor
    """Of the tokens' gate."""
    noisy: Tensor
    """The same with the noise by which experts were chosen."""
    spread: Tensor
    """Deviation of that noise."""
    query: Tensor
    """Probabilities by the tasks' gate."""
    key: Tensor
    """The same by the gate that follows it, without gradient."""


def gate(width: int, experts: int) -> nn.Sequential:
    """Logits of experts."""
    first, second = (nn.Linear(d, experts, bias=False) for d in (width, experts))
    return nn.Sequential(first, nn.Tanh(), second)


class ExpertLayer(nn.Module):
    """Both mixtures, in the place of a feed-forward network: each gives one half of the output."""

    key_0: Tensor
    key_2: Tensor
    """Weights of the gate that follows the tasks' gate."""

    def __init__(self, width: int, shape: Experts) -> None:
        super().__init__()
        self.token_gate, self.task_gate = gate(width, shape.tokens), gate(width, shape.tasks)
        self.spread = nn.Linear(width, shape.tokens, bias=False)
        self.likeness = nn.Parameter(torch.zeros(shape.tasks, shape.tasks))
        """W of the contrast: how alike a query and a key are is their product with it."""
        for name, weight in self.task_gate.named_parameters():
            self.register_buffer(f"key_{name[0]}", torch.zeros_like(weight))
        self.tokens = Mixture(width, width // 2, shape.tokens, shape)
        self.tasks = Mixture(width, width // 2, shape.tasks, shape)
        self.watched = self.noisy = False
        self.routed: GatesSaid | None = None

    def forward(self, x: Tensor) -> Tensor:
        logits, by_task = self.token_gate(x), self.task_gate(x)
        noisy = logits
        if self.watched:
            spread = F.softplus(self.spread(x)) + LEAST
            if self.noisy:
                noisy = logits + spread * torch.randn_like(logits)
            key = F.linear(F.linear(x.detach(), self.key_0).tanh(), self.key_2).softmax(-1)
            self.routed = GatesSaid(logits, noisy, spread, by_task.softmax(-1), key)
        x_N_D = x.flatten(0, -2)
        found = self.tokens(x_N_D, noisy.flatten(0, -2)), self.tasks(x_N_D, by_task.flatten(0, -2))
        return torch.cat(found, -1).view_as(x)

    @torch.no_grad()
    def follow(self, momentum: float) -> None:
        """Moves the gate of the keys toward the tasks' gate."""
        for name, weight in self.task_gate.named_parameters():
            self.get_buffer(f"key_{name[0]}").lerp_(weight, momentum)

    @torch.no_grad()
    def begin(self, generator: torch.Generator) -> None:
        """Draws gates and W, evens out the noise and lets the keys begin at the gate."""
        for weight in (*self.token_gate.parameters(), *self.task_gate.parameters()):
            weight.normal_(std=weight.shape[1] ** -0.5, generator=generator)
        self.likeness.normal_(generator=generator)
        self.spread.weight.zero_()
        self.follow(1.0)


class LlamaExperts(LlamaForCausalLM):
    """A Llama with `ExpertLayer` in its last layers. A learner adds its losses to its own
    (`learner.auxiliary.HasLosses`)."""

    config_class = LlamaExpertsConfig

    def __init__(self, config: LlamaExpertsConfig) -> None:
        super().__init__(config)
        self.shape = Experts.model_validate(config.experts or {})
        for layer in self.model.layers[-self.shape.layers :]:
            layer.mlp = ExpertLayer(config.hidden_size, self.shape)

    def expert_layers(self) -> list[ExpertLayer]:
        """The layers that have experts, from below."""
        return [m for m in self.modules() if isinstance(m, ExpertLayer)]

    @contextmanager
    def watched(self, noise: int | None) -> Iterator[None]:
        """Within it, passes keep what `losses` needs. Experts are chosen with noise of this seed, or without any."""
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices, enabled=noise is not None):
            if noise is not None:
                torch.manual_seed(noise)
            for layer in self.expert_layers():
                layer.watched, layer.noisy = True, noise is not None
            try:
                yield
            finally:
                for layer in self.expert_layers():
                    layer.watched, layer.noisy, layer.routed = False, False, None

    def losses(self, counted_B_L: Tensor, pair_B: Tensor) -> tuple[Tensor, dict[str, float]]:
        """The weighted sum of balance and contrast of the last pass, and each of them without its weight, both summed
        over layers.

        Args:
            counted_B_L: which tokens count, and are no padding.
            pair_B: rows of one number, 0 or above, are of one task, and the first two of them are compared.
        """
        rows = [(pair_B == n).nonzero().flatten()[:2] for n in pair_B[pair_B >= 0].unique()]
        pairs = [two for two in rows if len(two) == 2]
        at = torch.stack(pairs, 1).flatten() if pairs else pair_B.new_zeros(0)
        balanced = contrasted = counted_B_L.new_zeros((), dtype=torch.float32)
        for layer in self.expert_layers():
            seen = layer.routed
            if seen is None:
                raise RuntimeError("losses are read where the model is watched, after a pass")
            logits, noisy, spread = (t[counted_B_L].float() for t in (seen.logits, seen.noisy, seen.spread))
            balanced = balanced + balance(logits, noisy, spread, self.shape.chosen)
            weight_B_L = counted_B_L / counted_B_L.sum(-1, keepdim=True)
            query, key = (torch.einsum("ble,bl->be", t.float(), weight_B_L)[at] for t in (seen.query, seen.key))
            contrasted = contrasted + contrast(query, key, layer.likeness)
        total = self.shape.balance * balanced + self.shape.contrast * contrasted
        return total, {"balance": balanced.item(), "contrast": contrasted.item()}

    def stepped(self) -> None:
        """To be called after each optimiser step: the gates of the keys follow."""
        for layer in self.expert_layers():
            layer.follow(self.shape.momentum)


@torch.no_grad()
def with_experts(model: nn.Module, shape: Experts, generator: torch.Generator) -> LlamaExperts:
    """A Llama whose last feed-forward networks have become experts: each takes `ffn` of the network's inner units,
    drawn at random, and gives so much more that in the mean over draws it gives what the network gave (as in LLaMA-MoE,
    Zhu et al., 2024, arXiv 2406.16554). With as many units as there are the model says what it said.

    Raises:
        ModelError: the model is no Llama without biases and experts, or its networks are too small.
    """
    if type(model) is not LlamaForCausalLM or model.config.mlp_bias:
        raise ModelError(f"model.experts: experts are made of a Llama without biases, not of {type(model).__name__}")
    inner = model.config.intermediate_size
    if shape.ffn > inner or shape.layers > len(model.model.layers):
        raise ModelError(
            f"model.experts: expected ffn of at most {inner} and layers of at most {len(model.model.layers)}, got "
            f"{shape.ffn} and {shape.layers}"
        )
    told = {key: value for key, value in model.config.to_dict().items() if key not in ("model_type", "architectures")}
    made: Any = LlamaExperts(LlamaExpertsConfig(**told, experts=shape.as_data()))
    made.to(model.dtype)
    made.load_state_dict(model.state_dict(), strict=False)
    layers: Any = model.model.layers
    for layer, old in zip(made.expert_layers(), layers[-shape.layers :], strict=True):
        layer.begin(generator)
        halves = old.mlp.down_proj.weight.split(layer.tokens.out)
        for mixture, down in zip((layer.tokens, layer.tasks), halves, strict=True):
            for expert in mixture.experts:
                units = torch.randperm(inner, generator=generator)[: shape.ffn]
                expert.gate_proj.weight.copy_(old.mlp.gate_proj.weight[units])
                expert.up_proj.weight.copy_(old.mlp.up_proj.weight[units])
                expert.down_proj.weight.copy_(down[:, units] * (inner / shape.ffn))
    return made.eval()


def balance(logits_N_E: Tensor, noisy_N_E: Tensor, spread_N_E: Tensor, chosen: int) -> Tensor:
    """CV(importance)^2 + CV(load)^2 over experts, with the unbiased variance.

    Importance is the sum of an expert's weights over N tokens; load the sum of the chances that it is among the
    `chosen` if its own noise is drawn again: Phi((logit - what it has to exceed) / deviation).
    """
    top, which = noisy_N_E.topk(chosen + 1)
    among = which[:, :chosen]
    importance_E = torch.zeros_like(noisy_N_E).scatter(1, among, top[:, :chosen].softmax(-1)).sum(0)
    inside = torch.zeros_like(noisy_N_E, dtype=torch.bool).scatter(1, among, True)
    exceeded = torch.where(inside, top[:, chosen:], top[:, chosen - 1 : chosen])
    load_E = torch.special.ndtr((logits_N_E - exceeded) / spread_N_E).sum(0)
    return _squared_variation(importance_E) + _squared_variation(load_E)


def _squared_variation(x: Tensor) -> Tensor:
    return x.var() / (x.mean() ** 2 + 1e-10)


def contrast(query_R_E: Tensor, key_R_E: Tensor, likeness_E_E: Tensor) -> Tensor:
    """InfoNCE between rows r and r + R/2, which are of one task: of all keys of the other half, a row's query should be
    most alike to its partner's; the mean over both halves. 0 of no rows."""
    half = len(query_R_E) // 2
    if not half:
        return query_R_E.sum()
    alike = query_R_E @ likeness_E_E @ key_R_E.T
    partner = torch.arange(half, device=alike.device)
    return (F.cross_entropy(alike[:half, half:], partner) + F.cross_entropy(alike[half:, :half], partner)) / 2


AutoConfig.register(LlamaExpertsConfig.model_type, LlamaExpertsConfig)
AutoModelForCausalLM.register(LlamaExpertsConfig, LlamaExperts)
