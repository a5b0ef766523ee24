"""A language model small enough to train from nothing on two CPU cores, and its tokenizer.

What always holds: the model is an ordinary Hugging Face Llama, or one with experts (`models.experts`), the tokenizer an
ordinary fast tokenizer with a chat template, so that everything made for large models takes them as they are; the same
words give the same vocabulary in the same order, the same seed the same weights. A token is a word: a page of the
embedded web is some sixty tokens.
"""

import re
from collections.abc import Iterable
from typing import Annotated, Any

import torch
from pydantic import Field, model_validator
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from longstride.core.component import Component
from longstride.core.numbers import Positive
from longstride.models.experts import Experts, LlamaExperts, LlamaExpertsConfig

PAD, UNKNOWN, USER, AGENT, END = SPECIALS = ("<pad>", "<unk>", "<user>", "<agent>", "<end>")
ALWAYS = (*SPECIALS, "Thought:", "Action:", *(f"[{n}]" for n in range(1, 61)), *(str(n) for n in range(100)))
"""In every vocabulary, in front of all other words: element numbers and the numbers that counting and prices need."""
TOKEN = r"\[\d+\]|Thought:|Action:|\w+|[^\w\s]"
"""One token: an element number, one of the two marks, a word or number, or any other character that is no space."""
CHAT = (
    "{% for message in messages %}{% if message.role == 'user' %}<user>{{ message.content }}"
    "{% elif message.role == 'assistant' %}<agent>{{ message.content }}<end>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<agent>{% endif %}"
)
"""No system role: a system text stands in front of the goal (see `ChatFormat`)."""

Size = Annotated[int, Field(ge=1)]


class TinyConfig(Component):
    """Shape of the model; the standard one has 0.4M parameters and 96 more for each word."""

    width: Size = 96
    layers: Size = 4
    heads: Size = 4
    kv_heads: Size = 2
    """Heads of keys and values; `heads` is a multiple of it (grouped-query attention, Ainslie et al. 2023)."""
    ffn: Size = 256
    """Inner width of the gated feed-forward layer."""
    context: Size = 1280
    """Tokens the model can see."""
    rope_theta: Positive = 1e4
    """Base of the rotary position embedding (Su et al. 2021)."""
    experts: Experts | None = None
    """What the last layers have in place of their feed-forward network, if anything."""

    @model_validator(mode="after")
    def _divisible(self) -> "TinyConfig":
        if self.heads % self.kv_heads or self.width % (2 * self.heads):
            raise ValueError("heads must be a multiple of kv_heads, and width of 2 * heads")
        if self.experts and self.experts.layers > self.layers:
            raise ValueError(f"experts.layers ({self.experts.layers}) must be at most layers ({self.layers})")
        return self


def words_of(text: str) -> list[str]:
    """The text's tokens, as the tokenizer of `build_tokenizer` cuts it."""
    return re.findall(TOKEN, text)


def build_tokenizer(words: Iterable[str]) -> PreTrainedTokenizerFast:
    """A tokenizer whose vocabulary is `ALWAYS` and then, sorted, every token in `words`.

    Args:
        words: words or whole texts; case is kept.

    Returns:
        a tokenizer that decodes to tokens with one space between, with `<end>` as its end of sequence.
    """
    found = {token for text in words for token in words_of(text)} - set(ALWAYS)
    vocabulary = {token: i for i, token in enumerate([*ALWAYS, *sorted(found)])}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    core.pre_tokenizer = pre_tokenizers.Split(Regex(TOKEN), behavior="removed", invert=True)  # keep what matches
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token=PAD,
        unk_token=UNKNOWN,
        eos_token=END,
        additional_special_tokens=[USER, AGENT],
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = CHAT
    return tokenizer


def build_model(config: TinyConfig, vocab_size: int, seed: int) -> LlamaForCausalLM:
    """A Llama with tied embeddings in float32, in evaluation mode.

    Linear weights are normal with standard deviation fan_in**-0.5, embeddings with width**-0.5: being the output layer
    too, they give logits of unit scale at the start.
    """
    ids = {special: i for i, special in enumerate(SPECIALS)}
    own: dict[str, Any] = {"experts": config.experts.as_data()} if config.experts else {}
    shape: Any = (LlamaExpertsConfig if config.experts else LlamaConfig)(
        vocab_size=vocab_size,
        hidden_size=config.width,
        intermediate_size=config.ffn,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.kv_heads,
        max_position_embeddings=config.context,
        rope_parameters={"rope_type": "default", "rope_theta": config.rope_theta},
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=ids[END],
        pad_token_id=ids[PAD],
        **own,
    )
    with torch.random.fork_rng():  # the library's own initialisation, overwritten below, draws from global state
        model = (LlamaExperts if config.experts else LlamaForCausalLM)(shape)
    generator = torch.Generator().manual_seed(seed)
    for module in model.get_decoder().modules():  # the head is the embedding
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=module.weight.shape[1] ** -0.5, generator=generator)
    for layer in model.expert_layers() if isinstance(model, LlamaExperts) else ():
        layer.begin(generator)
    return model.eval()
