"""Checkpoints: `checkpoints/000003/` holds `trainer.safetensors` and `trainer.json`; where a language model is trained
it is a Hugging Face folder besides, with `pending.jsonl` where episodes were played ahead; no pickle.

What always holds: a checkpoint appears whole or not at all, and `checkpoints/latest.json` names one that is whole,
whenever the process is killed; the warm start (000000) and the two newest are kept.
"""

import json
import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from longstride.core.errors import RunError
from longstride.core.trajectory import Trajectory

PENDING = "pending.jsonl"
KEPT = 2
"""Newest checkpoints that are kept; the first one is kept besides."""


@dataclass(slots=True)
class Checkpoint:
    """What was saved after an iteration."""

    folder: Path
    """A language agent's loads as a policy: `models.load.load_policy(str(folder))`."""
    numbers: dict[str, Any]
    """Counters of trainer and learner."""

    def tensors(self) -> dict[str, Tensor]:
        """The learner's tensors.

        Raises:
            RunError: the file is missing or damaged.
        """
        path = self.folder / "trainer.safetensors"
        try:
            return load_file(path)
        except (OSError, SafetensorError) as e:
            raise RunError(
                f"cannot read {path}: {e}; a model beside it may still be whole, the learner's state is not"
            ) from e

    def pending(self) -> list[Trajectory]:
        """What was played to its end and not trained on yet.

        Raises:
            RunError: the file is damaged.
        """
        path = self.folder / PENDING
        try:
            lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
            return [Trajectory.from_json(line) for line in lines]
        except (OSError, UnicodeDecodeError, RunError) as e:
            raise RunError(f"cannot read {path}: {e}; remove it, and its episodes are played anew") from e


def write_atomically(path: Path, text: str) -> None:
    """Replaces a file's content: a reader sees the old or the new text, never a part."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


def save_checkpoint(
    run: Path,
    iteration: int,
    write: Callable[[Path], None],
    tensors: dict[str, Tensor],
    numbers: dict[str, Any],
    pending: Sequence[Trajectory] = (),
) -> Checkpoint:
    """Saves what an exact resume after `iteration` needs, makes it the latest, and drops old ones.

    Args:
        run: the run folder.
        iteration: updates made so far.
        write: makes the checkpoint's folder and writes in it what the tensors do not hold, such as a policy;
            `Path.mkdir` where they hold everything.
        tensors: state of the learner.
        numbers: counters of trainer and learner.
        pending: trajectories of later iterations, which asynchronous rollouts have made already.

    Raises:
        ModelError, RunError, OSError: it could not be written; `latest_checkpoint` is still the one before.
    """
    home = run / "checkpoints"
    home.mkdir(parents=True, exist_ok=True)
    folder, partial = home / f"{iteration:06d}", home / "partial"
    shutil.rmtree(partial, ignore_errors=True)
    write(partial)
    try:
        save_file({k: t.contiguous() for k, t in tensors.items()}, partial / "trainer.safetensors")
    except SafetensorError as e:
        raise RunError(
            f"cannot write {partial}: {e}; the checkpoint before is whole, see to the disk and resume"
        ) from e
    (partial / "trainer.json").write_text(json.dumps(numbers, indent=1), encoding="utf-8")
    if pending:
        (partial / PENDING).write_text("".join(t.to_json() + "\n" for t in pending), encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)  # left by a run that was cut back to an earlier one; `latest` is not it
    partial.rename(folder)
    write_atomically(home / "latest.json", json.dumps({"folder": folder.name}))
    old = sorted(p for p in home.iterdir() if re.fullmatch(r"\d{6}", p.name) and p.name <= folder.name)
    for path in old[1:-KEPT]:
        shutil.rmtree(path)
    return Checkpoint(folder, numbers)


def latest_checkpoint(run: Path) -> Checkpoint | None:
    """The newest whole checkpoint of a run folder; None where none was ever finished.

    Raises:
        RunError: what is there is damaged.
    """
    path = run / "checkpoints" / "latest.json"
    if not path.exists():
        return None
    try:
        name = json.loads(path.read_text(encoding="utf-8"))["folder"]
        if not re.fullmatch(r"\d{6}", name):
            raise ValueError(f"{name!r} is not the name of a checkpoint")
        folder = path.parent / name
        numbers = json.loads((folder / "trainer.json").read_text(encoding="utf-8"))
        if not isinstance(numbers, dict):
            raise TypeError("trainer.json is not an object")
    except (OSError, ValueError, TypeError, KeyError) as e:
        raise RunError(f"the checkpoint that {path} names cannot be read: {e}") from e
    return Checkpoint(folder, numbers)
