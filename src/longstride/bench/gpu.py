"""What a GPU makes of a model of 0.6B parameters: sampling and learning, beside Hugging Face's `generate` and a plain
training loop on the same card.

What always holds: both sides have the same random weights, prompts and lengths; a clock is read when the device has
finished; nothing is measured on a machine without a GPU. Memory, the plan of it and the gap between the sampler's
log-probabilities and the learner's are said beside the times.
"""

import copy
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import torch
from torch.nn import functional as F
from transformers import Qwen3Config, Qwen3ForCausalLM

from longstride.bench import hf_peer
from longstride.bench.base import Benchmark, Progress, Row, in_turn
from longstride.core.errors import ConfigError
from longstride.engines.base import Request
from longstride.engines.local import LocalEngine
from longstride.learner.config import LearnerConfig
from longstride.learner.learner import Learner
from longstride.methods import PPO
from longstride.methods.base import ADVANTAGES, BEHAVIOUR, Sample

QWEN3_06B: dict[str, Any] = {
    "vocab_size": 151_936, "hidden_size": 1024, "num_hidden_layers": 28, "num_attention_heads": 16,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3072, "max_position_embeddings": 4096,
    "tie_word_embeddings": True,
}  # fmt: skip
PEAKS = {"H100": 989e12, "H200": 989e12, "A100": 312e12, "L40S": 362e12, "B200": 2250e12}
"""Operations a second of dense bfloat16 products, by a part of the card's name, as NVIDIA's data sheets have them."""


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    shape: dict[str, Any] = field(default_factory=lambda: QWEN3_06B)
    prompts: tuple[int, ...] = (64, 256, 512)
    """Prompts that are sampled from together."""
    prompt: tuple[int, int] = (200, 400)
    """Least and most tokens of one."""
    new: tuple[int, int] = (32, 128)
    """Least and most tokens of a completion."""
    rows: int = 64
    """Of the pass that is timed, and samples of an optimiser step."""
    context: int = 400
    """Tokens before the pass that is timed."""
    passes: int = 64
    """That are timed."""
    sample: tuple[int, int] = (300, 128)
    """Prompt and sampled tokens of a training sample."""
    group: int = 8
    """Samples that share a prompt."""


def measure(peer: str | None, rounds: int, progress: Progress) -> tuple[list[Row], dict[str, str]]:
    """The rows; the peers are in our own environment and always measured.

    Raises:
        ConfigError: there is no GPU, or another environment was named for the peer.
    """
    if peer is not None:
        raise ConfigError(f"generate and torch of this environment are measured; leave --peer {peer} out")
    if not torch.cuda.is_available():
        raise ConfigError("torch finds no CUDA device on this machine, and this benchmark is of GPUs; run it on one")
    name = torch.cuda.get_device_name()
    rows = measured_on("cuda", Sizes(), rounds, progress)
    return rows, {"device": name} | {package: version(package) for package in ("torch", "transformers")}


def measured_on(device: str, sizes: Sizes, rounds: int, progress: Progress) -> list[Row]:
    """The rows of any device."""
    torch.manual_seed(0)
    config = Qwen3Config(**sizes.shape)
    with torch.device(device):
        model: Any = Qwen3ForCausalLM(config).eval()
    model.generation_config.eos_token_id = None
    rows = _sampling(model, sizes, rounds, progress)
    rows += [_one_pass(model, sizes, rounds, progress, graphs) for graphs in (False, True)]
    return rows + _learning(model, sizes, rounds, progress)


def _sampling(model: Any, sizes: Sizes, rounds: int, progress: Progress) -> list[Row]:
    against, rows = f"generate of transformers {version('transformers')}", []
    half = copy.deepcopy(model).to(torch.bfloat16)
    engine = _engine(model, sizes)
    works = [(f"{n} prompts", n, 1) for n in sizes.prompts]
    works.append((f"{sizes.prompts[0] // 4} groups of {sizes.group}", sizes.prompts[0] // 4, sizes.group))
    for name, n, group in works:
        draw = random.Random(n)
        asked = [p for p in (_ids(draw, draw.randint(*sizes.prompt), sizes) for _ in range(n)) for _ in range(group)]
        new = [draw.randint(*sizes.new) for _ in asked]

        def ours(k: int, asked: Any = asked, new: Any = new) -> None:
            engine.update(model, k)  # no cache of the round before
            engine.generate([Request(p, m, seed=i) for i, (p, m) in enumerate(zip(asked, new, strict=True))])

        sides: dict[str, Callable[[int], Mapping[str, float]]] = {
            "ours": lambda k, f=ours: {"s": _seconds(lambda: f(k), half)},
            "generate": lambda _, a=asked, m=new: {"s": _seconds(lambda: hf_peer.generate(half, a, m), half)},
        }
        ours(0)  # warms up
        seen = in_turn(sides, rounds, lambda said, name=name: progress(f"{name}, {said}"))
        ours_s, theirs_s = (sum(new) / seen[side]["s"] for side in sides)
        rows.append(Row(f"sampling: {name}", "new tokens/s", ours_s, theirs_s, against, True, goal=5.0))
    return rows


def _one_pass(model: Any, sizes: Sizes, rounds: int, progress: Progress, graphs: bool) -> Row:
    """Decoding alone: what a pass takes when all prompts are encoded."""
    engine, draw, found = _engine(model, sizes, graphs), random.Random(0), []
    for k in range(rounds):
        progress(f"round {k + 1} of {rounds}: a pass of {sizes.rows} rows")
        engine.update(model, k)
        for i in range(sizes.rows):
            engine.submit(Request(_ids(draw, sizes.context, sizes), sizes.passes + 8, seed=i))
        while engine.tokens_out < (k * (sizes.passes + 8) + 4) * sizes.rows:
            engine.poll()
        before = engine.tokens_out

        def passes(before: int = before) -> None:
            while engine.tokens_out < before + (sizes.passes - 4) * sizes.rows:
                engine.poll()

        found.append(1000 * _seconds(passes, model) / (sizes.passes - 4))
        while engine.tokens_out < (k + 1) * (sizes.passes + 8) * sizes.rows:
            engine.poll()
    how = ", as a graph" if graphs else ""
    return Row(f"sampling: a pass of {sizes.rows} rows at context {sizes.context}{how}", "ms", found, goal=8.0)


def _learning(model: Any, sizes: Sizes, rounds: int, progress: Progress) -> list[Row]:
    parameters = sum(p.numel() for p in model.parameters())
    alone, grouped = (_samples(model, sizes, group) for group in (1, sizes.group))
    tokens = sizes.rows * sum(sizes.sample)
    _reset_peak(model)
    learner = Learner(model, LearnerConfig(dtype="bfloat16", lr=1e-7, warmup_steps=0, micro_tokens=16384), PPO())
    first: list[dict[str, Any]] = []
    begun = _seconds(lambda: first.append(learner.update(alone, random.Random(0))), model)
    begun += _seconds(lambda: learner.step(grouped), model)
    learner._branch_tokens, branching = 0, learner._branch_tokens
    apart = [_seconds(lambda: learner.step(grouped), model) for _ in range(rounds + 1)][1:]
    learner._branch_tokens = branching
    plain = _PlainLoop(model)
    plain.step(alone)  # warms up
    sides: dict[str, Callable[[int], Mapping[str, float]]] = {
        "ours": lambda _: {"s": _seconds(lambda: learner.step(alone), model)},
        "groups": lambda _: {"s": _seconds(lambda: learner.step(grouped), model)},
        "plain": lambda _: {"s": _seconds(lambda: plain.step(alone), model)},
    }
    seen = {side: found["s"] for side, found in in_turn(sides, rounds, progress).items()}
    against = "a loop of torch, float32 weights, autocast, padded"
    rows = [
        Row("learning: a step", "tokens/s", tokens / seen["ours"], tokens / seen["plain"], against, True),
        Row("learning: groups, prompts shared", "s", seen["groups"], apart, "without sharing", goal=1.8),
        Row("learning: first two steps", "s", [begun] * rounds, goal=30.0),
        Row("gap of sampler (bfloat16) and learner", "nats", [first[0]["sampling_gap"]] * rounds),
    ]
    if model.device.type == "cuda":
        rows.append(Row("learning: memory", "GiB", [torch.cuda.max_memory_allocated() / 2**30] * rounds))
        peak = next((p for part, p in PEAKS.items() if part in torch.cuda.get_device_name()), None)
        if peak:
            share = 6 * parameters * tokens / seen["ours"] / peak
            rows.append(Row("learning: share of the card's peak", "", share, higher_is_better=True, goal=0.4))
    return rows


class _PlainLoop:
    """A step as it is written by hand: padded rows, the logits of all places, autocast, AdamW."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._optimiser = torch.optim.AdamW(model.parameters(), 1e-7, fused=True)

    def step(self, samples: list[Sample], rows: int = 8) -> None:
        self._model.set_attn_implementation("sdpa")
        for start in range(0, len(samples), rows):
            part = samples[start : start + rows]
            ids = torch.tensor([s.prompt_ids + s.sampled_ids for s in part], device=self._model.device)
            new = len(part[0].sampled_ids)
            with torch.autocast(self._model.device.type, torch.bfloat16):
                logits = self._model(ids, use_cache=False).logits[:, -new - 1 : -1]
            logp = -F.cross_entropy(logits.float().flatten(0, 1), ids[:, -new:].flatten(), reduction="none")
            weights = torch.tensor([s.advantages for s in part], device=ids.device).flatten()
            (-(weights * logp).sum() / len(samples)).backward()
        torch.nn.utils.clip_grad_norm_(self._model.parameters(), 1.0)
        self._optimiser.step()
        self._optimiser.zero_grad()


def _samples(model: Any, sizes: Sizes, group: int) -> list[Sample]:
    """Samples of the model's own, with the engine's log-probabilities."""
    draw, (prompt, new) = random.Random(group), sizes.sample
    prompts = [p for p in (_ids(draw, prompt, sizes) for _ in range(sizes.rows // group)) for _ in range(group)]
    done = _engine(model, sizes).generate([Request(p, new, seed=i) for i, p in enumerate(prompts)])
    return [
        Sample(p, c.ids, {ADVANTAGES: [draw.choice((-1.0, 1.0))] * new, BEHAVIOUR: c.logprobs}, i, i // group)
        for i, (p, c) in enumerate(zip(prompts, done, strict=True))
    ]


def _engine(model: Any, sizes: Sizes, graphs: bool = False) -> LocalEngine:
    room = 16 << 30 if model.device.type == "cuda" else 1 << 30
    longest = sizes.shape["max_position_embeddings"]
    return LocalEngine(model, frozenset(), longest, dtype="bfloat16", cache_bytes=room, shared=False, graphs=graphs)


def _ids(draw: random.Random, n: int, sizes: Sizes) -> list[int]:
    return draw.choices(range(3, sizes.shape["vocab_size"]), k=n)


def _seconds(work: Callable[[], Any], model: Any) -> float:
    """What some work takes, to the end of what the device was given."""
    _wait(model)
    began = time.perf_counter()
    work()
    _wait(model)
    return time.perf_counter() - began


def _wait(model: Any) -> None:
    if model.device.type == "cuda":
        torch.cuda.synchronize()


def _reset_peak(model: Any) -> None:
    if model.device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


BENCHMARK = Benchmark(
    name="gpu",
    question="What does one GPU make of a model of 0.6B parameters, beside Hugging Face on the same card?",
    equal=(
        "the model (Qwen3-0.6B's shape, random weights) and the card",
        "prompts of 200 to 400 tokens and 32 to 128 new ones, temperature 1, no end token, bfloat16",
        "a training step of 64 samples of 300 + 128 tokens, float32 weights, bfloat16 arithmetic",
    ),
    limits="not known before it was measured on a card: launches of kernels in sampling, gathers in its attention.",
    measure=measure,
    rounds=2,
)
