"""A program to write, to test and to mend: functions of one line each, and tests that name the first that is wrong.

`write f2 take 5` writes a function into program.py, and `check` runs the tests of cases.json on it: `f2 of 7 is 9 and
not 2`, or `all pass`. What always holds: the files are a function of the instance; programs of held-out tasks are none
of training's; what judges an episode are other cases, which the folder does not have. A program that is judged is told
what its functions are given and never what they have to give: that is compared here, outside its process.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from longstride.core.seeds import stream
from longstride.core.task import Task, instance_of

OPERATIONS = {"add": "+", "take": "-", "times": "*"}
LOWEST, HIGHEST = 2, 9
"""Numbers in functions, and those that tests give them."""
CASES = 2
"""Of each function, in the folder; as many others judge."""
MOST_FUNCTIONS = 32
PROGRAM = "program.py"
PASSED = "all pass"
_RUN = """import json, sys
found = {}
try:
    exec(open("program.py").read(), found)
except Exception as e:
    sys.exit(f"program.py: {type(e).__name__}")
def run(name, x):
    try:
        return found[name](x)
    except Exception as e:
        return type(e).__name__
"""
_CHECK = """for name, x, wanted in json.load(open("cases.json")):
    if (got := run(name, x)) != wanted:
        sys.exit(f"{name} of {x} is {got} and not {wanted}")
print("all pass")
"""
CALLS = f"{_RUN}print(json.dumps([run(name, x) for name, x in json.loads(sys.argv[1])]))\n"
"""The program that prints what functions give: a JSON list, for the JSON list of names and numbers that is its
argument."""
SCRIPTS = {
    "check": f"#!{sys.base_prefix}/bin/python3 -IS\n{_RUN}{_CHECK}",
    "write": f"""#!/bin/sh
case $2 in add) sign=+;; take) sign=-;; times) sign='*';; *) echo "$2 is none of add, take, times"; exit 1;; esac
exec sed -i "s/^def $1(.*/def $1(x): return x $sign $3/" {PROGRAM}
""",
}
"""What is in `bin/`."""

Function = tuple[str, str, int]
"""Name, operation and number."""
Case = tuple[str, int, int]
"""A function, what it is given, and what it has to give."""


class Functions(BaseModel):
    """An instance. Its fields are untrusted data, checked when it is built."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    functions: Annotated[int, Field(ge=1, le=MOST_FUNCTIONS)]
    seed: Annotated[int, Field(ge=0, lt=1 << 62)]
    held_out: bool = False

    @classmethod
    def of(cls, task: Task) -> Self:
        """The instance that a task's `meta` holds. Raises: TaskError where it is none."""
        return instance_of(task, cls)

    @property
    def wanted(self) -> list[Function]:
        """The functions. Numbers add up to a multiple of 3 where the task is held out, and to none in training."""
        rng = stream(self.seed, "functions")
        while True:
            found = [
                (f"f{k + 1}", rng.choice([*OPERATIONS]), rng.randint(LOWEST, HIGHEST)) for k in range(self.functions)
            ]
            if (sum(number for *_, number in found) % 3 == 0) == self.held_out:
                return found

    @property
    def goal(self) -> str:
        """What is asked."""
        return "write " + " , ".join(f"{name} {operation} {number}" for name, operation, number in self.wanted)

    @property
    def first(self) -> str:
        """What is seen first."""
        return f"{PROGRAM} has {self.functions} functions"

    def cases(self, which: Literal["shown", "judging"]) -> list[Case]:
        """Cases of all functions; those that judge are no others'."""
        rng, found = stream(self.seed, "cases"), []
        for name, operation, number in self.wanted:
            drawn = rng.sample(range(LOWEST, HIGHEST + 1), 2 * CASES)
            for x in drawn[:CASES] if which == "shown" else drawn[CASES:]:
                found.append((name, x, result(operation, number, x)))
        return found

    def write(self, folder: Path) -> None:
        """Makes the files. Raises: OSError."""
        (folder / "bin").mkdir()
        for name, text in SCRIPTS.items():
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)
        lines = (f"def {name}(x): return None\n" for name, *_ in self.wanted)
        (folder / PROGRAM).write_text("".join(lines))
        (folder / "cases.json").write_text(json.dumps(self.cases("shown")))


def result(operation: str, number: int, x: int) -> int:
    """What a function gives."""
    return {"add": x + number, "take": x - number, "times": x * number}[operation]


def verdict(cases: Sequence[Case], results: Sequence[Any]) -> str:
    """What `check` prints where functions give these results: `PASSED`, or the first that is wrong."""
    for (name, x, wanted), got in zip(cases, results, strict=True):
        if got != wanted:
            return f"{name} of {x} is {got} and not {wanted}"
    return PASSED
