"""The run folder: what a run writes (docs/architecture.md says what it holds), and what of it the loop needs in memory.
`RunFiles` is what every experiment's run has, `RunFolder` what a language agent's has besides.

What always holds: it is that of the last complete iteration whenever the process ends, however it ends; what stands in
it after the last checkpoint is dropped when the run goes on; `format.json` says how it is written. All of it is sealed
(`core.sealed`): what was damaged is found when the run goes on, and where an earlier checkpoint is whole, with all that
it counts, the run goes on from there. Where several processes train, the first one writes, and the others read the
checkpoint that they go on from: all must see the folder. One run at a time writes there (`core.lock`).
"""

import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from torch import Tensor

from longstride.core.config import dump_toml
from longstride.core.errors import LongstrideError, LongstrideWarning, RunError
from longstride.core.files import explain, flush, make_folder, trouble_of, write_atomically
from longstride.core.sealed import (
    DamagedError,
    cut,
    dumps,
    loads,
    place_of,
    read_object,
    seal,
    seal_lines,
    seal_toml,
    unseal,
    write_object,
)
from longstride.core.trajectory import EpisodeRecord, Trajectory
from longstride.learner import parallel
from longstride.models.api import ChatAPI
from longstride.models.load import Policy
from longstride.rollout.media import MEDIA
from longstride.rollout.store import TRAJECTORIES, TrajectoryStore
from longstride.run.checkpoint import (
    Checkpoint,
    drop_leftovers,
    open_checkpoint,
    recent_checkpoints,
    save_checkpoint,
)
from longstride.run.evaluation import Result
from longstride.run.experiment import FORMAT_FILE, RUN_FILE, Experiment, format_of, load_run_experiment
from longstride.run.listener import Listener, Silent
from longstride.run.recipe import Recipe

SHOWN = 40
"""Evaluation episodes that are kept in `episodes/`, the same tasks before and after."""
OURS = (FORMAT_FILE, RUN_FILE, "metrics.jsonl", TRAJECTORIES, "trajectories.index", MEDIA, "episodes", "checkpoints")
"""What a run writes before its first row."""
MIXED = "metrics.mixed.jsonl"
"""What stood in the file of rows where several processes had written it."""
KEPT = "evaluation"
"""In `format.json`: whether the folder keeps an evaluation, and no run."""
LARGEST = 2**53
"""No count of a run is larger, and none is a number that JSON readers take for another one."""
N = TypeVar("N", int, float)


class RunFiles:
    """The files that every run has: recipe, metrics rows, checkpoints.

    Args:
        experiment: what is run.
        folder: created.
        listener: takes every metrics row and the progress between rows.
        resume: go on after the last checkpoint in `folder`, or start where there is none.

    Raises:
        RunError: the folder holds a run already, or one of another recipe; what is there is damaged.
    """

    def __init__(self, experiment: Experiment, folder: Path, listener: Listener, resume: bool) -> None:
        self.folder, self.listener = folder, listener
        self.leads = parallel.rank() == 0
        self._new = [path for path in map(folder.joinpath, OURS) if not path.exists()]
        """Of what a run writes before its first row, what was not there before it."""
        if self.leads:
            _take_folder(experiment, folder, resume)
        self.metrics = folder / "metrics.jsonl"
        self.checkpoint = parallel.broadcast(self._choose)  # the others wait for it
        if self.leads:  # now it is known that the run can go on
            write_object(folder / FORMAT_FILE, format_of(experiment))
            write_atomically(folder / RUN_FILE, seal_toml(dump_toml(experiment)))
        self.iteration, self.rows = self.kept_count("iteration"), self.kept_count("rows")
        self._measured = self.rows > 0
        self.seconds_before = self.kept_count("seconds", float)
        self.saved = f"iteration {self.iteration}" if self.checkpoint else "its start"
        """What the last checkpoint keeps."""
        self.clock = time.perf_counter()
        self.episodes = self.env_steps = 0
        """Collected so far."""
        if self.leads:
            drop_leftovers(folder, self.checkpoint.folder if self.checkpoint else None)
            lines = self._lines()
            kept = _first(lines, self.rows)  # what came after the checkpoint is dropped
            if kept != lines[: self.rows]:
                aside = self.metrics.with_name(MIXED)
                shutil.copyfile(self.metrics, aside)
                warnings.warn(
                    f"{self.metrics} was written by several processes at a time; the rows of this run are whole, the "
                    f"others are in {aside.name}",
                    LongstrideWarning,
                    stacklevel=2,
                )
            write_atomically(self.metrics, b"".join(line + b"\n" for line in kept))

    def kept_count(self, name: str, kind: type[N] = int) -> N:
        """A number of the checkpoint that the run goes on from; 0 where there is none."""
        return self.checkpoint.numbers[name] if self.checkpoint else kind(0)

    def _choose(self) -> Checkpoint | None:
        """The newest checkpoint that is whole, with all that it counts; None for a run that has none yet.

        Raises:
            RunError: there are checkpoints, and of those that are kept for this none is whole; or all are lost.
        """
        trouble: RunError | None = None
        for folder in recent_checkpoints(self.folder):
            try:
                checkpoint = open_checkpoint(folder)
                self.check(checkpoint)
            except RunError as e:
                trouble = trouble or e
            else:
                if trouble:
                    warnings.warn(
                        f"{trouble}; going on from iteration {checkpoint.numbers['iteration']}, what came after it is "
                        "made again",
                        LongstrideWarning,
                        stacklevel=2,
                    )
                return checkpoint
        if trouble:
            raise RunError(f"{self.folder} cannot be resumed: {trouble}; start it anew in another folder") from trouble
        if any(b'"kind": "train"' in line for line in self._lines()):
            raise RunError(f"{self.folder} cannot be resumed: all its checkpoints are lost; start it anew elsewhere")
        return None

    def check(self, checkpoint: Checkpoint) -> None:
        """Refuses a checkpoint with an impossible number, and one that counts what is not whole.

        Raises:
            RunError: what is damaged (the line is named), or how much is missing.
        """
        n, lines = number_of(checkpoint, "rows"), self._lines()
        number_of(checkpoint, "seconds", (int, float))
        _rows(self.metrics, _first(lines, n))
        if len(lines) < n:
            raise self.lacking("metrics rows", n, len(lines))

    def _lines(self) -> list[bytes]:
        """The rows as they stand in the file, without the part of one that a crash left."""
        return self.metrics.read_bytes().split(b"\n")[:-1] if self.metrics.exists() else []

    def lacking(self, what: str, wanted: int, found: int) -> RunError:
        """The error of a folder that has less than its checkpoint knows of."""
        return RunError(f"{self.folder}: its checkpoint was made after {wanted} {what}, {found} are there")

    def row(self, kind: str, **values: Any) -> None:
        """Writes a metrics row and passes it to the listener."""
        if not self.leads:
            return
        row = {
            "kind": kind,
            "iteration": self.iteration,
            "total_episodes": self.episodes,
            "total_env_steps": self.env_steps,
            "seconds": self.seconds,
            **values,
        }
        with self.metrics.open("a", encoding="utf-8") as f:
            f.write(seal(dumps(row), place_of(self.rows)) + "\n")
        self.rows += 1
        self._measured |= kind != "cloning"
        self.listener(row)

    @property
    def seconds(self) -> float:
        """Seconds of work since the start, added up over resumes."""
        return self.seconds_before + time.perf_counter() - self.clock

    def progress(self, phase: str) -> Callable[[int, int], None]:
        """A progress callback for one phase."""
        return lambda done, total: self.listener.progress(phase, done, total)

    def keep(
        self,
        write: Callable[[Path], None],
        tensors: dict[str, Tensor],
        numbers: dict[str, Any],
        pending: Sequence[Trajectory] = (),
        durable: bool = True,
    ) -> None:
        """Makes a checkpoint (see `save_checkpoint`)."""
        if self.leads:
            numbers = numbers | {"iteration": self.iteration, "rows": self.rows, "seconds": self.seconds}
            if durable:
                flush(self.metrics)
            save_checkpoint(self.folder, self.iteration, write, tensors, numbers, pending, durable)
        self.saved = f"iteration {self.iteration}"

    @contextmanager
    def undone_before_the_start(self) -> Iterator[None]:
        """Takes away again what the run has made where it fails before it has measured anything (what cloning was like
        is no measure): nobody needs a run that could not begin. An interrupt leaves it."""
        try:
            yield
        except Exception:
            if self.leads and not self._measured:
                for path in self._new:
                    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
                with suppress(OSError):  # somebody else's files are in it
                    self.folder.rmdir()
            raise

    @contextmanager
    def explains_trouble(self) -> Iterator[None]:
        """Adds to an error of the machine (a full or read-only disk) what is kept.

        Raises:
            RunError: in place of that error.
        """
        try:
            yield
        except (OSError, LongstrideError) as e:
            if (trouble := trouble_of(e)) is None:
                raise
            raise RunError(
                f"{explain(trouble)}; {self.folder} keeps the run up to {self.saved}: see to it and resume the run"
            ) from trouble


class RunFolder(RunFiles):
    """The folder of a language agent's run, with its trajectories; arguments and errors are those of `RunFiles`.

    Every process of several has the records of all episodes; the first one alone writes.
    """

    def __init__(self, recipe: Recipe, folder: Path, listener: Listener, resume: bool) -> None:
        super().__init__(recipe, folder, listener, resume)
        self.recipe = recipe
        self.kept: list[EpisodeRecord] = []
        """Everything that replay admitted, oldest first."""
        self.started: set[str] = set()
        self.solved: set[str] = set()
        self._fresh: dict[int, Trajectory] = {}
        """The newest iteration, by ordinal."""
        if self.leads:
            self.store.truncate(self.kept_count("episodes"))
            make_folder(folder / "episodes")
        self.records: list[EpisodeRecord] = []
        """Of every episode so far, oldest first."""
        self._remember(parallel.broadcast(lambda: list(self.store.records)))

    @cached_property
    def store(self) -> TrajectoryStore:
        """The episodes that were trained on."""
        return TrajectoryStore(self.folder / TRAJECTORIES)

    def check(self, checkpoint: Checkpoint) -> None:
        super().check(checkpoint)
        n = number_of(checkpoint, "episodes")
        self.store.check(n)
        if len(self.store) < n:
            raise self.lacking("episodes", n, len(self.store))

    def collect(self, iteration: int, trajectories: list[Trajectory]) -> int:
        """Takes in an iteration's episodes; returns how many of them replay admits."""
        before = len(self.kept)
        self.iteration = iteration
        if self.leads:
            self.store.append(trajectories)
        self._fresh = {t.ordinal: t for t in trajectories}
        self._remember([t.record() for t in trajectories])
        return len(self.kept) - before

    def read(self, records: Sequence[EpisodeRecord]) -> list[Trajectory]:
        """The episodes that records stand for; every process must ask for them. Those of the newest iteration are not
        read again from the disk."""
        older = [r.ordinal for r in records if r.ordinal not in self._fresh]
        stored = dict(zip(older, parallel.broadcast(lambda: self.store.read(older)) if older else [], strict=True))
        return [self._fresh.get(r.ordinal) or stored[r.ordinal] for r in records]

    def _remember(self, records: Sequence[EpisodeRecord]) -> None:
        for record in records:
            self.records.append(record)
            self.episodes += 1
            self.env_steps += record.length
            if record.stop.failed:
                continue
            self.started.add(record.task.id)
            if record.success:
                self.solved.add(record.task.id)
            if self.recipe.replay.admits(record):
                self.kept.append(record)

    def evaluated(self, policy: str, strategy: str, result: Result, beside: str = "") -> None:
        """Writes an evaluation row; `beside` names the tasks where they are not the recipe's own."""
        self.row(
            "beside" if beside else "eval",
            **({"tasks": beside} if beside else {}),
            policy=policy,
            strategy=strategy,
            horizon=self.recipe.test_budget.limits("turns", 1),
            summary=result.summary,
            interval=list(result.interval),
            outcomes=result.outcomes,
            measures=result.measures,
        )

    def show(self, name: str, trajectories: list[Trajectory]) -> None:
        """Keeps evenly spaced evaluation episodes for reading."""
        if not self.leads:
            return
        n = min(SHOWN, len(trajectories))
        chosen = [trajectories[k * len(trajectories) // n] for k in range(n)]
        self.store.media.add(m for t in chosen for m in t.media)
        write_atomically(self.folder / "episodes" / f"{name}.jsonl", seal_lines([t.to_json() for t in chosen]))

    def plays(self, group: int) -> bool:
        """Whether this process plays the episodes of a group: processes take groups in turn, and whole trials."""
        return group // (self.recipe.group_size * self.recipe.trial.episodes) % parallel.world() == parallel.rank()

    def pending(self) -> list[Trajectory]:
        """What of this process's episodes was played before the last checkpoint, and not trained on."""
        return [t for t in self.checkpoint.pending() if self.plays(t.group)] if self.checkpoint else []


def is_evaluation(folder: Path) -> bool:
    """Whether it keeps an evaluation, so that there is nothing to go on with."""
    try:
        return bool(read_object(folder / FORMAT_FILE).get(KEPT))
    except (OSError, DamagedError):
        return False


def keep_evaluation(
    agent: Policy | ChatAPI,
    recipe: Recipe,
    folder: Path,
    results: Sequence[tuple[str, str, Result]],
    iteration: int = 0,
) -> None:
    """Keeps an evaluation as the folder of a run that trained nothing: reports and comparisons read it as any other.

    Args:
        agent: what was evaluated.
        recipe: what it was under.
        folder: made.
        results: each with policy and strategy, as in a row; the first one's episodes are kept too.
        iteration: after which the agent was evaluated, in the run that trained it.

    Raises:
        RunError: the folder holds a run already.
    """
    model = agent.name if isinstance(agent, Policy) else agent
    run = RunFolder(recipe.replace(model=model), folder, Silent(), resume=False)
    write_object(folder / FORMAT_FILE, read_object(folder / FORMAT_FILE) | {KEPT: True})
    with run.undone_before_the_start(), run.explains_trouble():
        for policy, strategy, result in results:
            run.iteration = iteration if policy == "agent" else 0
            run.evaluated(policy, strategy, result)
        run.show("after" if iteration else "before", results[0][2].trajectories)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a `metrics.jsonl`.

    Raises:
        OSError: it cannot be read.
        RunError: a row is not what was written there; the line is named.
    """
    return _rows(path, cut(path.read_bytes()))


def _rows(path: Path, lines: Sequence[bytes]) -> list[dict[str, Any]]:
    rows = []
    for k, line in enumerate(lines):
        try:
            rows.append(loads(line, place_of(k)))
        except DamagedError as e:
            raise RunError(f"{path}, line {k + 1}: {e}") from e
    return rows


def _first(lines: list[bytes], n: int) -> list[bytes]:
    """The first `n` rows. Where several processes wrote the file without a lock, rows of the others stand between them:
    of the rows for a place the last one counts that has all later ones behind it. Where that does not give every row,
    the lines as they stand."""
    if all(_fits(line, k) for k, line in enumerate(lines[:n])):
        return lines[:n]
    found: list[bytes] = []
    for line in reversed(lines):
        if len(found) < n and _fits(line, n - len(found) - 1):
            found.append(line)
    return found[::-1] if len(found) == n else lines[:n]


def _fits(line: bytes, k: int) -> bool:
    """Whether it was written as row `k`."""
    with suppress(DamagedError):
        return bool(unseal(line, place_of(k)))
    return False


def number_of(checkpoint: Checkpoint, name: str, kinds: tuple[type, ...] = (int,)) -> Any:
    """A count in a checkpoint.

    Raises:
        RunError: it is missing, or impossible.
    """
    value: Any = checkpoint.numbers.get(name)
    if isinstance(value, bool) or not isinstance(value, kinds) or not 0 <= value <= LARGEST:
        raise RunError(f"{checkpoint.folder / 'trainer.json'}: expected a count as {name}, got {value!r}")
    return value


def check_free(folder: Path) -> None:
    """Says why no run can begin in a folder, before anything is played for it.

    Raises:
        RunError: it holds a run already, or files that a run would overwrite.
    """
    if _begun(folder):
        raise RunError(f"{folder} holds a run already; resume it, or choose another folder")


def _begun(folder: Path) -> bool:
    """Whether a run was begun there that is more than its recipe. Raises: RunError where files are there without it."""
    metrics = folder / "metrics.jsonl"
    if (folder / RUN_FILE).exists():
        return metrics.exists() and metrics.stat().st_size > 0 or bool(recent_checkpoints(folder))
    for name in (metrics.name, TRAJECTORIES, "checkpoints"):
        found = folder / name
        if found.is_dir() and any(found.iterdir()) or found.is_file() and found.stat().st_size:
            raise RunError(
                f"{folder} holds {name} and no {RUN_FILE}, and a run would overwrite it; choose another folder"
            )
    return False


def _first_difference(there: Mapping[str, Any], ours: Mapping[str, Any], key: str) -> tuple[str, Any, Any]:
    """Where two recipes differ under a key that differs, as deep as both have a part there; and both values."""
    was, now = there.get(key), ours.get(key)
    if not isinstance(was, Mapping) or not isinstance(now, Mapping):
        return key, was, now
    inner = next(k for k in ["type", *sorted({*was, *now})] if was.get(k) != now.get(k))
    place, was, now = _first_difference(was, now, inner)
    return f"{key}.{place}", was, now


def _take_folder(experiment: Experiment, folder: Path, resume: bool) -> None:
    """Makes the folder this recipe's, or says why it cannot be."""
    if not resume:
        check_free(folder)
    elif is_evaluation(folder):
        raise RunError(
            f"{folder} keeps an evaluation, and there is nothing to go on with; resume the run that it was of"
        )
    if _begun(folder):
        there, ours = load_run_experiment(folder).identity(), experiment.identity()
        differ = [k for k in ["type", *sorted(there | ours)] if there.get(k) != ours.get(k)]
        if differ:
            place, *values = _first_difference(there, ours, differ[0])
            was, now = ("not set" if value is None else repr(value) for value in values)
            raise RunError(
                f"{folder} is a run of another recipe: {place!r} is {was} there and {now} here; resume it with its own "
                "run.toml, or choose another folder"
            )
    make_folder(folder)
