"""Small models of every kind that the local engine serves, requests to it, and its answers computed plainly."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)  # fmt: skip

from longstride.engines.base import Completion, Outcome, Request, Sampling
from longstride.engines.local import LocalEngine
from longstride.models.tiny import TinyConfig, build_model

VOCABULARY, END = 50, 4
NEVER: frozenset[int] = frozenset()


def llama() -> Any:
    return build_model(TinyConfig(width=32, layers=2, heads=4, kv_heads=2, ffn=32, context=128), VOCABULARY, seed=1)


def other(name: str) -> Any:
    shape: dict[str, Any] = {"vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 32}
    shape |= {"num_hidden_layers": 3, "num_attention_heads": 4, "initializer_range": 0.2}
    grouped: dict[str, Any] = {"num_key_value_heads": 2, "head_dim": 12}
    sliding: dict[str, Any] = {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}
    with torch.random.fork_rng():
        torch.manual_seed(2)
        match name:
            case "qwen3":
                model = Qwen3ForCausalLM(Qwen3Config(**shape, **grouped))
            case "sliding window":
                model = Qwen3ForCausalLM(Qwen3Config(**shape, **grouped, **sliding))
            case "mistral":  # its window stands in the configuration alone
                model = MistralForCausalLM(MistralConfig(**shape, **grouped, sliding_window=5))
            case "gpt_neox":
                model = GPTNeoXForCausalLM(GPTNeoXConfig(**shape))
            case _:
                small = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128, "initializer_range": 0.2}
                model = GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, **small))
    return model.eval()


def prompts(n: int, seed: int = 0, longest: int = 40) -> list[list[int]]:
    rng = random.Random(seed)
    return [[rng.randrange(VOCABULARY) for _ in range(rng.randint(1, longest))] for _ in range(n)]


def batch(ps: Sequence[list[int]], max_new: int = 6, **sampling: float) -> list[Request]:
    return [Request(p, max_new, seed=100 + i, sampling=Sampling(**sampling)) for i, p in enumerate(ps)]


def plain(model: Any, request: Request, completion: Completion, temperature: float = 1.0) -> torch.Tensor:
    """Log-probabilities of every token at each sampled place, from one ordinary forward pass: (sampled, vocabulary)."""
    with torch.no_grad():
        logits = model(torch.tensor([request.prompt + completion.ids]), use_cache=False).logits[0]
    return (logits[len(request.prompt) - 1 : -1] / temperature).log_softmax(-1)


def difference(model: Any, requests: Sequence[Request], completions: Sequence[Completion]) -> float:
    """Largest gap between the log-probabilities that the engine gave and those of ordinary forward passes."""
    return max(
        (plain(model, r, c)[range(len(c.ids)), c.ids] - torch.tensor(c.logprobs)).abs().max().item()
        for r, c in zip(requests, completions, strict=True)
    )


def until_done(engine: LocalEngine, *tickets: int) -> dict[int, Outcome]:
    """Polls until the tickets are complete; all outcomes meanwhile, in their order."""
    found: dict[int, Outcome] = {}
    while not set(tickets) <= found.keys():
        found |= dict(engine.poll())
    return found


def like(done: Outcome, want: Completion) -> bool:
    """Whether all is the same, log-probabilities up to rounding."""
    if not isinstance(done, Completion) or (done.ids, done.finish) != (want.ids, want.finish):
        return False
    return np.allclose(done.logprobs, want.logprobs, atol=1e-5)


def alone(model: Any, request: Request) -> Completion:
    return LocalEngine(model, NEVER, 128).generate([request])[0]
