"""A model that adapters are put on, and what they are trained with."""

import random

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from longstride.learner.config import LearnerConfig
from longstride.methods.base import ADVANTAGES, BEHAVIOUR, Sample

VOCABULARY = 40
IDS = torch.tensor([[1, 2, 3, 4]])


def make(seed: int = 0) -> LlamaForCausalLM:
    """A Llama from scratch."""
    torch.manual_seed(seed)
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=128, tie_word_embeddings=True,
    ))  # fmt: skip


def samples(n: int = 12, head: int = 40) -> list[Sample]:
    """Some that share a prompt, so that rows branch, and some that do not."""
    rng = random.Random(0)
    words = lambda n: [rng.randrange(VOCABULARY) for _ in range(n)]  # noqa: E731
    shared = words(head)
    return [
        Sample(shared if k % 2 else words(k + 1), words(3), {ADVANTAGES: [1.0] * 3, BEHAVIOUR: [-3.0] * 3}, k, k)
        for k in range(n)
    ]


def config(**numbers) -> LearnerConfig:
    return LearnerConfig(**{"dtype": "float32", "lr": 1e-2, "warmup_steps": 0, "batch_samples": 6, **numbers})
