"""Passes in C++: the numbers of the model's own passes, in the engine and in the learner."""

import os
import random
from typing import Any

import pytest
import torch
from by_hand import growing_group, random_samples
from engine_models import END, NEVER, VOCABULARY, batch, difference, llama, other, prompts

import longstride.engines.local as local
from longstride.core.errors import ConfigError, EngineFailure, LongstrideWarning
from longstride.engines.base import Request
from longstride.engines.config import Local
from longstride.engines.local import LocalEngine
from longstride.learner.config import LearnerConfig
from longstride.learner.learner import Learner
from longstride.learner.tree_attention import Forest
from longstride.models import kernels, native
from longstride.models.native import Decoder, library, supported
from longstride.models.tiny import TinyConfig, build_model

built = pytest.mark.skipif(library() is None, reason="no C++ compiler")


def model() -> Any:
    """Odd numbers everywhere: heads in groups of three, words and inner width that fill no panel."""
    shape = TinyConfig(width=48, layers=3, heads=6, kv_heads=2, ffn=70, context=300)
    made = build_model(shape, VOCABULARY, seed=3)
    generator = torch.Generator().manual_seed(4)
    for name, p in made.named_parameters():
        if "norm" in name:  # they are 1 at the start, which hides what belongs to them
            p.data.uniform_(0.5, 1.5, generator=generator)
    return made


@built
@pytest.mark.parametrize("pieces", [1024, 10])
def test_the_engine_samples_the_tokens_of_torch_with_the_models_log_probabilities(
    pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(local.PASS_TOKENS, "cpu", pieces)
    one, requests = model(), batch(prompts(9, longest=120), max_new=12)
    want = LocalEngine(one, NEVER, 300).generate(requests)
    engine = LocalEngine(one, NEVER, 300, kernels="native")
    assert engine._native is not None
    got = engine.generate(requests)
    assert [c.ids for c in got] == [c.ids for c in want]
    assert difference(one, requests, got) < 1e-5


@built
def test_a_session_goes_on_from_its_cache_and_takes_new_weights() -> None:
    one = model()
    engine = LocalEngine(one, frozenset({END}), 300, kernels="native")
    first = Request(list(range(40)), 5, seed=1, session=0)
    (said,) = engine.generate([first])
    second = Request(first.prompt + said.ids + list(range(20)), 5, seed=2, session=0)
    read = engine.tokens_in
    assert difference(one, [second], engine.generate([second])) < 1e-5
    assert engine.tokens_in - read <= 21
    for p in one.parameters():
        p.data.mul_(1.1)
    engine.update(one, 1)
    assert difference(one, [second], engine.generate([second])) < 1e-5


@built
def test_diverged_weights_are_an_engine_failure() -> None:
    one = model()
    engine = LocalEngine(one, NEVER, 300, kernels="native")
    next(one.parameters()).data.fill_(torch.nan)
    engine.update(one, 1)
    with pytest.raises(EngineFailure, match="diverged"):
        engine.generate(batch(prompts(2)))


@built
@pytest.mark.parametrize("tree", [False, True])
def test_hidden_states_and_gradients_are_the_models_own(tree: bool) -> None:
    one, generator = model(), torch.Generator().manual_seed(0)
    ids = torch.randint(0, VOCABULARY, (3, 130), generator=generator)
    if tree:  # a trunk of 30 with two branches of 50: twice as two rows, once as one
        ids[1, :30] = ids[0, :30]
        ids = ids[:2, :80]
        forest = Forest([*range(80), *range(30, 80)], [130] * 30 + [80] * 50 + [130] * 50, "cpu")
        whole, depths = torch.cat([ids[0], ids[1, 30:]]).unsqueeze(0), forest.position_N.unsqueeze(0)
        got = Decoder(one)(whole, forest=forest, position_ids=depths).last_hidden_state
        got = torch.stack([got[0, :80], torch.cat([got[0, :30], got[0, 80:]])])
    else:
        got = Decoder(one)(ids).last_hidden_state
    want = one.model(input_ids=ids, use_cache=False).last_hidden_state
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    slopes, found = torch.randn(want.shape, generator=generator), []
    for hidden in (want, got):
        one.zero_grad()
        (hidden * slopes).sum().backward()
        found.append({name: p.grad.clone() for name, p in one.named_parameters() if p.grad is not None})
    assert found[0].keys() == found[1].keys()
    for name, gradient in found[0].items():
        assert (found[1][name] - gradient).norm() <= 1e-4 * gradient.norm(), name


@built
def test_rows_beyond_the_context_are_computed_too() -> None:
    one = llama()
    ids = torch.arange(200).unsqueeze(0) % VOCABULARY
    want = one.model(input_ids=ids, use_cache=False).last_hidden_state
    torch.testing.assert_close(Decoder(one)(ids).last_hidden_state, want, rtol=1e-4, atol=1e-4)


def _updated(samples: Any, **numbers: Any) -> tuple[dict[str, Any], list[torch.Tensor]]:
    config = LearnerConfig(dtype="float32", batch_samples=16, micro_tokens=64, **numbers)
    learner = Learner(llama(), config)
    found = learner.update(samples, random.Random(1))
    learner.model(torch.zeros(1, 4, dtype=torch.long))  # rows that are no trees can be computed afterwards
    return found, [p.detach() for p in learner.model.parameters()]


@built
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_learner_takes_the_steps_of_torch_and_the_same_bits_every_time(threads: int) -> None:
    samples = random_samples(24) + growing_group(4)
    want, there = _updated(samples)
    got, here = _updated(samples, kernels="native", threads=threads)
    again, twice = _updated(samples, kernels="native", threads=threads)
    assert got == again and all(torch.equal(a, b) for a, b in zip(here, twice, strict=True))
    assert got["loss"] == pytest.approx(want["loss"], rel=1e-4)
    assert got["grad_norm"] == pytest.approx(want["grad_norm"], rel=1e-3)
    assert got["trained_tokens"] == want["trained_tokens"]


def test_other_models_are_left_to_torch() -> None:
    assert not supported(other("qwen3")) and not supported(other("gpt2"))
    assert not supported(llama().double())
    assert not supported(build_model(TinyConfig(width=24, layers=1, heads=2, kv_heads=2), VOCABULARY, seed=0))
    engine = LocalEngine(other("qwen3"), NEVER, 128, kernels="native")
    assert engine._native is None and engine.generate(batch(prompts(2)))


def test_without_a_compiler_everything_goes_through_torch(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(native.shutil, "which", lambda name: None)
    assert native._built() is None
    monkeypatch.setattr(native, "library", lambda: None)
    assert kernels.settled("auto") == "torch"
    assert Local(kernels="auto").settled().kernels == LearnerConfig(kernels="auto").settled().kernels == "torch"
    with pytest.raises(ConfigError, match="needs a C\\+\\+ compiler"):
        kernels.settled("native")


@built
def test_why_it_could_not_be_built_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    native._library.cache_clear()
    try:
        with pytest.warns(LongstrideWarning, match="native kernels could not be built .*file"):
            assert kernels.settled("auto") == "torch"
        with pytest.raises(ConfigError, match=r"XDG_CACHE_HOME\) \(.*file"):
            kernels.settled("native")
    finally:
        native._library.cache_clear()


@built
def test_it_is_built_once_a_machine_outside_of_the_repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(native, "FLAGS", ("-O0", *native.FLAGS[1:]))
    path = native._built()
    assert path is not None and os.listdir(tmp_path / "longstride") == [path.name]
    before = path.stat().st_mtime_ns
    assert native._built() == path and path.stat().st_mtime_ns == before
