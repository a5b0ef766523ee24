"""WebArena's configurations (arXiv 2307.13854), and those of WebArena-Lite, as tasks.

What always holds: tasks of one `intent_template_id` have one `template_id`, in WebArena and in WebArena-Lite alike (its
165 tasks are a corrected part of WebArena's 812), so that no split leaks from one to the other. The score is the
product of the checkers that `eval_types` names.

WebArena does not grade difficulty: all of its tasks count as easy.
"""

from pathlib import Path
from typing import Any

from longstride.core.component import unknown
from longstride.core.errors import TaskError
from longstride.core.task import Task
from longstride.web.benchmarks.programs import read_programs
from longstride.web.benchmarks.records import BenchmarkRecord, Hosts, is_address, read_list, tasks_from

INFEASIBLE = "N/A"
"""The reference that says: the agent has to find that the task cannot be done."""


def read_webarena(path: Path, hosts: Hosts) -> list[Task]:
    """The tasks of a WebArena or WebArena-Lite file.

    Args:
        path: a JSON list of configurations.
        hosts: where the sites are. A site's name (`shopping`, `shopping_admin`, `reddit`, `gitlab`, `map`,
            `wikipedia`, `homepage`) stands for its placeholder (`__SHOPPING__`), and moves the origin of addresses at
            its usual port; the beginning of an address is replaced by another.

    Raises:
        TaskError: the file cannot be read, or a record is no task (its number and field are named); a placeholder is
            left without an address.
    """
    return tasks_from(read_list(path), webarena_task, hosts)


def webarena_task(record: BenchmarkRecord) -> Task:
    """The task of one configuration. `meta` has `sites`, and where there are any: `tabs` (all addresses to open; the
    first is the start, and in front), `storage_state` (of a login) and `old_task_id`.

    Raises:
        TaskError: a field is missing or malformed.
    """
    sites = record.texts("sites")
    tabs = record.text("start_url").split(" |AND| ")
    if not all(map(is_address, tabs)):
        raise record.fail("start_url", "an http or https address, or several with ' |AND| ' between")
    meta: dict[str, Any] = {"sites": sites}
    if len(tabs) > 1:
        meta["tabs"] = tabs
    if login := record.optional("storage_state"):
        meta["storage_state"] = login
    benchmark = "webarena"
    if "old_task_id" in record.data:
        benchmark, meta["old_task_id"] = "webarena_lite", record.name("old_task_id")
    return Task(
        id=f"{benchmark}/{record.name('task_id')}",
        source=f"{benchmark}/{sites[0]}",
        split="test",
        goal=record.text("intent"),
        start=tabs[0],
        template_id=f"webarena/{record.name('intent_template_id')}",
        evaluator=_evaluator(record.table("eval")),
        meta=meta,
    )


def _evaluator(spec: BenchmarkRecord) -> dict[str, Any]:
    parts = []
    for kind in dict.fromkeys(spec.texts("eval_types")):
        if kind not in _CHECKERS:
            raise TaskError(f"{spec.where}: {unknown('eval_type', kind, _CHECKERS)}")
        parts.append({"type": kind, **_CHECKERS[kind](spec)})
    return parts[0] if len(parts) == 1 else {"type": "all", "of": parts}


def _string_match(spec: BenchmarkRecord) -> dict[str, Any]:
    answers = spec.table("reference_answers")
    if not answers.data:
        raise spec.fail("reference_answers", "at least one rule")
    made: dict[str, Any] = {}
    for rule, value in answers.data.items():
        if rule == "exact_match" or (rule == "fuzzy_match" and value == INFEASIBLE):
            made[rule] = answers.text(rule)
        elif rule in ("must_include", "fuzzy_match"):  # WebArena-Lite has one that is a text
            made[rule] = [answers.text(rule)] if isinstance(value, str) else answers.texts(rule)
        else:
            known = ("exact_match", "must_include", "fuzzy_match")
            raise TaskError(f"{answers.where}: {unknown('rule', rule, known)}")
    if made.get("fuzzy_match") == INFEASIBLE and (reason := spec.optional("string_note")):
        made["string_note"] = reason
    return made


def _url_match(spec: BenchmarkRecord) -> dict[str, Any]:
    note = spec.data.get("url_note", "GOLD in PRED")
    if note != "GOLD in PRED":
        raise spec.fail("url_note", "'GOLD in PRED'")
    reference = spec.text("reference_url")
    if not all(map(is_address, reference.split(" |OR| "))):
        raise spec.fail("reference_url", "an http or https address, or several with ' |OR| ' between")
    return {"reference_url": reference}


def _program_html(spec: BenchmarkRecord) -> dict[str, Any]:
    items = spec.data.get("program_html")
    read_programs(items, spec.where)
    return {"programs": items}


_CHECKERS = {"string_match": _string_match, "url_match": _url_match, "program_html": _program_html}
