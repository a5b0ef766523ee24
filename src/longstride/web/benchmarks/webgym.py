"""WebGym's tasks (arXiv 2601.02439): a goal on a real site and a rubric, groups of facts that all have to hold.

What always holds: a task's difficulty is that of its number of facts; tasks of one site have one `template_id`, for
WebGym holds out whole sites, and a file does not say which of its tasks were taken out of which.
"""

import itertools
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from longstride.core.errors import TaskError, short
from longstride.core.task import Task, difficulty_of
from longstride.web.benchmarks.records import BenchmarkRecord, is_texts, read_lines, tasks_from

LARGE = 3
"""Facts of a large group: WebGym takes a task apart only if one of its groups has so many."""


@dataclass(frozen=True, slots=True)
class FactGroup:
    """Facts that belong together."""

    description: str
    facts: tuple[str, ...]
    size: int
    """How many facts it counts as; more than are named where the file only says how difficult it is."""


def read_webgym(path: Path, blocked: Collection[str] = ()) -> list[Task]:
    """The tasks of a WebGym file.

    Args:
        path: JSON lines with `task_name`, `website`, `domain`, `evaluator_reference` and, where there is one,
            `definite_answer`. The rubric is a list of groups (`description` and `facts`), of items (`description` and
            `difficulty`, the number of facts it counts as), or of texts; or one text.
        blocked: hosts that shut agents out, such as `shop.example`: their tasks, and those of the hosts below them,
            are left out.

    Raises:
        TaskError: the file cannot be read, or a line is no task (its number and field are named).
    """
    out = frozenset(_bare(host) for host in blocked)
    return tasks_from(read_lines(path), lambda record: _task(record, out), {})


def groups_of(task: Task, spec: Any) -> list[FactGroup]:
    """The groups of a `rubric` evaluator.

    Raises:
        TaskError: the rubric is malformed.
    """
    groups = spec.get("groups") if isinstance(spec, dict) and spec.keys() <= {"type", "groups", "reference"} else None
    reference = spec.get("reference", "-") if isinstance(spec, dict) else None
    if isinstance(groups, list) and groups and isinstance(reference, str) and all(map(_is_group, groups)):
        return [FactGroup(g["description"], tuple(g["facts"]), g.get("size", len(g["facts"]))) for g in groups]
    raise TaskError(
        f"task {task.id!r}: the evaluator 'rubric' takes `groups`, each with `description`, `facts` (a list of texts) "
        f"and perhaps `size`, and perhaps `reference` (a text); got {short(spec)}"
    )


def subtasks(task: Task, limit: int = 16) -> list[Task]:
    """Easier tasks from the parts of a task's rubric: each has a proper subset of its groups, a large one among them.

    Deterministic: fewest groups first, in the rubric's order; at most `limit`. Empty where the rubric has fewer than
    two groups, or none is large (`LARGE`). A sub-task stays in its parent's split (same `split` and template), starts
    where it starts, and has the parent's id in `meta`. The reference answer belongs to the parent and is dropped.

    WebGym (task construction) has a language model write the goal of each subset and drop those that make no sense
    alone or are trivial. Here a goal is the groups' descriptions, a group that leans on one that was left out stays in,
    and against triviality there is only the rule that each subset has a large group, which is ours.

    Raises:
        TaskError: the task's evaluator is no rubric, or a malformed one.
    """
    if task.evaluator.get("type") != "rubric":
        raise TaskError(f"task {task.id!r}: only a task whose evaluator is a 'rubric' has sub-tasks")
    groups = groups_of(task, task.evaluator)
    if all(g.size < LARGE for g in groups):
        return []
    subsets = (s for n in range(1, len(groups)) for s in itertools.combinations(range(len(groups)), n))
    valid = (s for s in subsets if any(groups[i].size >= LARGE for i in s))
    return [_part(task, groups, subset) for subset in itertools.islice(valid, limit)]


def _part(task: Task, groups: list[FactGroup], subset: tuple[int, ...]) -> Task:
    facts = sum(groups[i].size for i in subset)
    return task.model_copy(
        update={
            "id": f"{task.id}/part-{'-'.join(str(i + 1) for i in subset)}",
            "goal": "; ".join(groups[i].description for i in subset),
            "difficulty": difficulty_of(facts),
            "facts": facts,
            "optimal": None,
            "template_id": task.template_id or task.id,
            "evaluator": {"type": "rubric", "groups": [task.evaluator["groups"][i] for i in subset]},
            "meta": task.meta | {"parent": task.id},
        }
    )


def _task(record: BenchmarkRecord, blocked: frozenset[str]) -> Task | None:
    site = record.text("website")
    start = site if "://" in site else f"https://{site}"
    host = _host(start)
    if not host:
        raise record.fail("website", "a host, or an http or https address")
    labels = host.split(".")
    if any(".".join(labels[i:]) in blocked for i in range(len(labels))):
        return None
    evaluator: dict[str, Any] = {"type": "rubric", "groups": _groups(record)}
    facts = sum(g.get("size", len(g["facts"])) for g in evaluator["groups"])
    if answer := record.optional("definite_answer"):
        evaluator["reference"] = answer
    name = record.name("task_id") if record.data.get("task_id") is not None else f"line-{record.number}"
    return Task(
        id=f"webgym/{name}",
        source=f"webgym/{record.text('domain')}",
        goal=record.text("task_name"),
        start=start,
        difficulty=difficulty_of(facts),
        facts=facts,
        template_id=f"webgym/{host}",
        evaluator=evaluator,
    )


def _groups(record: BenchmarkRecord) -> list[dict[str, Any]]:
    rubric = record.data.get("evaluator_reference")
    items = [rubric] if isinstance(rubric, str) else rubric
    if not isinstance(items, list) or not items:
        raise record.fail("evaluator_reference", "a rubric: a list of groups, items or texts, or one text")
    return [_group(item, record.where, i) for i, item in enumerate(items, 1)]


def _group(item: Any, where: str, number: int) -> dict[str, Any]:
    if isinstance(item, str):
        item = {"description": item}
    if not isinstance(item, dict):
        raise TaskError(f"{where}: evaluator_reference, item {number}: expected an object or a text, got {short(item)}")
    group = BenchmarkRecord(item, f"{where}: evaluator_reference, item {number}", number)
    if "facts" in item:
        facts = group.texts("facts")
        return {"description": group.optional("description") or "; ".join(facts), "facts": facts}
    made: dict[str, Any] = {"description": group.text("description"), "facts": [group.text("description")]}
    size = item.get("difficulty", 1)
    if not _is_size(size):
        raise group.fail("difficulty", "a whole number from 1 to 99")
    return made | ({"size": size} if size > 1 else {})


def _is_group(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() <= {"description", "facts", "size"}
        and isinstance(value.get("description"), str)
        and is_texts(value.get("facts"))
        and _is_size(value.get("size", 1))
    )


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 99


def _host(address: str) -> str:
    """The host of an address without `www.`; empty where it has none."""
    try:
        parts = urlsplit(address)
        return _bare(parts.hostname or "") if parts.scheme in ("http", "https") else ""
    except ValueError:
        return ""


def _bare(host: str) -> str:
    return host.lower().removeprefix("www.")
