"""WebVoyager's tasks (arXiv 2401.13919): a question and a site, and no checker, so a judge has to be asked.

What always holds: a reference answer goes to the judge and never to the agent. Tasks that depend on the date go stale;
nothing here can tell which.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from longstride.core.task import Task
from longstride.web.benchmarks.records import BenchmarkRecord, Hosts, read_lines, read_table, tasks_from

ReferenceAnswer = dict[str, str]
"""`{"golden": text}`, the only right answer, or `{"possible": text}`, one among others."""


def read_webvoyager(path: Path, hosts: Hosts, references: Path | None = None) -> list[Task]:
    """The tasks of a WebVoyager file.

    Args:
        path: JSON lines with `web_name`, `id`, `ques` and `web`.
        hosts: beginnings of addresses to what replaces them (TTI sends searches from Google to Bing).
        references: WebVoyager's file of reference answers; a task that it does not name has none.

    Raises:
        TaskError: a file cannot be read, or a record is no task (its line and field are named).
    """
    known = _references(references) if references else {}
    return tasks_from(read_lines(path), lambda record: webvoyager_task(record, known), hosts)


def webvoyager_task(record: BenchmarkRecord, references: Mapping[str, ReferenceAnswer]) -> Task:
    """The task of one line; `references` by its id, such as `Allrecipes--10`.

    Raises:
        TaskError: a field is missing or malformed.
    """
    name, site = record.name("id"), record.text("web_name")
    evaluator: dict[str, Any] = {"type": "judged", **references.get(name, {})}
    return Task(
        id=f"webvoyager/{name}",
        source=f"webvoyager/{site}",
        split="test",
        goal=record.text("ques"),
        start=record.address("web"),
        evaluator=evaluator,
    )


def _references(path: Path) -> dict[str, ReferenceAnswer]:
    found: dict[str, ReferenceAnswer] = {}
    file = read_table(path)
    for site in file.data:
        of_site = file.table(site)
        answers = of_site.data.get("answers")
        if not isinstance(answers, list):
            raise of_site.fail("answers", "a list of answers")
        for number, answer in enumerate(answers, 1):
            if not isinstance(answer, dict):
                raise of_site.fail("answers", "a list of objects")
            record = BenchmarkRecord(answer, f"{of_site.where}: answer {number}", number)
            if record.data.get("type") not in ("golden", "possible"):
                raise record.fail("type", "'golden' or 'possible'")
            found[f"{site}--{record.name('id')}"] = {record.data["type"]: record.text("ans")}
    return found
