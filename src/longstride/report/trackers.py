"""Trackers: a run's numbers in tensorboard, wandb, trackio or mlflow, beside its own folder.

What always holds: nothing of a tracker is imported before it is asked for; a tracker never changes a run: it is no part
of the recipe, and one that breaks is named in a warning and left out from then on. Where several processes train, the
first one tracks. Projects and servers are set by each tool's own environment variables.
"""

import importlib.util
import os
import time
import uuid
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from longstride.core.errors import ConfigError, LongstrideWarning, MissingExtra, RunError, unknown
from longstride.core.sealed import DamagedError, read_object, write_object
from longstride.core.secrets import hidden
from longstride.report.rows import number
from longstride.run.experiment import Experiment
from longstride.run.listener import Listener

T = TypeVar("T")
PROJECT = "longstride"
"""What the runs are filed under, unless the tool's environment says otherwise."""
IDS = "trackers.json"
"""What a run is called by trackers that number runs themselves, so that a resumed run goes on there too."""


class Tracker(Protocol):
    """Takes numbers by name."""

    @abstractmethod
    def log(self, step: int, values: dict[str, float]) -> None:
        """Takes the numbers of an iteration, or of a step of cloning; there may be several calls for one."""

    @abstractmethod
    def close(self) -> None:
        """Writes what is left."""


class TensorBoard(Tracker):
    """Event files in `tensorboard/` of the run folder."""

    def __init__(self, experiment: Experiment, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder / "tensorboard"))

    def log(self, step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        self._writer.close()


class WandB(Tracker):
    """Weights & Biases; `WANDB_PROJECT`, `WANDB_MODE`, ... are its own."""

    def __init__(self, experiment: Experiment, folder: Path) -> None:
        import wandb  # pyright: ignore[reportMissingImports]

        name = _id(folder, "wandb", lambda: uuid.uuid4().hex[:16])
        data = experiment.as_data()
        self._run = wandb.init(
            project=_project("WANDB_PROJECT"), name=folder.name, config=data, dir=str(folder), id=name, resume="allow"
        )
        self._run.define_metric("*", step_metric="iteration")

    def log(self, step: int, values: dict[str, float]) -> None:
        self._run.log(values | {"iteration": step})

    def close(self) -> None:
        self._run.finish()


class TrackIO(Tracker):
    """Trackio, Hugging Face's local tracker; `TRACKIO_PROJECT` names the project."""

    def __init__(self, experiment: Experiment, folder: Path) -> None:
        import trackio  # pyright: ignore[reportMissingImports]

        name = _id(folder, "trackio", lambda: f"{folder.name}-{uuid.uuid4().hex[:6]}")
        self._run = trackio.init(
            project=_project("TRACKIO_PROJECT"), name=name, config=experiment.as_data(), resume="allow"
        )

    def log(self, step: int, values: dict[str, float]) -> None:
        self._run.log(values, step=step)

    def close(self) -> None:
        self._run.finish()


MOST_PARAMS = 100
"""That MLflow takes in one call."""


class MLflow(Tracker):
    """MLflow; `MLFLOW_TRACKING_URI` and `MLFLOW_EXPERIMENT_NAME` are its own."""

    def __init__(self, experiment: Experiment, folder: Path) -> None:
        from mlflow import MlflowClient  # pyright: ignore[reportMissingImports]
        from mlflow.entities import Metric, Param  # pyright: ignore[reportMissingImports]

        self._client = client = MlflowClient()
        self._metric = Metric
        name = _project("MLFLOW_EXPERIMENT_NAME")

        def create() -> str:
            home = client.get_experiment_by_name(name)
            number = home.experiment_id if home else client.create_experiment(name)
            run = client.create_run(number, run_name=folder.name).info.run_id
            data = _flat(experiment.as_data())
            params = [Param(key.replace("/", "."), str(value)[:500]) for key, value in data]
            for k in range(0, len(params), MOST_PARAMS):
                client.log_batch(run, params=params[k : k + MOST_PARAMS])
            return run

        self._run = _id(folder, "mlflow", create)

    def log(self, step: int, values: dict[str, float]) -> None:
        now = round(1000 * time.time())
        self._client.log_batch(self._run, [self._metric(name, value, now, step) for name, value in values.items()])

    def close(self) -> None:
        self._client.set_terminated(self._run)


TRACKERS: dict[str, Callable[[Experiment, Path], Tracker]] = {
    "tensorboard": TensorBoard,
    "wandb": WandB,
    "trackio": TrackIO,
    "mlflow": MLflow,
}
"""By name, which is that of the package and of the extra, too."""


class Tracked:
    """A listener that passes everything on to another one, and the numbers to trackers. A context manager.

    Args:
        names: of trackers.
        experiment: what is run.
        folder: its run folder.
        listener: what else listens.

    Raises:
        ConfigError: there is no tracker of that name.
        MissingExtra: its package is not installed.
    """

    def __init__(self, names: Sequence[str], experiment: Experiment, folder: Path, listener: Listener) -> None:
        for name in names:
            if name not in TRACKERS:
                raise ConfigError(unknown("tracker", name, TRACKERS))
            if importlib.util.find_spec(name) is None:
                raise MissingExtra(f"tracking with {name} needs its package: pip install 'longstride[{name}]'")
        self._listener, self._run = listener, (experiment, folder)
        self._waiting, self._open = list(names), dict[str, Tracker]()
        self.progress = listener.progress

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for name, tracker in list(self._open.items()):
            self._try(name, tracker.close)

    def __call__(self, row: dict[str, Any]) -> None:
        self._listener(row)
        while self._waiting:  # not before the first row: a run that cannot begin leaves nothing, also with a tracker
            name = self._waiting.pop()
            if tracker := self._try(name, TRACKERS[name], *self._run):
                self._open[name] = tracker
        for name, tracker in list(self._open.items()):
            step = row["step"] if row.get("kind") == "cloning" else row.get("iteration", 0)
            self._try(name, tracker.log, int(step), numbers_of(row))

    def _try(self, name: str, what: Callable[..., T], *args: Any) -> T | None:
        try:
            return what(*args)
        except Exception as e:  # whatever goes wrong in somebody else's service, the run goes on
            self._open.pop(name, None)
            text = f"tracker {name}: {type(e).__name__}: {e}; the run goes on without it"
            warnings.warn(hidden(text), LongstrideWarning, stacklevel=3)


def numbers_of(row: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a metrics row under `train/...`, or `eval/POLICY/...` (with the strategy where it is not
    `direct`), or `beside/TASKS/POLICY/...`; a summary's numbers stand without `summary`, and values by task are left
    out."""
    place = str(row.get("kind", "row"))
    if place == "beside":
        place += f"/{row['tasks']}"
    if "policy" in row:
        place += f"/{row['policy']}"
        if row.get("strategy", "direct") != "direct":
            place += f"/{row['strategy']}"
    rest = {key: value for key, value in row.items() if key not in ("kind", "policy", "strategy", "iteration")}
    values = {**{k: v for k, v in rest.items() if k != "summary"}, **(rest.get("summary") or {})}
    found = {f"{place}/{key}": number({"x": value}, "x") for key, value in _flat(values)}
    return {key: value for key, value in found.items() if value is not None}


def _flat(data: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}/")
        else:
            yield f"{before}{key}", value


def _project(variable: str) -> str:
    return os.environ.get(variable) or PROJECT


def _id(folder: Path, tracker: str, create: Callable[[], str]) -> str:
    """What a tracker calls the run: as it was called before, or as `create` says."""
    path = folder / IDS
    try:
        known = read_object(path) if path.exists() else {}
    except (OSError, DamagedError) as e:
        raise RunError(f"{path} cannot be read: {e}; remove it, and trackers take the run for a new one") from e
    if tracker not in known:
        known[tracker] = create()
        write_object(path, known)
    return known[tracker]
