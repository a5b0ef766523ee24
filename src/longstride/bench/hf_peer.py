"""Hugging Face's two ways to sample many completions: `generate` as it is used for rollouts (prompts padded on the
left, one batch, as many new tokens for all as the longest needs) and continuous batching. They are in our own
environment, so that all sides have the same weights and the same torch."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from transformers import ContinuousBatchingConfig, GenerationConfig
from transformers.generation.continuous_batching.utils import WorkloadHints

from longstride.core.errors import RunError


@torch.inference_mode()
def generate(model: Any, prompts: Sequence[Sequence[int]], new: Sequence[int]) -> list[list[int]]:
    """Samples `new[i]` tokens after `prompts[i]` at temperature 1.

    Raises:
        RunError: it stopped early, so that nothing can be compared.
    """
    longest, most = max(map(len, prompts)), max(new)
    ids = torch.tensor([[0] * (longest - len(p)) + list(p) for p in prompts], device=model.device)
    seen = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts], device=model.device)
    how = GenerationConfig(max_new_tokens=most, min_new_tokens=most, do_sample=True, top_k=0, pad_token_id=0)
    out = model.generate(input_ids=ids, attention_mask=seen, generation_config=how)
    if out.shape[1] != longest + most:
        raise RunError(f"generate gave {out.shape[1] - longest} new tokens instead of {most}; nothing was measured")
    return [row[:n] for row, n in zip(out[:, longest:].tolist(), new, strict=True)]


@contextmanager
def continuous_batching(
    model: Any, cache_bytes: int, requests: int, prompt: int, new: int, page: int = 256
) -> Iterator[Callable[[Sequence[Sequence[int]], Sequence[int]], list[list[int]]]]:
    """Continuous batching that stays warm: inside, a function of prompts and numbers of new tokens, as `generate`.

    Args:
        model: no one else may use it meanwhile, for its attention is exchanged.
        cache_bytes: of keys and values.
        requests: at once, at most.
        prompt: tokens of one, at most.
        new: tokens after it, at most.
        page: tokens of a page.
    """
    c = model.config
    each = 2 * c.num_hidden_layers * c.num_key_value_heads * c.head_dim * model.dtype.itemsize
    settings = ContinuousBatchingConfig(page_size=page, num_blocks=cache_bytes // (each * page))
    how = GenerationConfig(max_new_tokens=new, do_sample=True, top_k=0, eos_token_id=-1, pad_token_id=0)
    hints = WorkloadHints(prompt, new, requests)
    with model.continuous_batching_context_manager(
        how, continuous_batching_config=settings, workload_hints=hints
    ) as manager:

        def sample(prompts: Sequence[Sequence[int]], new: Sequence[int]) -> list[list[int]]:
            asked = {manager.add_request(list(p), max_new_tokens=n): n for p, n in zip(prompts, new, strict=True)}
            done: dict[str, list[int]] = {}
            while len(done) < len(prompts):
                found = manager.get_result(timeout=1)
                if found is None and not manager.is_running():
                    raise RunError(f"continuous batching ended: {manager.background_thread_status.fatal_error}")
                if found is not None and found.request_id in asked:
                    done[found.request_id], wanted = found.generated_tokens, asked[found.request_id]
                    if found.error or len(found.generated_tokens) != wanted:
                        trouble = found.error or f"{len(found.generated_tokens)} new tokens instead of {wanted}"
                        raise RunError(f"continuous batching gave {trouble}; nothing was measured")
            return [done[ticket] for ticket in asked]

        yield sample
