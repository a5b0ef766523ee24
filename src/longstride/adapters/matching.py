"""Evaluators that compare an answer with a reference: numbers, and patterns.

| evaluator | reward 1 when |
|---|---|
| `{"type": "number", "reference": "1,200"}` | the last number of the answer is the last number of the reference |
| `{"type": "regex", "pattern": "cats?"}` | the pattern matches the answer whole, whatever its case |

What always holds: numbers are compared exactly, as fractions (`0.5` is `1/2`, `5e-1` and LaTeX's `\\frac{1}{2}`, and
`1{,}200` is `1,200`); a minus behind a digit, a letter or a bracket is no sign (the last number of `5-10` is 10); a
pattern that takes too long does not match; an evaluator without a number or with a broken pattern raises and is not a
reward of 0.
"""

import re
from fractions import Fraction
from typing import Any

import regex

from longstride.core.errors import TaskError
from longstride.core.task import Task
from longstride.rewards.evaluators import EVALUATORS

SECONDS = 0.2
"""What a pattern may take for one answer; the engine looks at the clock now and then, so some seconds may pass."""
MAX_ANSWER = 10_000
"""Characters of an answer that are compared: the last ones."""
MAX_PATTERN = 10_000
"""Characters of a pattern."""
_NUMBER = re.compile(
    r"(?:(?<![^\W_])(?<![)\]}])-)?(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:/[1-9]\d*|(?:\.\d+)?(?:[eE][-+]?\d{1,3}(?!\w))?)|\.\d+)"
)
_FRACTION = re.compile(r"(?<!\d)\\[dt]?frac(?:\{(-?\d+)\}\{(\d+)\}|(\d)(\d))")
_POWER = re.compile(r"(?<=\d)\s*(?:×|\\times|\\cdot|\*)\s*10\s*\^\s*(?:\{(-?\d+)\}|(-?\d+))")


def last_number(text: str) -> Fraction | None:
    """The last number in a text, such as `-3`, `1,200.50`, `3/4`, `2e-3`, `2 \\times 10^{-3}` or `\\frac{3}{4}`; None
    where there is none, or it has more digits than Python reads (4,300)."""
    text = text[-MAX_ANSWER:].replace("\u2212", "-").replace("{,}", ",").replace("\\!", "")
    text = _FRACTION.sub(lambda found: f"{found[1] or found[3]}/{found[2] or found[4]}", text)
    text = _POWER.sub(lambda found: f"e{found[1] or found[2]}", text)
    found = _NUMBER.findall(text)
    try:
        return Fraction(found[-1].replace(",", "")) if found else None
    except ValueError:
        return None


def broken(pattern: str) -> str:
    """What is wrong with a pattern; empty where nothing is."""
    if len(pattern) > MAX_PATTERN:
        return f"it has more than {MAX_PATTERN:,} characters"
    try:
        regex.compile(pattern)
    except regex.error as e:
        return str(e)
    except RecursionError:
        return "it is nested too deeply"
    return ""


def _number(task: Task, spec: dict[str, Any], answer: str | None, state: dict[str, Any]) -> dict[str, Any]:
    wanted = last_number(spec["reference"]) if isinstance(spec.get("reference"), str) else None
    if spec.keys() != {"type", "reference"} or wanted is None:
        raise TaskError(
            f"task {task.id!r}: the evaluator 'number' takes `reference` (a text with a number); got {spec}"
        )
    evidence = {"evaluator": "number", "expected": spec["reference"], "got": answer}
    return evidence | {"matched": answer is not None and last_number(answer) == wanted}


def _regex(task: Task, spec: dict[str, Any], answer: str | None, state: dict[str, Any]) -> dict[str, Any]:
    pattern = spec.get("pattern")
    if spec.keys() != {"type", "pattern"} or not isinstance(pattern, str) or broken(pattern):
        raise TaskError(f"task {task.id!r}: the evaluator 'regex' takes `pattern` (a regular expression); got {spec}")
    evidence = {"evaluator": "regex", "expected": pattern, "got": answer}
    if answer is None:
        return evidence | {"matched": False, "note": "no answer"}
    try:
        found = regex.fullmatch(pattern, answer[-MAX_ANSWER:].strip(), regex.IGNORECASE | regex.DOTALL, timeout=SECONDS)
    except (TimeoutError, MemoryError):
        return evidence | {"matched": False, "note": f"the pattern took more than {SECONDS:g} s, or all memory"}
    return evidence | {"matched": found is not None}


EVALUATORS.update(number=_number, regex=_regex)
