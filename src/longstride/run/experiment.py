"""Experiments: whatever `longstride train` runs in a run folder, and how one is read from TOML or from such a folder.
No torch.

What always holds: reading a file imports the modules of the types that it names and no others; a file without `type` is
a `recipe`, as all were that were written before there were several; the modules of the user's own that a run was made
with are found again where they were, or the message says which is missing, and a warning which has changed; so are
files of tasks and data.
"""

import json
import re
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longstride import __version__
from longstride.core.component import Component, member_of
from longstride.core.config import described, dump_toml, read_toml
from longstride.core.errors import ConfigError, RunError
from longstride.core.files import special_in
from longstride.core.implementation import implementation
from longstride.core.lock import held
from longstride.core.modules import find_again, own_modules
from longstride.core.provenance import commit
from longstride.core.sealed import DamagedError, check_toml, read_object
from longstride.core.secrets import secret_in
from longstride.run.inputs import find_files, input_files
from longstride.run.listener import Listener

if TYPE_CHECKING:
    from longstride.run.placement import Placement

DEFAULT = "recipe"
"""Type of a file that names none."""
RUN_FILE = "run.toml"
"""The experiment of a run folder."""
CHECKPOINT, NUMBERS = re.compile(r"\d{6}"), "trainer.json"
"""The names of checkpoints, and of the file in one that has its numbers."""
FORMAT, FORMAT_FILE = 3, "format.json"
"""How a run folder is written. 1, which had no such file: before budgets were one object; 2: before checksums."""


class Experiment(Component):
    """Family: a method and its numbers, ready to be run. Iterations count from 1; 0 is what training starts from."""

    name: str
    """Name of the method: what `longstride list` shows."""
    seed: int = 0
    """Every random stream is derived from it."""

    if TYPE_CHECKING:  # a field of one member and a sum over phases of another, which a model cannot declare for both

        @property
        def iterations(self) -> int:
            """Rounds of collecting and training."""
            ...

    @property
    def strategies(self) -> tuple[str, ...]:
        """What the rows of an evaluation are told apart by, the first one first: a claim calls that by the arm alone,
        every other one `ARM@STRATEGY`."""
        return ("direct",)

    def train(
        self,
        folder: Path,
        listener: Listener | None = None,
        resume: bool = False,
        placement: "Placement | None" = None,
    ) -> None:
        """Runs it in a run folder (see docs/architecture.md for what that holds).

        Args:
            folder: created; must not hold a run unless `resume`.
            listener: takes every metrics row and the progress between rows.
            resume: go on after the last checkpoint of the run in `folder`; start it where there is none. It may go on
                for longer than before, nothing else may differ.
            placement: where the run goes; in this process if left out.

        Raises:
            ConfigError: this experiment cannot run there, or a setting of it is a secret of the environment.
            RunError: the folder holds a run already, or another experiment's; another process writes there; a damaged
                checkpoint; a full disk.
        """
        self.check_secrets()
        with held(folder):
            implementation(type(self))(self, folder, listener, resume, placement)

    def check_secrets(self) -> None:
        """Refuses settings that a run folder must not show.

        Raises:
            ConfigError: a setting is a secret of the environment.
        """
        if name := secret_in(dump_toml(self)):
            raise ConfigError(
                f"a setting holds what the variable {name} of the environment holds, and the run folder would show it; "
                "let whoever needs it read the variable"
            )

    def beside(self) -> str | None:
        """Runs that answer the same can be trained side by side, as one (see `train_beside`); None: alone."""
        return None

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """The data that a run and its continuation share: all but how long it goes on."""


def train_beside(runs: Mapping[Path, Experiment], watch: Callable[[Path], Listener]) -> None:
    """Trains runs side by side, each in its own folder as by `Experiment.train`, going on where they stopped.

    Args:
        runs: by folder, of one answer to `Experiment.beside`.
        watch: by the folder of a run, whoever takes its rows.

    Raises:
        ConfigError: see `Experiment.train`.
        RunError: see `Experiment.train`.
    """
    for experiment in runs.values():
        experiment.check_secrets()
    with ExitStack() as locks:
        for folder in runs:
            locks.enter_context(held(folder))
        work = implementation(type(next(iter(runs.values()))), "beside")
        work({folder: (experiment, watch(folder)) for folder, experiment in runs.items()})


def load_experiment(path: Path) -> Experiment:
    """The experiment that a TOML file describes.

    Raises:
        ConfigError: as `core.config.load_toml`; or its `type` is none of an experiment.
    """
    return _described(read_toml(path), path)


def _described(data: Mapping[str, Any], path: Path) -> Experiment:
    try:
        member = member_of(Experiment, data.get("type", DEFAULT))
    except ConfigError as e:
        raise ConfigError(f"{path}: {e}") from e
    return described(member, data, path)


def load_run_experiment(folder: Path) -> Experiment:
    """The experiment of a run folder.

    Raises:
        RunError: not a run folder, one of another format, or a module of the user's own is gone.
        ConfigError: its file was damaged, or names what cannot be imported any more.
    """
    said = check_run_folder(folder)
    if modules := said.get("modules"):
        find_again(modules, folder)
    path = folder / RUN_FILE
    return _described(find_files(read_toml(path), said.get("files") or {}, folder), path)


def format_of(experiment: Experiment) -> dict[str, Any]:
    """What `format.json` says of a run that begins now."""
    data = experiment.as_data()
    found = {"commit": commit(), "modules": own_modules(data), "files": input_files(data)}
    return {"format": FORMAT, "longstride": __version__} | {name: value for name, value in found.items() if value}


def check_run_folder(folder: Path) -> dict[str, Any]:
    """What `format.json` of a run folder says; refuses what is no run folder, one that this version cannot read, and
    one whose `format.json` or `run.toml` is not what was written there.

    Raises:
        RunError: it has no experiment, is older or newer, or damaged; the message says what to do.
    """
    if not (folder / RUN_FILE).is_file():
        raise RunError(
            f"{folder} is no run folder: it has no {RUN_FILE}; give the folder that `longstride train` wrote"
        )
    inside = [folder, *checkpoint_folders(folder), folder / "episodes", folder / "media"]
    for special in filter(None, map(special_in, filter(Path.is_dir, inside))):
        raise RunError(f"{special} is no file, and reading it would wait for ever; remove it")
    path = folder / FORMAT_FILE
    if (found := _format(path)) != FORMAT:
        raise RunError(
            f"{folder} has run format {found}, and this version reads format {FORMAT}; train it anew, or open it with "
            "the version that wrote it"
        )
    try:
        said = read_object(path)
    except (OSError, DamagedError) as e:
        raise RunError(f"{path} cannot be read: {e}") from e
    path = folder / RUN_FILE
    try:
        check_toml(path.read_bytes())
    except (OSError, DamagedError) as e:
        raise RunError(
            f"{path} cannot be read: {e}; restore it (other settings go on the command line, as KEY=VALUE)"
        ) from e
    return said


def _format(path: Path) -> Any:
    """The format that a `format.json` names, sealed or not.

    Raises:
        RunError: it names none.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))["format"] if path.exists() else 1
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as e:
        raise RunError(f'{path} cannot be read: {e}; expected {{"format": {FORMAT}, ...}}') from e


def checkpoint_folders(run: Path) -> list[Path]:
    """The folders of a run's checkpoints, oldest first."""
    return sorted(path for path in (run / "checkpoints").glob("*") if CHECKPOINT.fullmatch(path.name))


def counted(run: Path, name: str) -> int:
    """A count of the newest checkpoint, read from `trainer.json` alone; 0 where there is none that can be read."""
    try:
        found = read_object(checkpoint_folders(run)[-1] / NUMBERS)[name]
    except (OSError, DamagedError, KeyError, IndexError):
        return 0
    return found if isinstance(found, int) else 0
