"""What `longstride plan` foretells beside what was measured: on this machine, where a small run says what a larger one
takes, in one process and in two; and on an H100, by the figures that were kept of one.

What always holds: what is foretold is computed from the small run of the same round alone; of the H100 the two figures
that the plan's own constants were taken from are not among the rows.
"""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from longstride.bench.base import Benchmark, Progress, Quantity, in_turn
from longstride.core.config import resolve
from longstride.core.errors import ConfigError, RunError
from longstride.models.public import described
from longstride.papers.naming import find_experiment
from longstride.run import memory
from longstride.run.cards import CARDS, UNCAPTURED
from longstride.run.demand import demand_of, rows_of
from longstride.run.memory import GIB
from longstride.run.plan import CardPlanner, Shape, forecast
from longstride.run.recipe import Recipe

NAME = "webagent_r1"
ALIKE = (
    "iterations=3",
    "engine.processes=1",
    "learner.threads=1",
    "evaluation.tasks=8",
    "evaluation.every=3",
    "engine.kernels=auto",
    "learner.kernels=auto",
    "learner.dtype=float32",
    "learner.micro_tokens=512",
    "evaluation.baselines=false",
)
SMALL, LARGE = (("episodes_per_iteration=64", "budget.turns=8"), ("episodes_per_iteration=192", "budget.turns=16"))
"""The run that says what a process makes, and the one that is foretold: three times the episodes of up to twice the
turns."""
MEASURED = "measured"
PARTS = {"rollouts": "rollout_seconds", "learning": "train_seconds"}
WITHIN = 25.0
"""Per cent by which an iteration may take longer or less than foretold."""
RUN_SECONDS = 600.0

SAMPLED = {64: (1, 1258.0), 256: (1, 4196.0), 128: (8, 2556.0), 512: (1, 3933.0)}
"""By prompts: how many share one, and new tokens a second, as measured on an H100 of our engine without graphs."""
PASSES = {256: 39.0, 128: 34.0}
"""Milliseconds of a decoding pass by its rows."""
PROMPT, NEW = 300, (32, 128)
"""Tokens of a prompt in the mean; least and most new ones."""
LEARNING_GIB = 31.0
"""Memory of a step of the learner there; its passes are taken to have the 8,192 tokens that were usual then."""


def measure(peer: str | None, rounds: int, progress: Progress) -> tuple[list[Quantity], dict[str, str]]:
    """The rows; there is no peer: `peer` of a row is what was measured.

    Raises:
        ConfigError: one was given.
        RunError: a run failed.
    """
    if peer is not None:
        raise ConfigError("plans are compared with what was measured; leave --peer out")
    with TemporaryDirectory() as home:
        sides = {f"{n} {'process' if n == 1 else 'processes'}": partial(_foretold, Path(home), n) for n in (1, 2)}
        seen = in_turn(sides, rounds, progress)
    rows = []
    for name, found in seen.items():
        for part in ("an iteration", *PARTS):
            rows.append(Quantity(f"{name}: {part}", "s", found[part], found[f"{part}, {MEASURED}"], MEASURED))
        off = 100 * abs(found[f"an iteration, {MEASURED}"] / found["an iteration"] - 1)
        rows.append(Quantity(f"{name}: an iteration is off by", "%", off, goal=WITHIN))
    return rows + on_an_h100(), {}


def _foretold(home: Path, processes: int, k: int) -> dict[str, float]:
    """Seconds of an iteration of the larger run, as foretold by the small one of the round, and as measured."""
    small = _run(home / f"small-{processes}-{k}", processes, (*ALIKE, *SMALL, f"seed={k}"))
    large = _run(home / f"large-{processes}-{k}", processes, (*ALIKE, *LARGE, f"seed={k}"))
    best = forecast(_recipe(NAME, *ALIKE, *LARGE), run=small).best
    *rollout, learning, _ = (phase.seconds for phase in best.phases)
    _, rows = rows_of(large)
    found = {"rollouts": sum(rollout), "learning": learning}
    found |= {f"{part}, {MEASURED}": fmean(row[field] for row in rows) for part, field in PARTS.items()}
    whole = {"an iteration": best.iteration, f"an iteration, {MEASURED}": sum(found[f"{p}, {MEASURED}"] for p in PARTS)}
    return found | whole


def _recipe(name: str, *changes: str) -> Recipe:
    found = find_experiment(name)
    assert isinstance(found, Recipe)
    return resolve(Recipe, found, list(changes))


def _run(folder: Path, processes: int, changes: tuple[str, ...]) -> Path:
    python = [sys.executable]
    if processes > 1:
        python += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    command = [*python, "-m", "longstride", "train", NAME, *changes, "--out", str(folder)]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=RUN_SECONDS)
    if done.returncode:
        raise RunError(f"`{' '.join(command)}` failed: {done.stderr[-3000:]}")
    return folder


def on_an_h100() -> list[Quantity]:
    """What the plan says of the kept figures of an H100 (Qwen3-0.6B's shape, bfloat16, commit 1c8d745)."""
    recipe = _recipe("grpo", "device=cuda")
    with described("Qwen/Qwen3-0.6B") as model:
        planner = CardPlanner(demand_of(recipe), Shape.of(model), CARDS["H100"])
        server = {"type": "http", "url": "http://127.0.0.1:8000/v1", "model": "m"}
        needed = memory.plan(recipe.replace(model=model, engine=server)).needed / GIB
    rows = []
    for prompts, (group, speed) in SAMPLED.items():
        name = f"H100, our engine: {prompts} prompts" + (f" in groups of {group}" if group > 1 else "")
        rows.append(Quantity(name, "new tokens/s", [sampled(planner, prompts, group)], [speed], MEASURED))
    for n, milliseconds in PASSES.items():
        ours = 1000 * max(planner.limits(UNCAPTURED, n, PROMPT + NEW[1] / 2).values())
        rows.append(Quantity(f"H100, our engine: a pass of {n} rows", "ms", [ours], [milliseconds], MEASURED))
    return [*rows, Quantity("H100: memory of an optimiser step", "GiB", [needed], [LEARNING_GIB], MEASURED)]


def sampled(planner: CardPlanner, prompts: int, group: int) -> float:
    """New tokens a second where so many prompts are sampled from together until the longest answer ends. Answers have
    every length from the least to the most alike often."""
    least, most = NEW
    seconds = planner.reading(UNCAPTURED, prompts / group * PROMPT, PROMPT / 2)
    for k in range(most):
        rows = prompts * min(1.0, (most - k) / (most - least))
        seconds += max(planner.limits(UNCAPTURED, rows, PROMPT + k).values())
    return prompts * (least + most) / 2 / seconds


BENCHMARK = Benchmark(
    name="plan",
    question="How near does `longstride plan` come to what runs take?",
    equal=(
        f"a run of {NAME}: {SMALL[0]}, {SMALL[1]} foretells one of {LARGE[0]}, {LARGE[1]}, with the same seed; each "
        "process has one thread",
        "`ours` of a row is what was foretold, its peer what was measured; the ratio is measured to foretold",
        "the H100 has 80 GB and Qwen3-0.6B's shape, measured at commit 1c8d745; prompts of 300 tokens, 32 to 128 new",
    ),
    limits=(
        "what an episode is like (its turns, what is trained of it) is taken over from the small run, and a policy "
        "changes while it learns; other work on this machine; nothing was measured on several cards."
    ),
    measure=measure,
    rounds=2,
)
