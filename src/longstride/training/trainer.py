"""The trainer: the one loop. plan -> roll out -> score -> assign credit -> update, an evaluation, a checkpoint.

What always holds: iteration i depends on the recipe, the policy after i - 1 and what was collected so far, and on
nothing else, so a resumed run gives the numbers of one that was not stopped; a failed episode is counted and never
trained on; the run folder holds the last whole iteration whenever the process ends, however it ends.
"""

import errno
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from longstride.core.config import dump_toml, load_toml
from longstride.core.errors import LongstrideError, RunError
from longstride.core.seeds import derive, stream
from longstride.core.trajectory import Trajectory
from longstride.models.load import load_policy
from longstride.rollout.episode import Plan
from longstride.rollout.pool import Player, Pool
from longstride.rollout.store import TrajectoryStore
from longstride.rollout.summary import summarise
from longstride.training.checkpoint import latest_checkpoint, save_checkpoint, write_atomically
from longstride.training.evaluate import (
    Result,
    evaluate_baselines,
    evaluate_player,
    language_player,
    make_plan,
    turns_by_difficulty,
)
from longstride.training.learner import Learner
from longstride.training.recipe import Recipe

SHOWN = 40
"""Evaluation episodes that are kept in `episodes/`, the same tasks before and after."""


class Listener(Protocol):
    """Whoever watches a run."""

    def __call__(self, row: dict[str, Any]) -> None:
        """Takes a metrics row."""
        ...

    def progress(self, phase: str, done: int, total: int) -> None:
        """Is told how far a phase (`rollout`, `train`, `eval`) is."""
        ...


class Silent:
    """A listener to nothing."""

    def __call__(self, row: dict[str, Any]) -> None:
        pass

    def progress(self, phase: str, done: int, total: int) -> None:
        pass


def train(recipe: Recipe, folder: Path, listener: Listener | None = None, resume: bool = False) -> None:
    """Runs a recipe in a run folder (see docs/architecture.md for what it holds).

    Args:
        recipe: what is run.
        folder: created; must not hold a run unless `resume`.
        listener: takes every metrics row and the progress between rows.
        resume: go on after the last checkpoint of the run in `folder`; start it where there is none. `iterations` may
            have grown meanwhile, nothing else may differ.

    Raises:
        RunError: the folder holds a run already, or one of another recipe; a damaged checkpoint; a full disk.
    """
    run = Run(recipe, folder, listener or Silent(), resume)
    try:
        _loop(recipe, run)
    except (OSError, LongstrideError) as e:
        cause = e if isinstance(e, OSError) else e.__cause__
        if not isinstance(cause, OSError) or cause.errno != errno.ENOSPC:
            raise
        raise RunError(f"the disk is full; {folder} keeps the run up to {run.saved}: make room and resume it") from e


def _loop(recipe: Recipe, run: "Run") -> None:
    policy = load_policy(str(run.checkpoint.folder) if run.checkpoint else recipe.model)
    samplings = dict.fromkeys([recipe.sampling, recipe.evaluation.sampling or recipe.sampling])
    engine = recipe.engine.make(policy, run.iteration, list(samplings))
    engine.update(policy.model, run.iteration)  # an engine that takes no weights says so now, not after a rollout
    learner = Learner(policy.model, recipe.learner, recipe.loss)
    player = language_player(policy, recipe, engine)
    tested = language_player(policy, recipe, engine, testing=True)
    pool = Pool(player, recipe.tasks.env, recipe.reward, batch=recipe.tasks.at_once)
    if run.checkpoint is None:
        evaluate(recipe, run, tested)
        run.checkpoint = save_checkpoint(run.folder, 0, policy, *run.state(learner))
    else:
        learner.load_state(run.checkpoint.tensors(), run.checkpoint.numbers)

    for i in range(run.iteration + 1, recipe.iterations + 1):
        started, sampled_before = time.perf_counter(), engine.tokens_out
        trajectories = pool.run(plan(recipe, i), run.progress("rollout"))
        rollout_seconds, tokens = time.perf_counter() - started, engine.tokens_out - sampled_before

        fresh = run.collect(i, trajectories)
        started = time.perf_counter()
        chosen = recipe.replay.draw(run.kept, fresh, stream(recipe.seed, "replay", i))
        trained = learner.update(recipe.credit(chosen), stream(recipe.seed, "learner", i), run.progress("train"))
        engine.update(policy.model, i)

        run.row(
            "train",
            horizon=turns_by_difficulty(recipe.horizon, i),
            summary=summarise(trajectories),
            **trained,
            replay_size=len(run.kept),
            solved_tasks=len(run.solved) / max(len(run.started), 1),
            tokens_per_second=tokens / rollout_seconds,
            rollout_seconds=rollout_seconds,
            train_seconds=time.perf_counter() - started,
        )
        if i % recipe.evaluation.every == 0 or i == recipe.iterations:
            evaluate(recipe, run, tested)
        save_checkpoint(run.folder, i, policy, *run.state(learner))
        run.saved = f"iteration {i}"


def plan(recipe: Recipe, iteration: int) -> list[Plan]:
    """The episodes of an iteration: tasks drawn with replacement, each under the horizon of its difficulty."""
    turns = turns_by_difficulty(recipe.horizon, iteration)
    tasks = recipe.tasks.sample(stream(recipe.seed, "tasks", iteration), recipe.episodes // recipe.group)
    first, size = (iteration - 1) * recipe.episodes, recipe.group
    return [
        make_plan(recipe, task, turns, n, derive(recipe.seed, "episode", n - n % size), iteration, size)
        for n, task in enumerate((task for task in tasks for _ in range(size)), first)
    ]


def evaluate(recipe: Recipe, run: "Run", player: Player) -> None:
    """Adds the evaluation rows of the policy as it is now; at iteration 0 those of the trivial policies too."""
    tasks = recipe.tasks.held_out(recipe.evaluation.tasks)
    name = "agent" if run.iteration else "warm_start"
    for k, strategy in enumerate(recipe.evaluation.strategies):
        result = evaluate_player(player, recipe, tasks, strategy, run.progress("eval"))
        run.evaluated(name, strategy.name, result)
        if k == 0:
            run.show("after" if run.iteration else "before", result.trajectories)
    if run.iteration == 0 and recipe.evaluation.baselines:
        for baseline, result in evaluate_baselines(recipe, tasks, run.progress("eval")).items():
            run.evaluated(baseline, "direct", result)


class Run:
    """A run folder being written, and what of it the loop needs in memory."""

    def __init__(self, recipe: Recipe, folder: Path, listener: Listener, resume: bool) -> None:
        self.recipe, self.folder, self.listener = recipe, folder, listener
        _take_folder(recipe, folder, resume)
        self.checkpoint = latest_checkpoint(folder)
        numbers = self.checkpoint.numbers if self.checkpoint else {}
        try:
            self.iteration, self.rows = int(numbers.get("iteration", 0)), int(numbers.get("rows", 0))
            self.seconds_before = float(numbers.get("seconds", 0.0))
        except (TypeError, ValueError) as e:
            raise RunError(f"{folder}: trainer.json of the last checkpoint is damaged: {e}") from e
        self.saved = f"iteration {self.iteration}" if self.checkpoint else "its start"
        """What the last checkpoint keeps."""
        self.clock = time.perf_counter()
        self.kept: list[Trajectory] = []
        """Everything that replay admitted, oldest first."""
        self.started: set[str] = set()
        self.solved: set[str] = set()
        self.episodes = self.env_steps = 0
        self.metrics, self.store = folder / "metrics.jsonl", TrajectoryStore(folder / "trajectories.jsonl")
        self._cut_back(self.iteration * recipe.episodes)

    def _cut_back(self, episodes: int) -> None:
        """Drops what was written after the last checkpoint, and remembers what was collected before it."""
        text = self.metrics.read_text(encoding="utf-8", errors="replace") if self.metrics.exists() else ""
        lines = text.splitlines(keepends=True)
        if len(lines) < self.rows or len(self.store) < episodes:
            raise RunError(
                f"{self.folder} cannot be resumed: its checkpoint was made after {self.rows} metrics rows and "
                f"{episodes} episodes, {len(lines)} and {len(self.store)} are there; start it anew in another folder"
            )
        write_atomically(self.metrics, "".join(lines[: self.rows]))
        self.store.truncate(episodes)
        for trajectory in self.store:
            self._remember(trajectory)

    def collect(self, iteration: int, trajectories: list[Trajectory]) -> int:
        """Takes in an iteration's episodes; returns how many of them replay admitted."""
        before = len(self.kept)
        self.iteration = iteration
        self.store.append(trajectories)
        for trajectory in trajectories:
            self._remember(trajectory)
        return len(self.kept) - before

    def _remember(self, trajectory: Trajectory) -> None:
        self.episodes += 1
        self.env_steps += trajectory.length
        if trajectory.stop.failed:
            return
        self.started.add(trajectory.task.id)
        if trajectory.success:
            self.solved.add(trajectory.task.id)
        if self.recipe.replay.admits(trajectory):
            self.kept.append(trajectory)

    def row(self, kind: str, **values: Any) -> None:
        """Writes a metrics row and tells the listener."""
        row = {
            "kind": kind,
            "iteration": self.iteration,
            "total_episodes": self.episodes,
            "total_env_steps": self.env_steps,
            "seconds": self.seconds,
            **values,
        }
        with self.metrics.open("a", encoding="utf-8") as f:
            f.write(json.dumps(row) + "\n")
        self.rows += 1
        self.listener(row)

    def evaluated(self, policy: str, strategy: str, result: Result) -> None:
        """Writes an evaluation row."""
        self.row(
            "eval",
            policy=policy,
            strategy=strategy,
            horizon=turns_by_difficulty(self.recipe.test_horizon, 1),
            summary=result.summary,
            interval=list(result.interval),
            outcomes=result.outcomes,
        )

    def show(self, name: str, trajectories: list[Trajectory]) -> None:
        """Keeps evenly spaced evaluation episodes for reading."""
        n = min(SHOWN, len(trajectories))
        chosen = [trajectories[k * len(trajectories) // n] for k in range(n)]
        write_atomically(self.folder / "episodes" / f"{name}.jsonl", "".join(t.to_json() + "\n" for t in chosen))

    @property
    def seconds(self) -> float:
        """Seconds of work since the start, added up over resumes."""
        return self.seconds_before + time.perf_counter() - self.clock

    def progress(self, phase: str) -> Callable[[int, int], None]:
        """A progress callback for one phase."""
        return lambda done, total: self.listener.progress(phase, done, total)

    def state(self, learner: Learner) -> tuple[dict[str, Any], dict[str, Any]]:
        """Tensors and numbers of a checkpoint made now."""
        tensors, numbers = learner.state()
        return tensors, {"iteration": self.iteration, "rows": self.rows, "seconds": self.seconds, **numbers}


def _take_folder(recipe: Recipe, folder: Path, resume: bool) -> None:
    """Makes the folder this recipe's, or says why it cannot be."""
    path, metrics = folder / "run.toml", folder / "metrics.jsonl"
    begun = path.exists() and metrics.exists() and metrics.stat().st_size > 0  # else nothing would be lost
    if begun and not resume:
        raise RunError(f"{folder} holds a run already; resume it, or choose another folder")
    if begun:
        there, ours = load_toml(Recipe, path).as_data(), recipe.as_data()
        differ = [k for k in sorted(there | ours) if there.get(k) != ours.get(k) and k != "iterations"]
        if differ:
            raise RunError(
                f"{folder} is a run of another recipe: {differ[0]!r} is {there.get(differ[0])!r} there and "
                f"{ours.get(differ[0])!r} here; resume it with its own run.toml, or choose another folder"
            )
    try:
        (folder / "episodes").mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as e:
        raise RunError(f"{folder} cannot be a run folder: {e.filename} is a file; choose another folder") from e
    write_atomically(path, dump_toml(recipe))
