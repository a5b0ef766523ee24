"""What a GPU makes of a model of 0.6B parameters: sampling beside Hugging Face's `generate`, its continuous batching
and vLLM, learning beside a plain training loop, and a whole GRPO step beside TRL, on the same card.

What always holds: all sides have the same shape, prompts and lengths; a clock is read when the device has finished; a
peer that is not installed or fails is named with the reason, and the other rows are kept; nothing is measured on a
machine without a GPU. Memory and the gap between the sampler's log-probabilities and the learner's are said beside the
times.
"""

import copy
import gc
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F
from transformers import Qwen3Config, Qwen3ForCausalLM

from longstride.bench import hf_peer, step
from longstride.bench.base import Benchmark, Progress, Quantity, in_turn
from longstride.bench.peers import Peer, installed
from longstride.core.errors import ConfigError
from longstride.engines.base import Request
from longstride.engines.local import LocalEngine
from longstride.learner.config import LearnerConfig
from longstride.learner.learner import Learner
from longstride.methods import PPO
from longstride.methods.base import ADVANTAGES, BEHAVIOUR, Sample

QWEN3_06B: dict[str, Any] = {
    "vocab_size": 151_936,
    "hidden_size": 1024,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 3072,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": True,
}
SECONDS = 480.0
"""That all of it may take: a peer in another process that does not answer within them is left out."""
UNIT = "new tokens/s"
GOALS = {"generate": 5.0}
"""How many times faster than a peer sampling must be."""
PEAKS = {"H100": 989e12, "H200": 989e12, "A100": 312e12, "L40S": 362e12, "B200": 2250e12}
"""Operations a second of dense bfloat16 products, by a part of the card's name, as NVIDIA's data sheets have them."""

LEARNING = LearnerConfig(dtype="bfloat16", lr=1e-7, warmup_steps=0, micro_tokens=16384)
"""Of the learner that is measured; other settings are those of a run."""
FASTER: dict[str, dict[str, Any]] = {
    "moments of 8 bits": {"optimiser": "adamw_8bit"},
    "Liger's head": {"head": "liger"},
    "compiled layers": {"compile": True},  # last: the model's own layers are compiled then
}
"""What may make a learner faster or smaller, by what it is called in the rows."""

_Sampler = Callable[[list[list[int]], list[int]], float]
"""From prompts and numbers of new tokens to the seconds that sampling took."""


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    shape: dict[str, Any] = field(default_factory=lambda: QWEN3_06B)
    prompts: tuple[int, ...] = (64, 256)
    """Prompts that are sampled from together."""
    prompt: tuple[int, int] = (200, 400)
    """Least and most tokens of one."""
    new: tuple[int, int] = (32, 64)
    """Least and most tokens of a completion: an agent's turns are short."""
    rows: int = 64
    """Of the pass that is timed, and samples of an optimiser step."""
    context: int = 400
    """Tokens before the pass that is timed."""
    passes: int = 40
    """That are timed."""
    sample: tuple[int, int] = (300, 128)
    """Prompt and sampled tokens of a training sample."""
    group: int = 8
    """Samples that share a prompt."""
    cache: int = 8 << 30
    """Bytes of keys and values, of every side that has a limit: four of them and `generate` share a card of 80 GB."""


def measure(peer: str | None, rounds: int, progress: Progress) -> tuple[list[Quantity], dict[str, str]]:
    """The rows. Hugging Face is in our own environment; vLLM and TRL are in that of the peer's Python, or in ours where
    none is named. What is left out has its reason among the versions.

    Raises:
        ConfigError: there is no GPU, or the peer's Python cannot be run.
    """
    if not torch.cuda.is_available():
        raise ConfigError("torch finds no CUDA device on this machine, and this benchmark is of GPUs; run it on one")
    beside = Beside(peer or sys.executable, time.monotonic() + SECONDS, progress)
    rows = measured_on("cuda", Sizes(), rounds, progress, beside)
    versions = {"device": torch.cuda.get_device_name()}
    versions |= {package: version(package) for package in ("torch", "transformers")}
    return rows, versions | beside.versions


def measured_on(device: str, sizes: Sizes, rounds: int, progress: Progress, beside: "Beside") -> list[Quantity]:
    """The rows of any device; those that are there already where it is ended early."""
    torch.manual_seed(0)
    config = Qwen3Config(**sizes.shape)
    with torch.device(device):
        model: Any = Qwen3ForCausalLM(config).eval()
    model.generation_config.eos_token_id = None
    rows: list[Quantity] = []
    try:
        for part in (_sampling, _passes, _learning, _faster):
            for row in part(model, sizes, rounds, progress, beside):
                rows.append(row)
        del model
        rows += _whole_step(device, sizes, rounds, progress, beside)
    except KeyboardInterrupt:
        if not rows:
            raise
        beside.versions["left out: what follows"] = "it was ended early"
    return rows


class Beside:
    """Peers, and settings of ours that are new on a card, may be missing or fail: what was found of them.

    Args:
        python: of the environment with vLLM and TRL.
        until: when, on the monotonic clock, all of it must have ended.
        progress: told what is left out, and why.

    Raises:
        ConfigError: this Python cannot be run.
    """

    def __init__(self, python: str, until: float, progress: Progress) -> None:
        self.python, self._until, self._progress = python, until, progress
        self.versions: dict[str, str] = {}
        """Of the peers; under `left out: NAME` why one, or a part of it, was not measured."""
        for name in ("vLLM", "TRL"):
            found = installed(python, name.lower())
            self.versions |= {name: found} if found else {f"left out: {name}": "not installed"}

    def left(self) -> float:
        """Seconds."""
        return self._until - time.monotonic()

    def attempt(self, name: str, work: Callable[[], Any]) -> Any:
        """What `work` returns; where it fails, in whatever way, None, and the first error of this name is noted."""
        try:
            return work()
        except Exception as e:
            trouble = f"{type(e).__name__}: {str(e).strip()[:200]}".replace("\n", " ")
            self.versions.setdefault(f"left out: {name}", trouble)
            self._progress(f"left out: {name}: {trouble}")
        _free_memory()
        return None


def _sampling(model: Any, sizes: Sizes, rounds: int, progress: Progress, beside: Beside) -> Iterator[Quantity]:
    half, begun = copy.deepcopy(model).to(torch.bfloat16), False
    works = [(f"{n} prompts", n, 1) for n in sizes.prompts]
    works.append((f"{sizes.prompts[0] // 4} groups of {sizes.group}", sizes.prompts[0] // 4, sizes.group))

    def ours(graphs: bool) -> _Sampler:
        engine = _engine(model, sizes, graphs)

        def seconds(prompts: list[list[int]], new: list[int]) -> float:
            engine.update(model, engine.version + 1)  # no cache of the round before
            requests = [Request(p, m, seed=i) for i, (p, m) in enumerate(zip(prompts, new, strict=True))]
            return _seconds(lambda: engine.generate(requests), half)

        return seconds

    mine = {"ours": ours(False), "ours, as graphs": ours(True)}
    with ExitStack() as stack:
        asked: dict[str, _Sampler] = {"generate": lambda p, n: _seconds(lambda: hf_peer.generate(half, p, n), half)}
        for name, make in (("continuous batching", _continuous), ("vLLM", _vllm)):
            if sampler := beside.attempt(name, lambda make=make: stack.enter_context(make(half, sizes, beside))):
                asked[name] = sampler
        for name, n, group in works:
            both = mine | asked
            sides = {which: _failing_apart(f"{which}, {name}", sampler, beside) for which, sampler in both.items()}
            for which in mine if begun else sides:  # ours captures graphs of new sizes
                progress(f"warming up: {which}")
                sides[which](*_drawn(sizes, n, group, -1))
            begun = True

            def side(k: int, sampler: _Sampler, n: int = n, group: int = group) -> dict[str, float]:
                prompts, new = _drawn(sizes, n, group, k)
                speed = sum(new) / sampler(prompts, new)
                progress(f"{speed:,.0f} {UNIT}")  # a run that is ended early has said this much
                return {"tokens/s": speed}

            seen = in_turn(
                {which: partial(side, sampler=sampler) for which, sampler in sides.items()},
                rounds,
                lambda said, name=name: progress(f"{name}, {said}"),
            )
            speeds = {which: found["tokens/s"] for which, found in seen.items() if np.isfinite(found["tokens/s"]).all()}
            for which in mine:
                if which not in speeds:  # it failed
                    continue
                said, speed = f"sampling: {name}{which.removeprefix('ours')}", speeds[which]
                compared = [
                    Quantity(
                        f"{said}, beside {peer}", UNIT, speed, theirs, _called(peer, beside), True, GOALS.get(peer)
                    )
                    for peer, theirs in speeds.items()
                    if peer in asked
                ]
                yield from compared or [Quantity(said, UNIT, speed, higher_is_better=True)]


def _failing_apart(name: str, sampler: _Sampler, beside: Beside) -> _Sampler:
    """A sampler that takes nan seconds where it fails: its row is left out, and all others are kept."""

    def seconds(prompts: list[list[int]], new: list[int]) -> float:
        found = beside.attempt(name, lambda: sampler(prompts, new))
        return float("nan") if found is None else found

    return seconds


def _called(peer: str, beside: Beside) -> str:
    return f"{peer} {beside.versions.get(peer) or 'of transformers ' + version('transformers')}"


def _drawn(sizes: Sizes, n: int, group: int, k: int) -> tuple[list[list[int]], list[int]]:
    """Prompts of a round, each `group` times, and numbers of new tokens; no round has those of another, which a peer
    may have kept."""
    draw = random.Random(f"{n} {k}")
    prompts = [p for p in (_ids(draw, draw.randint(*sizes.prompt), sizes) for _ in range(n)) for _ in range(group)]
    return prompts, [draw.randint(*sizes.new) for _ in prompts]


@contextmanager
def _continuous(half: Any, sizes: Sizes, beside: Beside) -> Iterator[_Sampler]:
    most = max(*sizes.prompts, sizes.prompts[0] // 4 * sizes.group)
    model = copy.deepcopy(half)
    with hf_peer.continuous_batching(model, sizes.cache, most, sizes.prompt[1], sizes.new[1]) as sample:
        yield lambda prompts, new: _seconds(lambda: sample(prompts, new), half)


@contextmanager
def _vllm(half: Any, sizes: Sizes, beside: Beside) -> Iterator[_Sampler | None]:
    """vLLM in a process of its own, which takes as much of the card as our engine and ends with it."""
    if "vLLM" not in beside.versions:
        yield None
        return
    longest = sizes.prompt[1] + sizes.new[1]
    settings: dict[str, Any] = {
        "skip_tokenizer_init": True,
        "generation_config": "vllm",
        "dtype": "bfloat16",
        "max_model_len": longest,
        "max_num_seqs": max(sizes.prompts),
        "kv_cache_memory_bytes": sizes.cache,
        "disable_log_stats": True,
    }
    if half.device.type == "cuda":
        weights = sum(p.numel() for p in half.parameters()) * 2
        card = torch.cuda.get_device_properties(half.device).total_memory
        settings["gpu_memory_utilization"] = round((weights + sizes.cache + (6 << 30)) / card, 3)
    with Peer(beside.python, Path(__file__).with_name("vllm_peer.py")) as peer:
        with TemporaryDirectory() as folder:
            half.save_pretrained(folder)
            peer.ask(settings | {"model": folder}, beside.left())

        def seconds(prompts: list[list[int]], new: list[int]) -> float:
            return peer.ask({"prompts": prompts, "new": new}, beside.left())["seconds"]

        yield seconds


def _whole_step(device: str, sizes: Sizes, rounds: int, progress: Progress, beside: Beside) -> list[Quantity]:
    """From prompts to changed weights, beside TRL where it is installed."""
    groups = sizes.rows // sizes.group
    work = step.StepWork(
        sizes.shape,
        groups,
        sizes.group,
        sizes.sample[1],
        sizes.prompt,
        steps=2,
        lr=1e-7,
        dtype="bfloat16",
        device=device,
        rows=min(8, sizes.rows),
    )
    theirs: dict[str, str] = {}

    def trl(k: int) -> dict[str, float]:
        _free_memory()
        found = beside.attempt("TRL", lambda: step.ask_trl(beside.python, work, k, theirs, max(beside.left(), 0)))
        return found or {"step": float("nan")}

    def ours(k: int) -> dict[str, float]:
        _free_memory()
        return step.ours(work, k)

    sides: dict[str, Callable[[int], dict[str, float]]] = {"ours": ours}
    if "TRL" in beside.versions:
        sides["TRL"] = trl
    seen = {side: found["step"] for side, found in in_turn(sides, rounds, progress).items()}
    name = f"a GRPO step: {groups} groups of {sizes.group}, {sizes.sample[1]} new tokens each"
    if "TRL" in seen and np.isfinite(seen["TRL"]).all():
        return [Quantity(name, "s", seen["ours"], seen["TRL"], f"TRL {theirs['trl']}")]
    return [Quantity(name, "s", seen["ours"])]


def _passes(model: Any, sizes: Sizes, rounds: int, progress: Progress, beside: Beside) -> Iterator[Quantity]:
    for graphs in (False, True):
        name = "a pass as a graph" if graphs else "a pass"
        if row := beside.attempt(name, partial(_one_pass, model, sizes, rounds, progress, graphs)):
            yield row


def _one_pass(model: Any, sizes: Sizes, rounds: int, progress: Progress, graphs: bool) -> Quantity:
    """Decoding alone: what a pass takes when all prompts are encoded."""
    engine, draw, found = _engine(model, sizes, graphs), random.Random(0), []
    for k in range(rounds + 1):
        progress(f"round {k} of {rounds}: a pass of {sizes.rows} rows" if k else "warming up: a pass")
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
    return Quantity(f"sampling: a pass of {sizes.rows} rows at context {sizes.context}{how}", "ms", found[1:], goal=8.0)


def _learning(model: Any, sizes: Sizes, rounds: int, progress: Progress, beside: Beside) -> Iterator[Quantity]:
    parameters = sum(p.numel() for p in model.parameters())
    alone, grouped = (_samples(model, sizes, group) for group in (1, sizes.group))
    tokens = sizes.rows * sum(sizes.sample)
    _reset_peak(model)
    learner = Learner(model, LEARNING, PPO())
    first: list[dict[str, Any]] = []
    begun = _seconds(lambda: first.append(learner.update(alone, random.Random(0))), model)
    begun += _seconds(lambda: learner.step(grouped), model)
    learner._likelihood.trees, branching = False, learner._likelihood.trees
    apart = [_seconds(lambda: learner.step(grouped), model) for _ in range(rounds + 1)][1:]
    learner._likelihood.trees = branching
    plain = _PlainLoop(model)
    plain.step(alone)  # warms up
    sides: dict[str, Callable[[int], Mapping[str, float]]] = {
        "ours": lambda _: {"s": _seconds(lambda: learner.step(alone), model)},
        "groups": lambda _: {"s": _seconds(lambda: learner.step(grouped), model)},
        "plain": lambda _: {"s": _seconds(lambda: plain.step(alone), model)},
    }
    seen = {side: found["s"] for side, found in in_turn(sides, rounds, progress).items()}
    against = "a loop of torch, float32 weights, autocast, padded"
    yield from (
        Quantity("learning: a step", "tokens/s", tokens / seen["ours"], tokens / seen["plain"], against, True),
        Quantity("learning: groups, prompts shared", "s", seen["groups"], apart, "without sharing", goal=1.8),
        Quantity("learning: first two steps", "s", [begun] * rounds, goal=30.0),
        Quantity("gap of sampler (bfloat16) and learner", "nats", [first[0]["sampling_gap"]] * rounds),
    )
    if model.device.type == "cuda":
        yield Quantity("learning: memory", "GiB", [torch.cuda.max_memory_allocated() / 2**30] * rounds)
        peak = next((p for part, p in PEAKS.items() if part in torch.cuda.get_device_name()), None)
        if peak:
            share = 6 * parameters * tokens / seen["ours"] / peak
            yield Quantity("learning: share of the card's peak", "", share, higher_is_better=True, goal=0.4)


def _faster(model: Any, sizes: Sizes, rounds: int, progress: Progress, beside: Beside) -> Iterator[Quantity]:
    """Steps under each of `FASTER`, after one that warms up; what does not run here is named."""
    samples = _samples(model, sizes, 1)
    for name, change in FASTER.items():
        progress(f"learning: {name}")
        _free_memory()

        def speeds(change: dict[str, Any] = change) -> list[float]:
            learner = Learner(model, LEARNING.replace(**change), PPO())
            took = [_seconds(lambda: learner.step(samples), model) for _ in range(rounds + 1)]
            return [sizes.rows * sum(sizes.sample) / seconds for seconds in took[1:]]

        if found := beside.attempt(name, speeds):
            yield Quantity(f"learning: a step, {name}", "tokens/s", found, higher_is_better=True)


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
    longest = sizes.shape["max_position_embeddings"]
    return LocalEngine(
        model, frozenset(), longest, dtype="bfloat16", cache_bytes=sizes.cache, shared=False, graphs=graphs
    )


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


def _free_memory() -> None:
    if torch.cuda.is_available():
        gc.collect()
        torch.cuda.empty_cache()


BENCHMARK = Benchmark(
    name="gpu",
    question="What does one GPU make of a model of 0.6B parameters, beside its peers on the same card?",
    equal=(
        "the model (Qwen3-0.6B's shape, random weights) and the card",
        "prompts of 200 to 400 tokens and 32 to 64 new ones, temperature 1, no end token, bfloat16, 8 GiB of cache; "
        "other prompts in every round; all sides are warmed up once",
        "a training step of 64 samples of 300 + 128 tokens, float32 weights, bfloat16 arithmetic",
        "a GRPO step of 8 groups of 8 completions of 128 tokens each, float32 weights, bfloat16 arithmetic",
    ),
    limits="launches of kernels where passes are no graphs and layers are not compiled: a pass of 26 ms is one of 7.4 "
    "ms as a graph, and compiled layers train 1.7 times as fast.",
    measure=measure,
    rounds=2,
)
