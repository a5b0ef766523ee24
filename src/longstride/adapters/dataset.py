"""Prompts and answers, or conversations, from a file: a task is one reply.

| file | a row |
|---|---|
| `*.parquet` | one of the table's rows (extra `parquet`) |
| anything else | one JSON object a line |

What always holds: a file loads whole, or raises with the file, the line and what was expected there; the split of a row
goes by the hash of its prompt, so rows with one prompt are in one split, and a row stays there when others are added
(two files are two splits, and a warning says how much is in both). A conversation is shown up to where the agent
speaks; what an assistant says at its end is the reference.
"""

import json
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import model_validator

from longstride.adapters.kept import KeptTasks
from longstride.adapters.matching import broken, last_number
from longstride.core.errors import LongstrideWarning, TaskError, require, short
from longstride.core.foreign import MAX_DEPTH, bounded
from longstride.core.numbers import Count, Share
from longstride.core.plain import plain
from longstride.core.seeds import derive
from longstride.core.task import Task
from longstride.envs.base import Observation, Step

MANY = 200_000
"""Rows that take some seconds to read."""
MOST_TEXT = 2 * 10**9
"""Characters of all prompts of a file: what a table of a few kilobytes may pack."""
BATCH = 256
"""Rows of a table that are unpacked at a time."""
SPEAKERS = ("system", "user", "assistant")


class Dataset(KeptTasks):
    """A file of prompts and answers; a reply ends the episode."""

    PARTS: ClassVar[str] = "rows"

    path: Path
    """The file."""
    test_path: Path | None = None
    """A file of evaluation tasks; left out, a share of the rows is held out."""
    test_share: Share = 0.1
    """Share of the prompts that are held out, where there is no `test_path`."""
    prompt: str = "prompt"
    """Column of the prompt: a text, or a conversation (a list of `{"role": ..., "content": ...}`)."""
    answer: str = "answer"
    """Column of the reference. A conversation that ends with the assistant needs none."""
    match: Literal["exact", "number", "regex", "judged", "none"] = "exact"
    """How an answer is compared with its reference: as a text, by its last number, as a pattern that the reference is,
    by a judge (`reward.type = "judged_reward"`), or not at all, for a reward of your own, which finds the columns of
    `keep` in `trajectory.task.meta`."""
    mark: str = ""
    """Words that the answer follows, such as `Answer:`; the prompt asks for them. Left out, the reply is the answer."""
    keep: tuple[str, ...] = ()
    """Further columns that a reward of your own reads: texts, numbers, lists and tables of them."""
    most_rows: Count = 1_000_000
    """A file with more rows is refused: all are kept in memory, some two kilobytes each."""

    @model_validator(mode="after")
    def _finds_files(self) -> "Dataset":
        for path in (self.path, self.test_path):
            if path is not None and not path.is_file():
                raise ValueError(f"there is no file {path}; expected JSON lines, or a table *.parquet")
        return self

    @model_validator(mode="after")
    def _keeps_the_reference(self) -> "Dataset":
        if "answer" in self.keep and self.answer != "answer":
            raise ValueError(
                f"keep has the column 'answer', and a task's meta has the reference ({self.answer!r}) under that name; "
                "give the column another name"
            )
        return self

    def demonstrate(self, task: Task) -> list[str]:
        """The reference, as a reply.

        Raises:
            TaskError: there is none, or it is a pattern.
        """
        if self.match == "regex" or not task.meta["answer"]:
            raise TaskError(f"task {task.id!r} has no reply to imitate: its reference is {short(task.meta['answer'])}")
        return [f"{self.mark} {task.meta['answer']}".strip()]

    def env(self) -> "AnswerEnv":
        return AnswerEnv(self.mark)

    def _read(self, path: Path) -> list[Task]:
        tasks: list[Task] = []
        characters = 0
        for line, row in read_rows(path, self.most_rows):
            if len(tasks) == MANY:
                text = f"{path} has more than {MANY:,} rows; reading goes on, and all are kept in memory"
                warnings.warn(text, LongstrideWarning, stacklevel=2)
            tasks.append(self._task(path, line, row))
            characters += len(tasks[-1].goal)
            if characters > MOST_TEXT:
                raise TaskError(f"{path}, line {line}: the prompts up to here have more than {MOST_TEXT:,} characters")
        if not tasks:
            raise TaskError(f"{path} has no rows")
        return tasks

    def _task(self, path: Path, line: int, row: dict[str, Any]) -> Task:
        place = f"{path}, line {line}"
        self._has(row, place, self.prompt, *self.keep)
        goal, said = _shown(row[self.prompt], f"{place}, {self.prompt}")
        # a reward of one's own may need no answer, unless its column is named
        if said is None and (self.match != "none" or self.answer != "answer"):
            self._has(row, place, self.answer)
        reference = row.get(self.answer, said)
        reference = _data(reference, f"{place}, {self.answer}")
        if isinstance(reference, int | float) and not isinstance(reference, bool):
            reference = str(reference)
        if self.match != "none" and not (isinstance(reference, str) and reference.strip()):
            raise TaskError(f"{place}: expected a text or a number as {self.answer!r}, got {short(reference)}")
        goal = bounded(goal, len(goal))
        template = f"{derive(0, goal):016x}"  # of the prompt alone, so that a row keeps its split under another mark
        if self.mark:
            goal = f"{goal}\nEnd with {self.mark} and the answer."
        return Task(
            id=f"{path.stem}/{line}",
            source=f"dataset/{path.stem}",
            goal=goal,
            start="reply",
            template_id=template,
            evaluator=self._evaluator(reference, place),
            meta={"answer": reference, **{column: _data(row[column], f"{place}, {column}") for column in self.keep}},
        )

    def _has(self, row: dict[str, Any], place: str, *columns: str) -> None:
        for column in columns:
            if column not in row:
                raise TaskError(f"{place}: there is no {column!r}; the columns are {', '.join(row)[:200]}")

    def _evaluator(self, reference: Any, place: str) -> dict[str, Any]:
        if self.match == "number" and last_number(reference) is None:
            raise TaskError(f"{place}: expected a number in {self.answer!r}, got {short(reference)}")
        if self.match == "regex" and (problem := broken(reference)):
            raise TaskError(f"{place}: {self.answer!r} is no pattern ({problem}), got {short(reference)}")
        return {
            "exact": {"type": "answer", "reference": reference},
            "number": {"type": "number", "reference": reference},
            "regex": {"type": "regex", "pattern": reference},
            "judged": {"type": "string_match", "fuzzy_match": [reference]},
            "none": {},
        }[self.match]


class AnswerEnv:
    """One episode: the prompt is the goal, and whatever is said first ends it."""

    def __init__(self, mark: str) -> None:
        self._mark = mark

    async def reset(self, task: Task, seed: int) -> Observation:
        """Nothing is to be seen but the goal."""
        return Observation("")

    async def step(self, text: str) -> Step:
        """Takes the reply, or what follows the last mark in it; without the mark there is no answer."""
        before, mark, after = text.rpartition(self._mark) if self._mark else ("", "", text)
        answer = after.strip()
        if not answer or mark != self._mark:
            error = f"the reply has no answer after {self._mark}" if self._mark else "the reply is empty"
            return Step(Observation(""), terminated=True, error=error)
        return Step(Observation(""), terminated=True, action=f"answer {answer}", answer=answer)

    async def final_state(self) -> dict[str, Any]:
        """`{}`: the answer alone counts."""
        return {}

    async def close(self) -> None:
        """There is nothing to free."""


def read_rows(path: Path, most: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a file, with the number of each, from 1.

    Raises:
        TaskError: the file cannot be read, has more than `most` rows, or a row is not an object (its line is named).
        MissingExtra: a Parquet file, and pyarrow is not installed.
    """
    if path.suffix.lower() == ".parquet":
        yield from _read_parquet(path, most)
        return
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if number > most:
                    raise _too_many(path, most)
                if line.strip():
                    yield number, _row(line, f"{path}, line {number}")
    except OSError as e:
        raise TaskError(f"cannot read {path}: {e.strerror or e}") from e


def _row(line: bytes, place: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as e:
        raise TaskError(f"{place}: not a JSON object ({e.msg} at column {e.colno}); expected one object a line") from e
    except (ValueError, RecursionError) as e:  # not UTF-8, a number of thousands of digits, nested without end
        raise TaskError(f"{place}: cannot be read ({str(e)[:100]})") from e
    if not isinstance(row, dict):
        raise TaskError(f"{place}: expected a JSON object, got {short(row)}")
    return row


def _too_many(path: Path, most: int) -> TaskError:
    return TaskError(f"{path} has more than {most:,} rows; take a part of it, or set tasks.most_rows")


def _read_parquet(path: Path, most: int) -> Iterator[tuple[int, dict[str, Any]]]:
    parquet, arrow = require("pyarrow.parquet", "parquet"), require("pyarrow", "parquet")
    try:
        with parquet.ParquetFile(path) as file:
            if file.metadata.num_rows > most:
                raise _too_many(path, most)
            number = 0
            for batch in file.iter_batches(BATCH):
                for number, row in enumerate(batch.to_pylist(), number + 1):  # noqa: B020
                    yield number, row
    except (arrow.ArrowException, OSError, ValueError, OverflowError) as e:
        raise TaskError(f"{path}: not a Parquet table that can be read ({' '.join(str(e).split())[:200]})") from e


def _data(value: Any, place: str, depth: int = 0) -> Any:
    """What can be stored as JSON, its texts plain; a number that is none, as tables write what is missing, is None.

    Raises:
        TaskError: it cannot be stored, such as a date.
    """
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple) and depth < MAX_DEPTH:
        return [_data(part, place, depth + 1) for part in value]
    if isinstance(value, dict) and depth < MAX_DEPTH:
        return {plain(str(key)): _data(part, place, depth + 1) for key, part in value.items()}
    raise TaskError(
        f"{place}: expected a text, a number, or a list or table of them, got {short(value)} "
        f"({type(value).__name__}); write it as a text"
    )


def _shown(prompt: Any, place: str) -> tuple[str, str | None]:
    """What the agent reads, and what an assistant says at the end of a conversation."""
    if isinstance(prompt, str) and prompt.strip():
        return prompt, None
    if not isinstance(prompt, list) or not prompt:
        raise TaskError(f"{place}: expected a text or a list of messages, got {short(prompt)}")
    said = [_message(message, f"{place}, message {k}") for k, message in enumerate(prompt, 1)]
    last = said.pop()[1] if said[-1][0] == "assistant" else None
    if not said or said[-1][0] != "user":
        raise TaskError(f"{place}: expected a conversation with a user's message before the reply")
    if sum(role != "system" for role, _ in said) == 1:
        return "\n".join(text for _, text in said), last
    return "\n".join(text if role == "system" else f"{role}: {text}" for role, text in said), last


def _message(message: Any, place: str) -> tuple[str, str]:
    role, text = (message.get("role"), message.get("content")) if isinstance(message, dict) else (None, None)
    if role not in SPEAKERS or not isinstance(text, str):
        raise TaskError(
            f'{place}: expected {{"role": ..., "content": ...}} with a text, and a role of {", ".join(SPEAKERS)}; got '
            f"{short(message)}"
        )
    return role, text
