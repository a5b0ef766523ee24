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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from longstride.bench.base import Benchmark, Progress, Quantity, in_turn
from longstride.core.errors import ConfigError, RunError
from longstride.core.seeds import derive, stream
from longstride.engines.base import Request
from longstride.engines.local import LocalEngine
from longstride.learner.config import LearnerConfig
from longstride.learner.learner import Learner
from longstride.methods import PPO
from longstride.methods.base import ADVANTAGES, BEHAVIOUR, Sample


@dataclass(frozen=True)
class StepWork:
    """What is done in a round."""

    shape: dict[str, Any]
    """Of a Qwen3 model."""
    groups: int = 8
    """Prompts of a step."""
    siblings: int = 8
    """Completions of each."""
    new: int = 32
    """Tokens of a completion."""
    prompt: tuple[int, int] = (200, 400)
    """Least and most tokens of a prompt."""
    steps: int = 4
    """Of a round; the first one warms up."""
    lr: float = 1e-4
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Arithmetic; weights are float32."""
    device: str = "cpu"
    rows: int = 64
    """Rows of a micro-batch of the peer's."""

    def prompts(self, seed: int) -> list[list[int]]:
        """The prompts of a round, in the order of steps."""
        rng = stream(seed, "prompts")
        drawn = self.steps * self.groups
        return [rng.choices(range(3, self.shape["vocab_size"]), k=rng.randint(*self.prompt)) for _ in range(drawn)]


SHAPE: dict[str, Any] = {
    "vocab_size": 2048,
    "hidden_size": 160,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 40,
    "intermediate_size": 432,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": True,
}
"""2.0M parameters."""
WORK = StepWork(SHAPE)
PEER_SECONDS = 600.0
"""Seconds that a round of the peer may take."""


def measure(peer: str | None, rounds: int, progress: Progress) -> tuple[list[Quantity], dict[str, str]]:
    """The rows; `peer` is the Python of an environment with TRL, or None.

    Raises:
        ConfigError: the peer's Python cannot be run.
        RunError: the peer failed.
    """
    versions = {"torch": str(torch.__version__)}
    sides: dict[str, Callable[[int], dict[str, float]]] = {"ours": lambda k: ours(WORK, k)}
    if peer is not None:
        sides["TRL"] = lambda k: ask_trl(peer, WORK, k, versions)
    seen = in_turn(sides, rounds, progress)
    mine = seen["ours"]
    if peer is None:
        rows = [Quantity("step", "s", mine["step"])]
    else:
        rows = [Quantity("step", "s", mine["step"], seen["TRL"]["step"], f"TRL {versions['trl']}", goal=8.0)]
    parts = ("generation", "learner")
    return [*rows, *(Quantity(f"step: {part}", "s", mine[part]) for part in parts)], versions


def ours(work: StepWork, seed: int) -> dict[str, float]:
    """Seconds of a step of ours (`step`, and of it `generation` and `learner`): the median of a round's."""
    torch.manual_seed(0)
    with torch.device(work.device):
        model: Any = Qwen3ForCausalLM(Qwen3Config(**work.shape)).eval()
    engine = LocalEngine(model, frozenset(), work.shape["max_position_embeddings"], dtype=work.dtype)
    learner = Learner(model, LearnerConfig(dtype=work.dtype, lr=work.lr, warmup_steps=0), PPO())
    asked, found = work.prompts(seed), {"step": [], "generation": [], "learner": []}
    for step in range(work.steps):
        began = time.perf_counter()
        of_step = [p for p in asked[step * work.groups : (step + 1) * work.groups] for _ in range(work.siblings)]
        requests = [Request(p, work.new, seed=derive(seed, step, n)) for n, p in enumerate(of_step)]
        done = engine.generate(requests)
        generated = time.perf_counter()
        rewards = [sum(i % 2 for i in c.ids) / work.new for c in done]
        samples = []
        for n, (prompt, completion) in enumerate(zip(of_step, done, strict=True)):
            group = rewards[n - n % work.siblings :][: work.siblings]
            advantage = (rewards[n] - statistics.fmean(group)) / (statistics.stdev(group) + 1e-4)
            streams = {ADVANTAGES: [advantage] * work.new, BEHAVIOUR: completion.logprobs}
            samples.append(Sample(prompt, completion.ids, streams, n, n // work.siblings))
        learner.update(samples, random.Random(step))
        engine.update(learner.full_model(), step + 1)
        if work.device == "cuda":
            torch.cuda.synchronize()
        ended = time.perf_counter()
        for name, seconds in (
            ("step", ended - began),
            ("generation", generated - began),
            ("learner", ended - generated),
        ):
            found[name].append(seconds)
    return {name: statistics.median(seconds[1:]) for name, seconds in found.items()}


def ask_trl(
    peer: str, work: StepWork, seed: int, versions: dict[str, str], timeout: float = PEER_SECONDS
) -> dict[str, float]:
    """Seconds of a step of TRL's (`step`), in a process of its own; its versions are added to `versions`.

    Raises:
        ConfigError: the peer's Python cannot be run.
        RunError: the peer failed, or took longer than `timeout` seconds.
    """
    asked = asdict(work) | {"prompts": work.prompts(seed), "threads": torch.get_num_threads()}
    program = str(Path(__file__).with_name("trl_peer.py"))
    try:
        done = subprocess.run([peer, program], input=json.dumps(asked), capture_output=True, text=True, timeout=timeout)
    except OSError as e:
        raise ConfigError(f"--peer {peer} cannot be run ({e.strerror}); make it:\n{HOW_TO_MAKE_PEER}") from e
    except subprocess.TimeoutExpired as e:
        raise RunError(f"a round of TRL did not end within {timeout:g} s; look at --peer {peer}") from e
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
        f"{WORK.groups} prompts of {WORK.prompt[0]} to {WORK.prompt[1]} tokens, {WORK.siblings} completions each of "
        f"exactly {WORK.new} tokens",
        "temperature 1, the same reward, group-relative advantages, one clipped step of AdamW on all of them",
    ),
    limits=(
        "a prompt is computed once a group, in the engine and in the learner, the head only where a token is trained; "
        "what is left are matrix products and, at this size, the calls around them."
    ),
    measure=measure,
    how_to_make_peer=HOW_TO_MAKE_PEER,
)
