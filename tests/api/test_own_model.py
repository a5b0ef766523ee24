"""A model of one's own: the guide is followed with a small model of Qwen3's shape, tokenizer and chat template."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from guides import follow, own_modules
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

TEMPLATE = """{%- for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def save_qwen3(folder: Path) -> None:
    """A Qwen3 that nobody has trained, with a token for each byte."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    plain: Any = Tokenizer(models.BPE(vocab={letter: k for k, letter in enumerate(letters)}, merges=[]))
    plain.pre_tokenizer, plain.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer: Any = PreTrainedTokenizerFast(tokenizer_object=plain, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>"]})
    tokenizer.chat_template = TEMPLATE
    shape = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "max_position_embeddings": 512}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
    torch.manual_seed(0)
    settings: Any = {"vocab_size": len(tokenizer), **shape, **heads}
    Qwen3ForCausalLM(Qwen3Config(**settings)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def test_the_guide_fine_tunes_exports_and_the_export_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("peft", reason="needs the extra `lora`")
    monkeypatch.chdir(tmp_path)
    save_qwen3(tmp_path / "Qwen" / "Qwen3-0.6B")
    with own_modules(tmp_path):
        follow("own_model.md", tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "runs" / "capitals" / "metrics.jsonl").read_text().splitlines()]
    assert [row["iteration"] for row in rows if row["kind"] == "train"] == [1, 2]
    model: Any = AutoModelForCausalLM.from_pretrained(tmp_path / "capitals-model")
    tokenizer: Any = AutoTokenizer.from_pretrained(tmp_path / "capitals-model")
    question = [{"role": "user", "content": "Capital of Peru?"}]
    prompt = tokenizer.apply_chat_template(question, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    assert model.generate(**prompt, max_new_tokens=4).shape[1] > prompt["input_ids"].shape[1]
