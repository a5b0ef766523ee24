"""Checkpoints: `checkpoints/000003/` holds `trainer.safetensors` and `trainer.json`; where a language model is trained
it is a Hugging Face folder besides, with `pending.jsonl` where episodes were played ahead; no pickle.

What always holds: a checkpoint appears whole or not at all, whenever the process is killed, and once it has appeared,
whenever the power goes; `trainer.json` has size and checksum of every other file and a seal of its own, so what is
damaged is found before it is used; the warm start (000000) and the two newest are kept. The order of writes is that of
`save_checkpoint`.
"""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from longstride.core.errors import RunError
from longstride.core.files import flush, make_folder, system_error
from longstride.core.sealed import NOT_WRITTEN, DamagedError, read_object, seal
from longstride.core.trajectory import Trajectory
from longstride.rollout.media import MEDIA, MediaFolder
from longstride.run.experiment import NUMBERS, checkpoint_folders

PENDING, FIRST = "pending.jsonl", "000000"
KEPT = 2
"""Newest checkpoints that are kept; the first one is kept besides."""
PARTIAL, DROPPED = "partial", "dropped"
"""The names of a checkpoint that is being written, and of one that is being removed."""
_BLOCK = 1 << 22
_FILES = "files"
"""Under which name `trainer.json` has the sizes and checksums of the other files, by their paths in the folder."""


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
            RunError: the file is missing or damaged.
        """
        if PENDING not in self.numbers[_FILES]:
            return []
        path = self.folder / PENDING
        try:
            media = MediaFolder(self.folder.parent.parent / MEDIA)
            lines = path.read_text(encoding="ascii").splitlines()
            return [Trajectory.from_json(line, media.find) for line in lines]
        except (OSError, UnicodeDecodeError, RunError) as e:
            raise RunError(f"cannot read {path}: {e}") from e


def save_checkpoint(
    run: Path,
    iteration: int,
    write: Callable[[Path], None],
    tensors: dict[str, Tensor],
    numbers: dict[str, Any],
    pending: Sequence[Trajectory] = (),
    durable: bool = True,
) -> Checkpoint:
    """Saves what an exact resume after `iteration` needs, and drops old ones.

    The order of writes: all files under the name `partial`, `trainer.json` as the last one; each is flushed, then the
    folder's names; the folder gets its own name, and that is flushed; then old ones go. What the numbers count
    (metrics rows, episodes) must be on the disk before.

    Args:
        run: the run folder.
        iteration: updates made so far.
        write: makes the checkpoint's folder and writes in it what the tensors do not hold, such as a policy;
            `Path.mkdir` where they hold everything.
        tensors: state of the learner.
        numbers: counters of trainer and learner.
        pending: trajectories of later iterations, which asynchronous rollouts have made already.
        durable: whether it has to be there after a power cut; if not, nothing is flushed.

    Raises:
        ModelError, RunError, OSError: it could not be written; `latest_checkpoint` is still the one before.
    """
    home = run / "checkpoints"
    make_folder(home)
    drop_leftovers(run)
    folder, partial = home / f"{iteration:06d}", home / PARTIAL
    write(partial)
    try:
        save_file({k: t.contiguous() for k, t in tensors.items()}, partial / "trainer.safetensors")
    except SafetensorError as e:
        raise RunError(
            f"cannot write {partial}: {e}; the checkpoint before is whole, see to the disk and resume"
        ) from system_error(e) or e
    if pending:
        MediaFolder(run / MEDIA).add(m for t in pending for m in t.media)
        (partial / PENDING).write_text("".join(t.to_json() + "\n" for t in pending), encoding="ascii")
    files = sorted(path for path in partial.rglob("*") if path.is_file())  # such as chat templates in a folder
    numbers = numbers | {_FILES: {path.relative_to(partial).as_posix(): _sum_of(path) for path in files}}
    (partial / NUMBERS).write_text(seal(json.dumps(numbers)) + "\n", encoding="ascii")
    if durable:
        for path in [*partial.rglob("*"), partial]:
            flush(path)
    _drop(folder)  # left by a run that went on from an earlier one
    partial.rename(folder)
    if durable:
        flush(home)
    for path in checkpoint_folders(run)[:-KEPT]:
        if path.name != FIRST:
            _drop(path)
    return Checkpoint(folder, numbers)


def latest_checkpoint(run: Path) -> Checkpoint | None:
    """The newest checkpoint of a run folder; None where none was ever finished.

    Raises:
        RunError: it is damaged; the file is named, and what to do.
    """
    if not (found := checkpoint_folders(run)):
        return None
    try:
        return open_checkpoint(found[-1])
    except RunError as e:
        raise RunError(f"{e}; `longstride train --resume {run}` goes on from an earlier one") from e


def recent_checkpoints(run: Path) -> list[Path]:
    """The folders of the newest checkpoints that a run keeps, damaged or not, the newest first."""
    return checkpoint_folders(run)[: -KEPT - 1 : -1]


def open_checkpoint(folder: Path) -> Checkpoint:
    """The checkpoint in a folder, after every byte of it was compared with its checksums.

    Raises:
        RunError: a file is damaged or missing, or a number of the trainer is impossible; it is named.
    """
    path = folder / NUMBERS
    try:
        numbers = read_object(path)
        for name, kept in numbers[_FILES].items():
            path = folder / name
            if Path(name).is_absolute() or ".." in Path(name).parts:
                raise DamagedError("it is outside of the checkpoint")
            if _sum_of(path) != kept:
                raise DamagedError(NOT_WRITTEN)
    except OSError as e:
        raise RunError(f"{path} cannot be read: {e.strerror or e}") from e
    except (DamagedError, KeyError, AttributeError) as e:
        raise RunError(f"{path} is damaged: {e}") from e
    if numbers.get("iteration") != int(folder.name):
        raise RunError(
            f"{folder / NUMBERS} is damaged: expected iteration {int(folder.name)}, got {numbers.get('iteration')!r}"
        )
    return Checkpoint(folder, numbers)


def check_finite(tensors: Mapping[str, Tensor], folder: Path) -> None:
    """Refuses tensors of a checkpoint that are not finite.

    Raises:
        RunError: one is not; it is named.
    """
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise RunError(
                f"{folder / 'trainer.safetensors'}: {name} is not finite, and training on it would give nothing else; "
                "start the run anew with a lower learning rate"
            )


def drop_leftovers(run: Path, after: Path | None = None) -> None:
    """Removes what a killed save left in a run folder, and the checkpoints after one that the run goes on from."""
    for pattern in (PARTIAL, f".{PARTIAL}.saving-*", DROPPED):
        for path in (run / "checkpoints").glob(pattern):
            shutil.rmtree(path)
    for path in checkpoint_folders(run):
        if after is not None and path.name > after.name:
            _drop(path)


def _drop(folder: Path) -> None:
    """Removes a checkpoint: its name goes first, so that there is never a part of one."""
    if folder.exists():
        shutil.rmtree(folder.rename(folder.with_name(DROPPED)))


def _sum_of(path: Path) -> dict[str, Any]:
    size = checksum = 0
    with path.open("rb") as f:
        while block := f.read(_BLOCK):
            size, checksum = size + len(block), crc32(block, checksum)
    return {"bytes": size, "crc": f"{checksum:08x}"}
