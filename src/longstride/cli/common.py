"""What several commands share."""

import errno
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from longstride.core.errors import ConfigError, RunError
from longstride.core.plain import plain
from longstride.core.sealed import dumps
from longstride.core.secrets import hidden

if TYPE_CHECKING:
    from longstride.run.experiment import Experiment
    from longstride.run.recipe import Recipe

RUN_FILE = "run.toml"


def print_json(value: Any) -> None:
    """Prints one JSON object."""
    print(dumps(value, indent=1))


def say(*lines: object, file: TextIO | None = None) -> None:
    """Prints lines in which texts of files may stand: run folders, tasks, recipes of others. What a terminal obeys is
    left out, and so are secrets."""
    try:
        print(hidden(plain("\n".join(map(str, lines)))), file=file, flush=True)
    except OSError as e:
        if e.errno != errno.EIO:  # of a terminal that was closed: nobody reads it any more
            raise


def experiment_from(target: str) -> "Experiment":
    """What a word on the command line means that is to be run (`papers.naming`).

    Raises:
        ConfigError: there is none of that name, or what is there is no recipe.
    """
    from longstride.papers.naming import find_experiment

    if "=" in target:
        raise ConfigError(f"{target!r} stands where a recipe belongs; expected `train RECIPE key=value ...`")
    return find_experiment(target)


def run_recipe(run: Path) -> "Recipe":
    """The recipe of a run folder, for commands that are about language agents.

    Raises:
        ConfigError: it is of another type.
        RunError: it is no run folder, or one of another format.
    """
    from longstride.run.experiment import load_run_experiment
    from longstride.run.recipe import Recipe

    found = load_run_experiment(run)
    if not isinstance(found, Recipe):
        raise ConfigError(
            f"{run} is a run of a {found.type_name()}, and this command is for language agents (type recipe); "
            "`longstride view RUN` shows a run of any type"
        )
    return found


def free_folder(path: Path) -> Path:
    """`path`, where something new may be written.

    Raises:
        RunError: it is a file, or a folder with something in it.
    """
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        from longstride.run.folder import is_evaluation

        what = "is not empty" if path.is_dir() else "is a file"
        goes_on = (path / RUN_FILE).exists() and not is_evaluation(path)
        hint = f"go on with it by {resume_command(path)}; or " if goes_on else ""
        raise RunError(f"{path} {what}; {hint}choose another place with --out")
    return path


def resume_command(run: Path) -> str:
    """The command that goes on with a run, as it can be typed here."""
    return f"{program()} train --resume {shlex.quote(str(run))}"


def program() -> str:
    """How this program was called: `longstride` where the shell finds it under that name."""
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m longstride"
    found = shutil.which("longstride")
    if called.name == "longstride" and not (found and Path(found).samefile(called)):
        return shlex.quote(sys.argv[0])
    return "longstride"
