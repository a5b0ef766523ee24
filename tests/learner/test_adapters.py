"""Adapters and checkpointing: what is trained, what engines get, what a checkpoint holds, and the same gradients."""

import copy
import json
import random
import sys

import pytest
import torch
from adapted_model import IDS, VOCABULARY, config, make, samples
from transformers import LlamaForCausalLM, OPTConfig, OPTForCausalLM

from longstride.core.errors import ConfigError, ModelError, RunError
from longstride.learner.config import LearnerConfig
from longstride.learner.learner import Learner
from longstride.models.lora import LoRA


def gradients(**numbers):
    learner = Learner(make(), config(**numbers))
    loss, _ = learner.accumulate(samples())
    return loss, {name: p.grad for name, p in learner.parameters.items()}


class TestCheckpointing:
    def test_gradients_are_the_same_and_layers_are_computed_again(self):
        calls = []
        reference = gradients()
        model = make()
        learner = Learner(model, config(checkpointing=True))
        model.get_submodule("model.layers.0.mlp").register_forward_pre_hook(lambda *_: calls.append(1))
        loss, _ = learner.accumulate(samples())
        assert len(calls) == 4  # a micro-batch of paths and one of trees, each forward and again
        assert loss == pytest.approx(reference[0])
        for name, p in learner.parameters.items():
            torch.testing.assert_close(p.grad, reference[1][name])
        assert not any(module.training for module in model.modules())

    def test_a_model_that_would_drop_out_is_refused(self):
        torch.manual_seed(0)
        model = OPTForCausalLM(OPTConfig(
            vocab_size=VOCABULARY, hidden_size=16, ffn_dim=32, num_hidden_layers=2, num_attention_heads=2, dropout=0.5,
            word_embed_proj_dim=16, max_position_embeddings=64,
        ))  # fmt: skip
        Learner(model, config())
        with pytest.raises(ModelError, match=r"OPTForCausalLM drops out .* set its dropout to 0"):
            Learner(model, config(checkpointing=True))


class TestLoRA:
    def test_without_peft_it_says_what_to_install(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "peft", None)
        with pytest.raises(ConfigError, match=r"pip install 'longstride\[lora\]'"):
            Learner(make(), config(lora=LoRA()))

    def test_it_is_a_table_of_a_recipe(self):
        made = LearnerConfig.model_validate({"lora": {"rank": 4, "targets": ["q_proj"]}})
        assert made.lora == LoRA(rank=4, targets=("q_proj",)) and LearnerConfig().lora is None


class TestAdapters:
    @pytest.fixture(autouse=True)
    def _needs_peft(self):
        pytest.importorskip("peft")

    def test_training_changes_adapters_alone_and_merged_weights_give_the_same_logits(self):
        model = make()
        before = {k: v.clone() for k, v in model.state_dict().items()}
        learner = Learner(model, config(lora=LoRA(rank=4)))
        assert torch.equal(learner.full_model()(IDS).logits, make()(IDS).logits)  # an adapter starts as nothing
        assert all("lora_" in name for name in learner.parameters)
        learner.update(samples(), random.Random(0))
        now = model.state_dict()
        for name, value in before.items():
            base = name if name in now else name.replace(".weight", ".base_layer.weight")
            assert torch.equal(now[base], value)
        full = learner.full_model()
        assert type(full) is LlamaForCausalLM and full.state_dict().keys() == before.keys()
        assert not torch.allclose(full(IDS).logits, make()(IDS).logits, atol=1e-3)
        torch.testing.assert_close(full(IDS).logits, model(IDS).logits, rtol=1e-4, atol=1e-5)

    def test_a_model_that_was_made_whole_for_engines_is_merged_where_it_is(self, monkeypatch):
        learner = Learner(make(), config(lora=LoRA(rank=4)))
        whole = copy.deepcopy(learner.model)
        monkeypatch.setattr("longstride.learner.learner.filled", lambda skeleton, parameters: whole)
        learner._skeleton = torch.nn.Module()
        assert learner.full_model() is whole
        assert whole.state_dict().keys() == make().state_dict().keys()

    def test_a_learner_restored_from_its_state_takes_the_same_steps(self):
        numbers = config(lora=LoRA(rank=4))
        one, other = Learner(make(), numbers), Learner(make(), numbers)
        one.update(samples(), random.Random(1))
        tensors, counts = one.state()
        other.load_state({k: v.clone() for k, v in tensors.items()}, json.loads(json.dumps(counts)))
        assert torch.equal(one.full_model()(IDS).logits, other.full_model()(IDS).logits)
        for learner in (one, other):
            learner.update(samples(), random.Random(2))
        assert all(torch.equal(a, b) for a, b in zip(one.model.parameters(), other.model.parameters(), strict=True))
        with pytest.raises(RunError, match="another model"):
            Learner(make(), config()).load_state(tensors, counts)

    def test_the_first_values_come_from_their_seed_alone(self):
        def first(seed):
            return next(iter(Learner(make(), config(lora=LoRA(seed=seed))).parameters.values())).detach()

        torch.manual_seed(1)
        state = torch.get_rng_state()
        one = first(0)
        torch.rand(3)
        assert torch.equal(one, first(0)) and not torch.equal(one, first(1))
        torch.set_rng_state(state)
        Learner(make(), config(lora=LoRA()))

    def test_targets_that_are_no_layers_are_named(self):
        with pytest.raises(ConfigError, match="learner.lora.targets.*no_such_layer"):
            Learner(make(), config(lora=LoRA(targets=("no_such_layer",))))
