"""A language model whose next word depends on the last one alone, as told: a GPT-NeoX with one-hot embeddings."""

from collections.abc import Mapping
from math import log, sqrt
from typing import Any

import torch
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

from longstride.models.load import Policy, make_policy
from longstride.models.tiny import SPECIALS, build_tokenizer

UNLIKELY = 60.0
"""How much less likely, in nats, every word is that is not named."""


def bigram_policy(text: str, follows: Mapping[str, Mapping[str, float]]) -> Policy:
    """A policy that knows the words of a text; after a word comes one of those named for it, with its probability, and
    after any other word the turn ends."""
    tokenizer = build_tokenizer([text, *(w for nexts in follows.values() for w in nexts), *follows])
    words, size = tokenizer.get_vocab(), len(tokenizer) + len(tokenizer) % 2
    shape = GPTNeoXConfig(
        vocab_size=size, hidden_size=size, intermediate_size=2, num_hidden_layers=1, num_attention_heads=1,
        max_position_embeddings=2048, use_parallel_residual=True, eos_token_id=words[SPECIALS[-1]],
    )  # fmt: skip
    model: Any = GPTNeoXForCausalLM(shape)
    chance_WL = torch.full((size, size), -UNLIKELY)
    for last in words:
        for word, p in follows.get(last, {SPECIALS[-1]: 1.0}).items():
            chance_WL[words[word], words[last]] = log(p)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.gpt_neox.embed_in.weight.copy_(torch.eye(size))
        # the norm takes the mean of a one-hot away and divides by its deviation: this gives the one-hot back
        model.gpt_neox.final_layer_norm.weight.fill_(sqrt(size - 1) / size)
        model.gpt_neox.final_layer_norm.bias.fill_(1 / size)
        model.get_output_embeddings().weight.copy_(chance_WL)
    return make_policy("bigrams", model.eval(), tokenizer)
