"""Adapters of a mixture of experts, whose weights are one parameter for all experts; adapters saved apart."""

import random
from pathlib import Path

import pytest
import torch
from adapted_model import IDS, config, make, samples
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

from longstride.learner.learner import Learner
from longstride.models.adapters import save_adapters, without_adapters
from longstride.models.lora import LoRA

peft = pytest.importorskip("peft")


def make_experts() -> Qwen3MoeForCausalLM:
    torch.manual_seed(0)
    return Qwen3MoeForCausalLM(Qwen3MoeConfig(
        vocab_size=40, hidden_size=16, intermediate_size=32, moe_intermediate_size=16, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, num_experts=4, num_experts_per_tok=2,
        max_position_embeddings=128,
    )).eval()  # fmt: skip


@pytest.fixture
def learner() -> Learner:
    learner = Learner(make_experts(), config(lora=LoRA(rank=4)))
    learner.update(samples(), random.Random(0))
    return learner


def test_the_experts_are_adapted_and_merged_weights_give_the_same_logits(learner: Learner) -> None:
    assert any("mlp.experts" in name for name in learner.parameters)
    full = learner.full_model()
    assert full.state_dict().keys() == make_experts().state_dict().keys()
    torch.testing.assert_close(full(IDS).logits, learner.model(IDS).logits, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(full(IDS).logits, make_experts()(IDS).logits, atol=1e-3)
    torch.testing.assert_close(learner.full_model()(IDS).logits, full(IDS).logits)  # merging leaves the adapters alone
    with without_adapters(learner.model):
        torch.testing.assert_close(learner.model(IDS).logits, make_experts()(IDS).logits)


@pytest.mark.parametrize("base", [make, make_experts])
def test_saved_adapters_are_loaded_by_peft_onto_the_base_model(base, tmp_path: Path) -> None:
    learner = Learner(base(), config(lora=LoRA(rank=4)))
    learner.update(samples(), random.Random(0))
    save_adapters(learner.model, tmp_path / "adapter", "somewhere/base")
    loaded = peft.PeftModel.from_pretrained(base(), str(tmp_path / "adapter"))
    torch.testing.assert_close(loaded(IDS).logits, learner.model(IDS).logits)
    assert loaded.peft_config["default"].base_model_name_or_path == "somewhere/base"
    assert all(p.requires_grad for p in learner.parameters.values())
