"""Hugging Face `generate` as it is used for rollouts: prompts padded on the left, one batch, as many new tokens for all
as the longest needs. It is in our own environment, so that both sides have the same model object and the same torch."""

from collections.abc import Sequence
from typing import Any

import torch
from transformers import GenerationConfig

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
