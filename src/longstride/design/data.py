"""Files of designs and their scores, and designs as vectors that a network reads. NumPy only.

| name | what it is |
|---|---|
| `*.npz` | arrays `x` [N, D] and `y` [N] (as Design-Bench calls them, arXiv 2202.08450), or `designs` and `scores` |
| `*.csv` | a row a design under a line of names: a column of scores, all others are the design |

Designs of whole numbers (npz) or of words (csv) are choices, one of a few at each place; all others are numbers. A csv
with one column of words of one length, such as `ACGTTA`, holds sequences: each letter is a place.

What always holds: what is written for a design is in the form that it was read in. Nothing is unpickled. What does not
fit is refused in one line that names the file, and its line.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from longstride.core.errors import RunError
from longstride.core.files import write_atomically
from longstride.core.npz import read_npz

X, Y = ("x", "designs"), ("y", "scores")
"""What arrays of a npz may be called."""


@dataclass(frozen=True, eq=False)
class DesignPool:
    """Designs and what they are worth."""

    designs: np.ndarray
    """[N, D] as they are in the file: numbers, or choices (whole numbers or words)."""
    scores: np.ndarray
    """[N] more is better."""
    columns: Sequence[str] = field(default=())
    """Names of the D places; none: they have none."""
    sequence: str = ""
    """Name of the one column whose letters are the places; empty: every place is a column."""


class Encoding(Protocol):
    """Designs as vectors of S numbers with mean 0 and deviation 1."""

    size: int
    """S."""

    def encode(self, designs: np.ndarray) -> np.ndarray:
        """[N, S] in single precision, of [N, D] designs."""
        ...

    def decode(self, vectors: np.ndarray) -> np.ndarray:
        """[N, D] designs, of [N, S] vectors."""
        ...


class NumberDesigns:
    """Designs of numbers, standardised by those of the data; what never varies there stays what it is.

    Args:
        designs: [N, D] of the data.
        inside: whether what is decoded stays between the least and the greatest of the data, place by place.
    """

    def __init__(self, designs: np.ndarray, inside: bool) -> None:
        self.size = designs.shape[1]
        self._mean, self._deviation = designs.mean(0), designs.std(0)
        self._bounds = (designs.min(0), designs.max(0)) if inside else None

    def encode(self, designs: np.ndarray) -> np.ndarray:
        return ((designs - self._mean) / np.where(self._deviation > 0, self._deviation, 1)).astype(np.float32)

    def decode(self, vectors: np.ndarray) -> np.ndarray:
        found = self._mean + self._deviation * vectors.astype(float)
        return found if self._bounds is None else found.clip(*self._bounds)


class ChoiceDesigns:
    """Designs of choices: an entry for each choice at each place, standardised; decoded is the largest of a place.

    Args:
        designs: [N, D] of the data.
        known: [M, D] all designs of the file: its choices are those that there are.
    """

    def __init__(self, designs: np.ndarray, known: np.ndarray) -> None:
        self._options = [np.unique(known[:, d]) for d in range(known.shape[1])]
        self._ends = np.cumsum([len(options) for options in self._options])
        self.size = int(self._ends[-1])
        ones = self._one_hot(designs)
        self._mean, deviation = ones.mean(0), ones.std(0)
        self._deviation = np.where(deviation > 0, deviation, 1)

    def encode(self, designs: np.ndarray) -> np.ndarray:
        return ((self._one_hot(designs) - self._mean) / self._deviation).astype(np.float32)

    def decode(self, vectors: np.ndarray) -> np.ndarray:
        parts = np.split(vectors * self._deviation + self._mean, self._ends[:-1], axis=1)
        chosen = [options[part.argmax(1)] for options, part in zip(self._options, parts, strict=True)]
        return np.stack(chosen, axis=1)

    def _one_hot(self, designs: np.ndarray) -> np.ndarray:
        return np.concatenate(
            [designs[:, d, None] == options for d, options in enumerate(self._options)], axis=1, dtype=float
        )


def encoding_of(designs: np.ndarray, known: np.ndarray, inside: bool) -> Encoding:
    """The encoding that fits the form of designs [N, D]; `known` [M, D] are all of the file."""
    return NumberDesigns(designs, inside) if designs.dtype.kind == "f" else ChoiceDesigns(designs, known)


def read(name: str, score: str) -> DesignPool:
    """The designs of a file; `score` names the column of scores of a csv.

    Raises:
        RunError: there is no such file, it is damaged, or of a form that is not read.
    """
    path = Path(name)
    if path.suffix.lower() not in (".npz", ".csv"):
        raise RunError(f"{name} has no form that is known: expected *.npz or *.csv")
    if not path.is_file():
        raise RunError(
            f"there is no file {name}; expected designs and their scores, as *.npz (arrays x and y) or *.csv"
        )
    pool = _from_npz(name) if path.suffix.lower() == ".npz" else _from_csv(name, score)
    if len(pool.scores) < 2 or pool.scores.min() == pool.scores.max():
        raise RunError(f"{name} has {len(pool.scores)} designs, all of one score: there is nothing to learn from")
    if pool.designs.dtype.kind == "f" and not np.isfinite(pool.designs).all() or not np.isfinite(pool.scores).all():
        raise RunError(f"{name} holds values that are not finite")
    return pool


def write(path: Path, pool: DesignPool, more: Mapping[str, np.ndarray]) -> Path:
    """Writes designs in the form of a pool that was read, with [N] numbers of each by name; a npz where places have no
    names. Returns the file, whose ending is added to `path`."""
    target = path.with_suffix(".csv" if pool.columns or pool.sequence else ".npz")
    if target.suffix == ".npz":
        file = io.BytesIO()
        np.savez_compressed(file, x=pool.designs, **dict(more))  # pyright: ignore[reportArgumentType]
        write_atomically(target, file.getvalue())
        return target
    text = io.StringIO(newline="")
    lines = csv.writer(text)
    lines.writerow([*([pool.sequence] if pool.sequence else pool.columns), *more])
    for design, *values in zip(pool.designs.tolist(), *more.values(), strict=True):
        cells = ["".join(design)] if pool.sequence else design
        lines.writerow([*cells, *(f"{value:.9g}" for value in values)])
    write_atomically(target, text.getvalue())
    return target


def _from_npz(name: str) -> DesignPool:
    arrays = read_npz(name, {*X, *Y})
    keys = [next((key for key in of if key in arrays), None) for of in (X, Y)]
    if None in keys:
        has = ", ".join(sorted(arrays)[:12]) or "nothing"
        raise RunError(f"{name} lacks x (or designs) or y (or scores); found {has}")
    x, y = (arrays[str(key)] for key in keys)
    if x.ndim < 2 or y.size != len(x):
        raise RunError(f"{name}: expected x [N, D] and y [N], got the shapes {x.shape} and {y.shape}")
    if x.dtype.kind not in "fiubUS" or y.dtype.kind not in "fiub":
        raise RunError(f"{name}: expected numbers (x may hold words), got {x.dtype} and {y.dtype}")
    x = x.reshape(len(x), -1)
    return DesignPool(x.astype(float) if x.dtype.kind == "f" else x, y.reshape(-1).astype(float))


def _from_csv(name: str, score: str) -> DesignPool:
    try:
        with Path(name).open(newline="", encoding="utf-8-sig") as f:
            head, *rows = [row for row in csv.reader(f) if row]
    except (OSError, ValueError, csv.Error) as e:
        raise RunError(f"{name} is damaged, or no csv file: {e}") from e
    if score not in head or len(head) < 2:
        raise RunError(
            f"{name} has no column {score!r}; its columns are {', '.join(head[:12])}: name it by tasks.column"
        )
    at = head.index(score)
    for n, row in enumerate(rows, 2):
        if len(row) != len(head):
            raise RunError(f"{name}, line {n}: expected {len(head)} cells, as in the first line, got {len(row)}")
    scores = [_number(row[at]) for row in rows]
    if None in scores:
        n = scores.index(None)
        raise RunError(f"{name}, line {n + 2}: {score} is no number: {rows[n][at][:40]!r}")
    columns = [word for k, word in enumerate(head) if k != at]
    cells = [[cell.strip() for k, cell in enumerate(row) if k != at] for row in rows]
    y = np.array(scores, float)
    numbers = [[_number(cell) for cell in row] for row in cells]
    if all(value is not None for row in numbers for value in row):
        return DesignPool(np.array(numbers, float), y, columns)
    if len(columns) == 1 and len({len(row[0]) for row in cells}) == 1 and len(cells[0][0]) > 1:
        return DesignPool(np.array([list(row[0]) for row in cells]), y, (), columns[0])
    for column, of in zip(columns, zip(*numbers, strict=True), strict=True):
        if len({value is None for value in of}) > 1:
            n = next(k for k, value in enumerate(of) if value is None)
            raise RunError(f"{name}, line {n + 2}: {column} is no number, and it is one in other lines")
    for column, of in zip(columns, zip(*numbers, strict=True), strict=True):
        if any(value is not None and not value.is_integer() for value in of):
            raise RunError(
                f"{name}: {column} holds numbers, and other columns hold words; expected designs of one kind: numbers "
                "alone, or choices (words or whole numbers) alone"
            )
    return DesignPool(np.array(cells), y, columns)


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
