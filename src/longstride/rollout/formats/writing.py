"""Writing episodes in a format: a new folder, whole or not at all."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from longstride import __version__
from longstride.core.content import Media
from longstride.core.errors import RunError
from longstride.core.files import new_folder
from longstride.core.sealed import dumps
from longstride.core.trajectory import Trajectory
from longstride.rollout.formats import atif, parquet, rows
from longstride.rollout.formats.fields import MOST, Data

Format = Literal["atif", "messages", "sft", "parquet"]
FORMATS: tuple[Format, ...] = get_args(Format)


class Origin(NamedTuple):
    """Where episodes come from, as files say it."""

    name: str
    """Of the run."""
    recipe: str = ""
    """Name of the recipe."""
    model: str = ""
    """What the policy started from."""
    toml: str = ""
    """The recipe."""
    evaluation: bool = False
    """Whether they are of an evaluation, and not of training."""


def write_episodes(episodes: Iterable[Trajectory], target: Path, form: Format, origin: Origin) -> int:
    """Writes a new folder of episodes; returns how many they are.

    Args:
        episodes: read once.
        target: must not exist, or be empty.
        form: the format.
        origin: what files say of the run.

    Raises:
        RunError: the target holds something, there are no episodes, or one has what the format cannot hold.
        MissingExtra: pyarrow is not installed, and `form` is parquet.
    """
    with new_folder(target) as part:
        counted = _Counted(episodes)
        _WRITERS[form](
            counted, part, origin._replace(name=origin.name or target.absolute().name), target.absolute().name
        )
        if not counted.n:
            raise RunError(f"{origin.name} has no episodes to export yet")
    return counted.n


class _Counted:
    """Counts what is taken of episodes."""

    def __init__(self, episodes: Iterable[Trajectory]) -> None:
        self._episodes, self.n = episodes, 0

    def __iter__(self) -> Iterator[Trajectory]:
        for t in self._episodes:
            self.n += 1
            yield t


def _line(data: Data, t: Trajectory) -> str:
    """JSON that is short enough to be read again."""
    text = dumps(data) + "\n"
    if len(text) > MOST:
        raise RunError(f"episode {t.ordinal} has {len(text)} bytes, and at most {MOST} are read; sft repeats no prompt")
    return text


def _write_atif(episodes: _Counted, folder: Path, origin: Origin, name: str) -> None:
    def keep(media: Media, suffix: str) -> str:
        path = folder / "media" / f"{media.name}{suffix}"
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(media.data)
        return path.relative_to(folder).as_posix()

    for t in episodes:
        text = _line(atif.document(t, origin.name, origin.model, keep), t)
        (folder / f"{t.ordinal:06d}.json").write_text(text, encoding="ascii")


def _write_messages(episodes: _Counted, folder: Path, origin: Origin, name: str) -> None:
    with (folder / "messages.jsonl").open("w", encoding="ascii") as f:
        f.writelines(_line(rows.messages_row(t), t) for t in episodes)


def _write_sft(episodes: _Counted, folder: Path, origin: Origin, name: str) -> None:
    with (folder / "sft.jsonl").open("w", encoding="ascii") as f:
        f.writelines(_line(row, t) for t in episodes for row in rows.sft_rows(t))


def _write_parquet(episodes: _Counted, folder: Path, origin: Origin, name: str) -> None:
    def row(t: Trajectory) -> tuple[Data, int]:
        if t.media:
            raise RunError(
                f"episode {t.ordinal} has images or data, which parquet holds none of; take atif or messages"
            )
        found = rows.messages_row(t)
        return found, len(_line(found, t))

    split = "test" if origin.evaluation else "train"
    (folder / "data").mkdir()
    parquet.write_table(map(row, episodes), folder / "data" / f"{split}-00000-of-00001.parquet")
    card = parquet.CARD.format(
        name=name,
        size=parquet.size_category(episodes.n),
        split=split,
        episodes=episodes.n,
        kind="evaluation episodes" if origin.evaluation else "training episodes",
        recipe=origin.recipe,
        model=origin.model,
        version=__version__,
        toml=origin.toml.replace("```", "` ` `"),
    )
    (folder / "README.md").write_text(card, encoding="utf-8")


_WRITERS = {"atif": _write_atif, "messages": _write_messages, "sft": _write_sft, "parquet": _write_parquet}
