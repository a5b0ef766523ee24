"""Other people's web benchmarks, read as tasks.

What always holds: a file loads completely, or raises `TaskError` with the number of the first bad record; nothing in it
is executed; what the benchmark checks becomes evaluators as data (see `longstride.rewards`).

| format | file | reader |
|---|---|---|
| WebArena (arXiv 2307.13854), WebArena-Lite (arXiv 2408.06327) | JSON list of configurations | `read_webarena` |
| WebVoyager (arXiv 2401.13919) | JSON lines; reference answers in a file of their own | `read_webvoyager` |
| TTI (arXiv 2506.07976) | JSON lines of either kind | `read_tti` |
| WebGym (arXiv 2601.02439) | JSON lines with rubrics | `read_webgym`, `subtasks` |

Test sets come with the split `test`; `core.task.split_of` makes another split that no template leaks through.
"""

from longstride.web.benchmarks.programs import Helper, Program, programs_of
from longstride.web.benchmarks.tti_files import read_tti
from longstride.web.benchmarks.webarena import read_webarena
from longstride.web.benchmarks.webgym import read_webgym, subtasks
from longstride.web.benchmarks.webvoyager import read_webvoyager

__all__ = [
    "Helper",
    "Program",
    "programs_of",
    "read_tti",
    "read_webarena",
    "read_webgym",
    "read_webvoyager",
    "subtasks",
]
