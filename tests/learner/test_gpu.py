"""What a GPU's learner has besides: compiled layers, Liger's head, moments of 8 bits. On the CPU without a compiler,
and against a kernel that does in torch what Liger's does."""

import copy
import random
import sys
from types import ModuleType
from typing import Any

import pytest
import torch
from by_hand import VOCABULARY, assert_same, growing_group, random_samples, step_of, step_of_learner
from packed_models import learner_of, make
from torch.nn import functional as F

from longstride.core.errors import MissingExtra, ModelError, RunError
from longstride.learner import compiled
from longstride.learner.learner import Learner
from longstride.methods import Reinforce
from longstride.models.tiny import TinyConfig, build_model


def fresh() -> Any:
    return copy.deepcopy(make("llama"))


def wide() -> Any:
    """With parameters of 4096 values and more: smaller ones keep float32."""
    return build_model(TinyConfig(width=64, layers=1, heads=2, kv_heads=2, ffn=64, context=128), VOCABULARY, seed=0)


class TestCompiled:
    def test_compiled_layers_have_the_gradient_of_the_plain_ones(self, monkeypatch):
        monkeypatch.setattr(compiled, "BACKEND", "eager")  # traced and not compiled, which takes a minute
        samples = growing_group(episodes=2, prompt=20)
        learner = learner_of(fresh(), compile=True, packed=True, checkpointing=True)
        assert all(layer._compiled_call_impl is not None for layer in learner._likelihood.layers)
        assert_same(step_of_learner(learner, samples), step_of(fresh(), samples, Reinforce()))

    def test_a_model_without_known_layers_is_refused(self):
        with pytest.raises(ModelError, match="learner.compile: Odd does not say"):
            compiled.compile_layers([], "Odd")


def kernel(x: Any, weight: Any, target: Any, bias: Any = None, reduction: str = "mean") -> Any:
    return F.cross_entropy(F.linear(x, weight, bias), target, reduction=reduction)


def one_weight_for_all(x: Any, weight: Any, target: Any, bias: Any = None, reduction: str = "mean") -> Any:
    """What older versions did: the gradient of each token is that of the first one's weight."""

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, weight: Any) -> Any:
            ctx.save_for_backward(x, weight)
            return kernel(x, weight, target, bias, reduction)

        @staticmethod
        def backward(ctx: Any, *given: Any) -> Any:
            with torch.enable_grad():
                x, weight = (t.detach().requires_grad_() for t in ctx.saved_tensors)
                return torch.autograd.grad(kernel(x, weight, target, reduction="sum") * given[0][0], (x, weight))

    return Wrong.apply(x, weight)


@pytest.fixture
def liger(monkeypatch):
    def install(used: Any) -> None:
        for name in ("liger_kernel", "liger_kernel.transformers", "liger_kernel.transformers.functional"):
            monkeypatch.setitem(sys.modules, name, ModuleType(name))
        sys.modules["liger_kernel.transformers.functional"].liger_fused_linear_cross_entropy = used  # pyright: ignore

    return install


class TestLiger:
    def test_its_head_has_the_gradient_of_the_plain_one(self, liger):
        calls = []
        liger(lambda *args, **more: calls.append(args) or kernel(*args, **more))
        samples = random_samples(5)
        learner = learner_of(fresh(), head="liger")
        probed = len(calls)
        assert_same(step_of_learner(learner, samples), step_of(fresh(), samples, Reinforce()))
        assert len(calls) > probed == 1

    def test_a_version_with_wrong_gradients_is_found_out(self, liger):
        liger(one_weight_for_all)
        with pytest.raises(ModelError, match="wrong gradients to tokens of different weights"):
            learner_of(fresh(), head="liger")

    def test_one_that_does_not_run_here_a_float32_head_and_a_missing_one_are_said(self, liger, monkeypatch):
        liger(lambda *_, **more: 1 / 0)
        with pytest.raises(ModelError, match="does not run on cpu: division by zero"):
            learner_of(fresh(), head="liger")
        with pytest.raises(ModelError, match="exclude each other"):
            learner_of(fresh(), head="liger", float32_head=True)
        monkeypatch.setitem(sys.modules, "liger_kernel.transformers", None)
        with pytest.raises(MissingExtra, match=r"longstride\[liger\]"):
            learner_of(fresh(), head="liger")


class TestEightBits:
    @pytest.fixture
    def learner(self, monkeypatch) -> Any:
        pytest.importorskip("torchao")
        monkeypatch.setattr(torch, "compile", lambda work, **_: work)  # torchao compiles each step: a minute on a CPU
        return lambda: learner_of(wide(), optimiser="adamw_8bit", lr=1e-2, warmup_steps=0)

    def test_moments_are_a_byte_each_and_a_resume_is_exact(self, learner):
        one, samples = learner(), random_samples(4)
        one.update(samples, random.Random(0))
        tensors, numbers = one.state()
        coded = {name for name, p in one.parameters.items() if tensors[f"exp_avg/{name}"].dtype == torch.uint8}
        assert {name for name, p in one.parameters.items() if p.numel() >= 4096} == coded != set()
        other = learner()
        with torch.no_grad():
            for name, p in other.parameters.items():
                p.copy_(one.parameters[name])
        other.load_state({k: v.clone() for k, v in tensors.items()}, numbers)
        for each in (one, other):
            each.update(samples, random.Random(1))
        assert all(torch.equal(one.parameters[n], other.parameters[n]) for n in one.parameters)

    def test_its_steps_are_near_those_of_adamw(self, learner):
        samples, moved = random_samples(4), []
        start = {n: p.detach().clone() for n, p in wide().named_parameters()}
        for each in (learner(), learner_of(wide(), lr=1e-2, warmup_steps=0)):
            for k in range(3):
                each.update(samples, random.Random(k))
            moved.append(torch.cat([(p.detach() - start[n]).flatten() for n, p in each.parameters.items()]))
        assert torch.cosine_similarity(*moved, dim=0) > 0.98

    def test_moments_of_another_optimiser_are_refused(self, learner):
        plain: Learner = learner_of(wide())
        plain.update(random_samples(4), random.Random(0))
        with pytest.raises(RunError, match="another optimiser"):
            learner().load_state(*plain.state())

    def test_without_torchao_it_says_what_to_install(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "torchao.optim", None)
        monkeypatch.setitem(sys.modules, "torchao", None)
        with pytest.raises(MissingExtra, match=r"longstride\[torchao\]"):
            learner_of(fresh(), optimiser="adamw_8bit")
