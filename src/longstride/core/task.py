"""Tasks: what an agent is asked to do, and how it is judged. One JSON object a line on disk.

What always holds: a task is immutable and self-contained (its evaluator is data, not code); a file either loads whole
or raises with the number of the first bad line; `split_of` never puts two tasks of one template in different splits.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from longstride.core.errors import TaskError, short
from longstride.core.seeds import stream

Difficulty = Literal["easy", "medium", "hard"]
DIFFICULTIES: tuple[Difficulty, ...] = get_args(Difficulty)


def difficulty_of(facts: int) -> Difficulty:
    """WebGym's rule: easy 1-3 facts, medium 4-6, hard 7 and more."""
    return "easy" if facts <= 3 else "medium" if facts <= 6 else "hard"


class Task(BaseModel):
    """One task (a superset of the WebArena, WebVoyager and WebGym records)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    source: str
    """Where it comes from: `web/shop`, `miniwob`, `webarena`, ... ; the class that TTI's replay balances over."""
    split: Literal["train", "test"] = "train"
    goal: str
    """What the agent reads."""
    start: str
    """Where the episode starts: an address for web environments, a state's name elsewhere."""
    difficulty: Difficulty = "easy"
    facts: int = Field(default=1, ge=1)
    """How many facts have to be seen; decides the difficulty."""
    template_id: str = ""
    """The template it was made from: splits never cut through a template."""
    evaluator: dict[str, Any] = Field(default_factory=dict)
    """`{"type": ..., ...}`: see `longstride.rewards`."""
    pages: tuple[str, ...] = ()
    """Paths of the addresses that the answer rests on: without having seen them all, who is right has guessed. Empty
    where that is not known."""
    horizon: int | None = Field(default=None, ge=1)
    """A limit of the task's own, below whatever the schedule says."""
    optimal: int | None = Field(default=None, ge=1)
    """Its goal distance: the fewest actions that do it, the answer included, as its scripted solver knows. None where
    that is not known."""
    meta: dict[str, Any] = Field(default_factory=dict)


Instance = TypeVar("Instance", bound=BaseModel)


def instance_of(task: Task, model: type[Instance]) -> Instance:
    """The instance that a task's `meta` holds.

    Raises:
        TaskError: `meta` is none of this model (the field, what was expected and what came are named).
    """
    try:
        return model.model_validate(task.meta)
    except ValidationError as e:
        first = e.errors()[0]
        place = ".".join(["meta", *map(str, first["loc"])])
        message = first["msg"].removeprefix("Value error, ")
        raise TaskError(f"task {task.id!r}: {place}: {message} (got {str(first['input'])[:60]!r})") from e


def split_of(task: Task, test_share: float, seed: int) -> Literal["train", "test"]:
    """The split of a task when about `test_share` of all templates (0 to 1) are for testing.

    It depends on the task's template and the seed alone (a task without a template is one of its own), so it stays when
    tasks are added, and tasks that were made from one template are in one split wherever they are.
    """
    return "test" if stream(seed, "split", task.template_id or task.id).random() < test_share else "train"


def save_tasks(tasks: Iterable[Task], path: Path) -> int:
    """Writes one JSON line a task; returns how many."""
    n = 0
    with open(path, "w", encoding="utf-8") as f:
        for n, task in enumerate(tasks, 1):  # noqa: B007
            f.write(task.model_dump_json(exclude_defaults=True) + "\n")
    return n


def read_tasks(path: Path) -> Iterator[Task]:
    """Reads a task file line by line.

    Raises:
        TaskError: the file is missing, or a line is not a task (its number and what is wrong are named).
    """
    try:
        file = open(path, encoding="utf-8")  # noqa: SIM115 (closed below; a missing file is a message of its own)
    except OSError as e:
        raise TaskError(f"cannot read the task file {path}: {e.strerror or e}") from e
    seen: dict[str, int] = {}
    with file:
        lines = enumerate(file, 1)
        while True:
            try:
                number, line = next(lines)
            except StopIteration:
                return
            except UnicodeDecodeError as e:
                raise TaskError(f"{path}: not UTF-8 text ({e.reason}); a task file is one JSON object a line") from e
            if not line.strip():
                continue
            try:
                task = Task.model_validate(json.loads(line))
            except json.JSONDecodeError as e:
                raise TaskError(f"{path}, line {number}: not a JSON object ({e.msg} at column {e.colno})") from e
            except (ValidationError, RecursionError) as e:
                raise TaskError(f"{path}, line {number}: {_first_problem(e)}") from e
            except ValueError as e:  # a number of thousands of digits
                raise TaskError(f"{path}, line {number}: {e}") from e
            if task.id in seen:
                raise TaskError(
                    f"{path}, line {number}: the id {short(task.id)} was used in line {seen[task.id]} already"
                )
            seen[task.id] = number
            yield task


def _first_problem(error: ValidationError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply for a task"
    e = error.errors()[0]
    field = ".".join(map(str, e["loc"]))[:80] or "the line"
    return f"{field}: {e['msg']} (got {str(e['input'])[:60]!r})"
