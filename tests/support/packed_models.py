"""Models of several architectures that take rows that branch, and learners of them."""

from functools import cache
from typing import Any

import torch
from by_hand import VOCABULARY
from helpers import tiny_model
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from longstride.learner.config import LearnerConfig
from longstride.learner.learner import Learner
from longstride.methods import Loss
from longstride.models.tiny import TinyConfig

SIZES: Any = {
    "vocab_size": VOCABULARY, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 512,
}  # fmt: skip
SLIDING: Any = {"sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"]}
MODELS = {
    "llama": lambda: tiny_model(VOCABULARY, shape=TinyConfig(width=16, layers=2, heads=2, kv_heads=1, ffn=32)),
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**SIZES, tie_word_embeddings=True)),
    "gemma3": lambda: Gemma3ForCausalLM(Gemma3TextConfig(**SIZES, **SLIDING)),
}


@cache
def make(name: str = "llama") -> Any:
    """The model of a name, in float64; the same one each time."""
    torch.manual_seed(0)
    return MODELS[name]().double()


def learner_of(model: Any, loss: Loss | None = None, **numbers: Any) -> Learner:
    return Learner(model, LearnerConfig(dtype="float32", **numbers), loss)
