"""TTI's task files (arXiv 2506.07976): JSON lines that are WebArena's where they have `eval`, else WebVoyager's.

What always holds: a task has the id that it has in the benchmark that it comes from. TTI's WebArena training file is a
part of the 812 test tasks, so it is read as the split `test` like the others: who trains on it cannot report WebArena.
"""

from pathlib import Path

from longstride.core.task import Task
from longstride.web.benchmarks.records import BenchmarkRecord, Hosts, read_lines, tasks_from
from longstride.web.benchmarks.webarena import webarena_task
from longstride.web.benchmarks.webvoyager import webvoyager_task


def read_tti(path: Path, hosts: Hosts) -> list[Task]:
    """The tasks of one of TTI's files.

    Args:
        path: JSON lines.
        hosts: as for `read_webarena`; the files have hosts written into them that are gone.

    Raises:
        TaskError: the file cannot be read, or a line is no task (its number and field are named).
    """
    return tasks_from(read_lines(path), _task, hosts)


def _task(record: BenchmarkRecord) -> Task:
    return webarena_task(record) if "eval" in record.data else webvoyager_task(record, {})
