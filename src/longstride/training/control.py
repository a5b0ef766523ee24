"""Training of control agents in a run folder: the same files, rows and resume as the trainer of language agents.

What always holds: iteration i depends on the recipe and on what was collected so far, and on nothing else, so a
resumed run gives the numbers of one that was not stopped; the run folder holds the last whole iteration whenever the
process ends. A checkpoint is `trainer.safetensors` (weights, optimisers, collected transitions) and `trainer.json`;
the offline data is made again from the seed.
"""

import json
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field
from safetensors.torch import save_file

from longstride.core.component import Component
from longstride.core.config import dump_toml, load_toml
from longstride.core.errors import RunError
from longstride.curriculum.schedules import HorizonSchedule
from longstride.envs.control import ControlTasks, Episode
from longstride.stats import wilson_interval
from longstride.training.checkpoint import KEPT, latest_checkpoint, write_atomically
from longstride.training.config import Count
from longstride.training.run_folder import Listener, Silent
from longstride.value import Agent, ControlLoop, Phase


class ControlEvaluation(Component):
    """What is measured while a recipe runs; the same starts and goals every time."""

    episodes: Count = 10
    """Episodes of each test task."""
    every: Count = 10
    """Iterations between evaluations; the untrained agent and the last iteration are always evaluated."""


class ControlRecipe(Component):
    """A method of control and its numbers. Iterations count from 1; 0 is the untrained agent."""

    name: str
    """Name of the method."""
    seed: int = 0
    """Every random stream is derived from it."""
    tasks: ControlTasks
    """Where data, training episodes and tests come from."""
    agent: Agent
    """What is trained."""
    phases: tuple[Phase, ...] = Field(min_length=1)
    """When it collects and when it learns, in this order."""
    horizon: HorizonSchedule
    """Steps that a collected episode may take, by iteration."""
    test_horizon: HorizonSchedule
    """Steps that an evaluation episode may take; asked for iteration 1 always."""
    evaluation: ControlEvaluation = ControlEvaluation()
    """What is measured."""

    @property
    def iterations(self) -> int:
        """Of all phases."""
        return sum(phase.iterations for phase in self.phases)


def train_control(recipe: ControlRecipe, folder: Path, listener: Listener | None = None, resume: bool = False) -> None:
    """Runs a recipe in a run folder.

    Args:
        recipe: what is run.
        folder: created; must not hold a run unless `resume`.
        listener: takes every metrics row.
        resume: go on after the last checkpoint of the run in `folder`; start it where there is none.

    Raises:
        RunError: the folder holds a run already, or one of another recipe; a damaged checkpoint.
    """
    run = ControlRun(recipe, folder, listener or Silent(), resume)
    loop = ControlLoop(recipe.tasks, recipe.agent, recipe.phases, recipe.seed)
    checkpoint = latest_checkpoint(folder)
    if checkpoint is None:
        run.evaluated(loop)
        run.save(loop)
    else:
        loop.load_state(checkpoint.tensors(), checkpoint.numbers)
    for i in range(run.iteration + 1, recipe.iterations + 1):
        began, horizon = time.perf_counter(), recipe.horizon.turns(i)
        metrics = loop.update(i, horizon)
        run.collected(i, metrics)
        run.row("train", horizon=horizon, **metrics, train_seconds=time.perf_counter() - began)
        if i % recipe.evaluation.every == 0 or i == recipe.iterations:
            run.evaluated(loop)
        run.save(loop)


class ControlRun:
    """A run folder being written."""

    def __init__(self, recipe: ControlRecipe, folder: Path, listener: Listener, resume: bool) -> None:
        self.recipe, self.folder, self.listener = recipe, folder, listener
        self.metrics = folder / "metrics.jsonl"
        _take_folder(recipe, folder, resume)
        checkpoint = latest_checkpoint(folder)
        counters = checkpoint.numbers if checkpoint else {}
        self.iteration, self.rows = int(counters.get("iteration", 0)), int(counters.get("rows", 0))
        self.episodes, self.env_steps = int(counters.get("episodes", 0)), int(counters.get("env_steps", 0))
        self.clock = time.perf_counter() - float(counters.get("seconds", 0.0))
        lines = self.metrics.read_text(encoding="utf-8").splitlines(keepends=True) if self.metrics.exists() else []
        if len(lines) < self.rows:
            raise RunError(f"{self.metrics} has {len(lines)} rows, the checkpoint was made after {self.rows}")
        write_atomically(self.metrics, "".join(lines[: self.rows]))

    def collected(self, iteration: int, metrics: dict[str, Any]) -> None:
        """Counts what an iteration has played."""
        self.iteration = iteration
        self.episodes += metrics["collected"]
        self.env_steps += metrics["env_steps"]

    def row(self, kind: str, **values: Any) -> None:
        """Writes a metrics row and tells the listener."""
        row = {
            "kind": kind, "iteration": self.iteration, "total_episodes": self.episodes,
            "total_env_steps": self.env_steps, "seconds": time.perf_counter() - self.clock, **values,
        }  # fmt: skip
        with self.metrics.open("a", encoding="utf-8") as f:
            f.write(json.dumps(row) + "\n")
        self.rows += 1
        self.listener(row)

    def evaluated(self, loop: ControlLoop) -> None:
        """Tests the agent and writes the row."""
        horizon = self.recipe.test_horizon.turns(1)
        tested = loop.evaluate(self.recipe.evaluation.episodes, horizon)
        by_task = {
            name: summary_of([e for e, n in zip(tested.episodes, tested.names, strict=True) if n == name])
            for name in dict.fromkeys(tested.names)
        }
        self.row(
            "eval", policy="agent" if self.iteration else "warm_start", strategy="direct", horizon=horizon,
            summary=summary_of(tested.episodes) | {"failed": 0, "by_source": by_task},
            interval=list(wilson_interval(sum(e.terminated for e in tested.episodes), len(tested.episodes))),
            outcomes=tested.outcomes,
        )  # fmt: skip

    def save(self, loop: ControlLoop) -> None:
        """Saves what an exact resume needs, makes it the latest, and drops old ones."""
        tensors, numbers = loop.state()
        numbers |= {
            "iteration": self.iteration, "rows": self.rows, "episodes": self.episodes, "env_steps": self.env_steps,
            "seconds": time.perf_counter() - self.clock,
        }  # fmt: skip
        home = self.folder / "checkpoints"
        folder, partial = home / f"{self.iteration:06d}", home / "partial"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        save_file({k: t.contiguous() for k, t in tensors.items()}, partial / "trainer.safetensors")
        (partial / "trainer.json").write_text(json.dumps(numbers, indent=1), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)  # left by a run that was cut back; `latest` is not it
        os.replace(partial, folder)
        write_atomically(home / "latest.json", json.dumps({"folder": folder.name}))
        old = sorted(p for p in home.iterdir() if re.fullmatch(r"\d{6}", p.name) and p.name <= folder.name)
        for path in old[1:-KEPT]:
            shutil.rmtree(path)


def summary_of(episodes: list[Episode]) -> dict[str, Any]:
    """What metrics rows say of episodes; see `rollout.summary`."""
    lengths, solved = [e.length for e in episodes], [e.terminated for e in episodes]
    return {
        "episodes": len(episodes),
        "env_steps": sum(lengths),
        "success": float(np.mean(solved)),
        "length": float(np.mean(lengths)),
        "length_success": float(np.mean([n for n, s in zip(lengths, solved, strict=True) if s] or [0.0])),
        "timeouts": 1 - float(np.mean(solved)),
    }


def _take_folder(recipe: ControlRecipe, folder: Path, resume: bool) -> None:
    """Makes the folder this recipe's, or says why it cannot be."""
    path = folder / "run.toml"
    if path.exists() and not resume:
        raise RunError(f"{folder} holds a run already; resume it, or choose another folder")
    if path.exists() and load_toml(ControlRecipe, path) != recipe:
        raise RunError(f"{folder} is a run of another recipe; resume it with its own run.toml")
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path, dump_toml(recipe))
