"""Time of a GRPO step (generate, reward, group-relative advantages, one PPO step), against TRL's `GRPOTrainer`.

What always holds: both sides sample all completions anew from their own copy of one architecture, every completion has
the same number of tokens, and a time is that of a whole step but the first, which warms up.
"""

import json
import random
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from longstride.bench.base import Benchmark, Progress, Row, in_turn
from longstride.core.errors import ConfigError, RunError
from longstride.core.seeds import derive, stream
from longstride.engines.base import Request
from longstride.engines.local import LocalEngine
from longstride.learner.config import LearnerConfig
from longstride.learner.learner import Learner
from longstride.methods import PPO
from longstride.methods.base import ADVANTAGES, BEHAVIOUR, Sample

SHAPE = {
    "vocab_size": 2048, "hidden_size": 160, "num_hidden_layers": 6, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 40, "intermediate_size": 432, "max_position_embeddings": 2048, "tie_word_embeddings": True,
}  # fmt: skip
"""2.0M parameters."""
GROUPS, SIBLINGS, NEW, PROMPT = 8, 8, 32, (200, 400)
"""Prompts of a step, completions of each, tokens of a completion, and least and most tokens of a prompt."""
STEPS = 4
"""Steps of a round; the first one warms up."""
LR = 1e-4
PEER_SECONDS = 600.0
"""Seconds that a round of the peer may take."""


def measure(peer: str | None, rounds: int, progress: Progress) -> tuple[list[Row], dict[str, str]]:
    """The rows; `peer` is the Python of an environment with TRL, or None.

    Raises:
        ConfigError: the peer's Python cannot be run.
        RunError: the peer failed.
    """
    versions = {"torch": str(torch.__version__)}
    sides: dict[str, Callable[[int], dict[str, float]]] = {"ours": _ours}
    if peer is not None:
        sides["TRL"] = lambda k: _ask_peer(peer, k, versions)
    seen = in_turn(sides, rounds, progress)
    ours = seen["ours"]
    if peer is None:
        rows = [Row("step", "s", ours["step"])]
    else:
        rows = [Row("step", "s", ours["step"], seen["TRL"]["step"], f"TRL {versions['trl']}", goal=8.0)]
    parts = ("generation", "learner")
    return [*rows, *(Row(f"step: {part}", "s", ours[part]) for part in parts)], versions


def prompts(seed: int) -> list[list[int]]:
    """The prompts of a round, in the order of steps."""
    rng = stream(seed, "prompts")
    return [rng.choices(range(3, SHAPE["vocab_size"]), k=rng.randint(*PROMPT)) for _ in range(STEPS * GROUPS)]


def _ours(seed: int) -> dict[str, float]:
    torch.manual_seed(0)
    model: Any = Qwen3ForCausalLM(Qwen3Config(**SHAPE)).eval()  # pyright: ignore[reportArgumentType]
    engine = LocalEngine(model, frozenset(), SHAPE["max_position_embeddings"])
    learner = Learner(model, LearnerConfig(dtype="float32", lr=LR, warmup_steps=0), PPO())
    asked, found = prompts(seed), {"step": [], "generation": [], "learner": []}
    for step in range(STEPS):
        began = time.perf_counter()
        of_step = [p for p in asked[step * GROUPS : (step + 1) * GROUPS] for _ in range(SIBLINGS)]
        requests = [Request(p, NEW, seed=derive(seed, step, n)) for n, p in enumerate(of_step)]
        done = engine.generate(requests)
        generated = time.perf_counter()
        rewards = [sum(i % 2 for i in c.ids) / NEW for c in done]
        samples = []
        for n, (prompt, completion) in enumerate(zip(of_step, done, strict=True)):
            group = rewards[n - n % SIBLINGS :][:SIBLINGS]
            advantage = (rewards[n] - statistics.fmean(group)) / (statistics.stdev(group) + 1e-4)
            streams = {ADVANTAGES: [advantage] * NEW, BEHAVIOUR: completion.logprobs}
            samples.append(Sample(prompt, completion.ids, streams, n, n // SIBLINGS))
        learner.update(samples, random.Random(step))
        engine.update(learner.full_model(), step + 1)
        ended = time.perf_counter()
        for name, seconds in (
            ("step", ended - began),
            ("generation", generated - began),
            ("learner", ended - generated),
        ):
            found[name].append(seconds)
    return {name: statistics.median(seconds[1:]) for name, seconds in found.items()}


def _ask_peer(peer: str, seed: int, versions: dict[str, str]) -> dict[str, float]:
    """A round of TRL's, in a process of its own; its versions are added to `versions`."""
    asked = {
        "shape": SHAPE, "prompts": prompts(seed), "groups": GROUPS, "siblings": SIBLINGS, "new": NEW, "lr": LR,
        "threads": torch.get_num_threads(),
    }  # fmt: skip
    program = str(Path(__file__).with_name("trl_peer.py"))
    try:
        done = subprocess.run(
            [peer, program], input=json.dumps(asked), capture_output=True, text=True, timeout=PEER_SECONDS
        )
    except OSError as e:
        raise ConfigError(f"--peer {peer} cannot be run ({e.strerror}); make it:\n{HOW_TO_MAKE_PEER}") from e
    except subprocess.TimeoutExpired as e:
        raise RunError(f"a round of TRL did not end within {PEER_SECONDS:g} s; look at --peer {peer}") from e
    try:
        found = json.loads(done.stdout.splitlines()[-1])
        versions |= {k if k != "torch" else "torch of TRL": v for k, v in found["versions"].items()}
        return {"step": statistics.median(found["seconds"])}
    except (IndexError, ValueError, KeyError) as e:
        raise RunError(f"TRL could not be measured by --peer {peer}: {done.stderr.strip()[-500:]}") from e


HOW_TO_MAKE_PEER = """\
  python -m venv trl-peer
  trl-peer/bin/pip install torch trl accelerate datasets
  longstride bench step --peer trl-peer/bin/python"""
BENCHMARK = Benchmark(
    name="step",
    question="What does a whole GRPO step cost on this machine, from prompts to changed weights?",
    equal=(
        "the architecture (Qwen3, 2.0M parameters) in float32, and the threads",
        f"{GROUPS} prompts of {PROMPT[0]} to {PROMPT[1]} tokens, {SIBLINGS} completions each of exactly {NEW} tokens",
        "temperature 1, the same reward, group-relative advantages, one clipped step of AdamW on all of them",
    ),
    limits=(
        "a prompt is computed once a group, in the engine and in the learner, the head only where a token is trained; "
        "what is left are matrix products and, at this size, the calls around them."
    ),
    measure=measure,
    how_to_make_peer=HOW_TO_MAKE_PEER,
)
