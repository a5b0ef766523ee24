"""What several runs begin with is made once: the start that cloning trains, and its evaluation.

What always holds: a run that goes on from the start of another one has the numbers that it would have had alone, what
the start took among them.
"""

import shutil
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from longstride.core.config import dump_toml
from longstride.core.errors import LongstrideError
from longstride.core.sealed import dumps, read_object, seal_toml
from longstride.rollout.media import MEDIA
from longstride.run.checkpoint import FIRST, open_checkpoint
from longstride.run.experiment import FORMAT_FILE, RUN_FILE, Experiment, format_of, load_run_experiment
from longstride.run.recipe import Recipe


def starts_of(runs: Mapping[Path, Experiment]) -> dict[Path, list[Path]]:
    """By the folder of a run with cloning, the folders of those that begin as it does, its own among them."""
    found = defaultdict[str, list[Path]](list)
    for folder, experiment in runs.items():
        if isinstance(experiment, Recipe) and experiment.cloning:
            found[dumps(experiment.beginning())].append(folder)
    return {folder: folders for folders in found.values() for folder in folders}


def begin_like(recipe: Recipe, folder: Path, others: Iterable[Path]) -> None:
    """Makes of `folder`, where there is none yet, a run that stands at iteration 0, if one of the others began by the
    same code as the recipe begins. It then goes on as a run that was stopped there.

    Whatever is wrong with another folder is no matter here: that is said when its own run goes on. Where episodes have
    images every run begins by itself.
    """
    recipe = recipe.settled()
    for other in others:
        if folder.exists():
            return
        with suppress(LongstrideError, OSError):
            there = load_run_experiment(other)
            alike = isinstance(there, Recipe) and there.beginning() == recipe.beginning()
            same_code = read_object(other / FORMAT_FILE) == format_of(recipe)
            if alike and same_code and not (other / MEDIA).exists():
                _copy_start(recipe, folder, other)


def _copy_start(recipe: Recipe, folder: Path, other: Path) -> None:
    first = open_checkpoint(other / "checkpoints" / FIRST)
    rows = (other / "metrics.jsonl").read_bytes().splitlines(keepends=True)[: first.numbers["rows"]]
    making = folder.with_name(f".{folder.name}.beginning")
    shutil.rmtree(making, ignore_errors=True)
    shutil.copytree(first.folder, making / "checkpoints" / FIRST)
    (making / "episodes").mkdir()
    for name in (FORMAT_FILE, "episodes/before.jsonl"):
        shutil.copy(other / name, making / name)
    (making / "metrics.jsonl").write_bytes(b"".join(rows))
    (making / RUN_FILE).write_text(seal_toml(dump_toml(recipe)), encoding="utf-8")
    making.rename(folder)
