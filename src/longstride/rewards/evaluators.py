"""Evaluators: what an episode earned, and why.

A task's evaluator is data:

| evaluator | reward 1 when |
|---|---|
| `{"type": "answer", "reference": "red"}` | the answer is the reference |
| `{"type": "answer", "any_of": ["red", "crimson"]}` | the answer is one of them |
| `{"type": "all", "of": [...]}` | all of them say 1 (WebArena's product of checkers) |
| `{"type": "state", "expected": {...}}` | the expected values are in the final state: see `rewards.final_state` |
| `string_match`, `url_match`, `program_html` | WebArena's checkers say so: see `web.judging.webarena` |
| `rubric`, `judged` | a judge says so: see `web.judging.rubric`; `judge` raises, for it asks nobody |

What always holds: `judge` never executes anything and never guesses: a malformed evaluator raises and is not a reward
of 0; the same episode gets the same verdict; evidence is JSON data that says what was expected and what was got.
"""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from longstride.core.component import find, unknown
from longstride.core.errors import TaskError, short
from longstride.core.locations import LOCATIONS
from longstride.core.task import Task


@dataclass(slots=True)
class Verdict:
    """A reward and what it rests on."""

    reward: float
    success: bool
    """Whether the task was done: partial credit is a reward without it."""
    terms: dict[str, float] = field(default_factory=dict)
    """The parts of a reward that has several, by name; they are logged."""
    evidence: dict[str, Any] = field(default_factory=dict)
    """`evaluator`, `matched`, and `expected` and `got` (or, for `all`, the `parts`); where it helps a `note` in
    words; `unseen` pages, where an answer needs evidence."""


def judge(task: Task, answer: str | None, state: dict[str, Any]) -> Verdict:
    """Judges an episode by `task.evaluator`.

    Args:
        task: the task.
        answer: what was answered; None where the episode ended without an answer.
        state: the environment's final state.

    Raises:
        TaskError: the evaluator's type is unknown or its data malformed.
    """
    try:
        evidence = _judge(task, task.evaluator, answer, state)
    except RecursionError:
        raise TaskError(f"task {task.id!r}: its evaluator is nested too deeply; use fewer levels") from None
    return Verdict(float(evidence["matched"]), bool(evidence["matched"]), evidence=evidence)


def normalise(text: str) -> str:
    """WebArena's normal form of an exact match (lower case, one pair of quotes off), white space collapsed, without a
    full stop at the end, and with one spelling of accented letters (Unicode's NFC)."""
    text = " ".join(unicodedata.normalize("NFC", text).lower().split()).rstrip(". ")
    for quote in "'\"":
        if len(text) > 1 and text[0] == text[-1] == quote:
            text = text[1:-1].strip().rstrip(". ")
    return text


def _judge(task: Task, spec: Any, answer: str | None, state: dict[str, Any]) -> dict[str, Any]:
    kind = spec.get("type") if isinstance(spec, dict) else None
    if not isinstance(kind, str):
        known = ", ".join(EVALUATORS | LOCATIONS["evaluator"])
        raise TaskError(f'task {task.id!r}: an evaluator is {{"type": ...}} with one of {known}; got {short(spec)}')
    evaluator = find(EVALUATORS, "evaluator", kind)
    if evaluator is None:
        raise TaskError(f"task {task.id!r}: {unknown('evaluator', kind, EVALUATORS | LOCATIONS['evaluator'])}")
    return evaluator(task, spec, answer, state)


def _answer(task: Task, spec: dict[str, Any], answer: str | None, state: dict[str, Any]) -> dict[str, Any]:
    given = keys(spec)
    accepted = [spec["reference"]] if given == {"reference"} else spec["any_of"] if given == {"any_of"} else None
    if not isinstance(accepted, list) or not accepted or not all(isinstance(a, str) and normalise(a) for a in accepted):
        raise malformed(task, spec, "`reference` (a text) or `any_of` (a list of texts)")
    evidence = {"evaluator": "answer", "expected": spec[given.pop()], "got": answer}
    if answer is None:
        return evidence | {"matched": False, "note": "no answer"}
    return evidence | {"matched": normalise(answer) in map(normalise, accepted)}


def _all(task: Task, spec: dict[str, Any], answer: str | None, state: dict[str, Any]) -> dict[str, Any]:
    of = spec.get("of")
    if keys(spec) != {"of"} or not isinstance(of, list) or not of:
        raise malformed(task, spec, "`of` (a list of evaluators that is not empty)")
    parts = [_judge(task, part, answer, state) for part in of]
    return {"evaluator": "all", "matched": all(p["matched"] for p in parts), "parts": parts}


Evaluator = Callable[[Task, dict[str, Any], str | None, dict[str, Any]], dict[str, Any]]
"""Task, evaluator's data, answer and final state to evidence."""
EVALUATORS: dict[str, Evaluator] = {"answer": _answer, "all": _all}
"""By `type`; others are added by the module that holds them (see `core.locations`)."""


def keys(spec: dict[str, Any]) -> set[str]:
    """What an evaluator's data has beside its type."""
    return set(spec) - {"type"}


def malformed(task: Task, spec: dict[str, Any], needs: str) -> TaskError:
    """The error of an evaluator whose data is not what it takes."""
    return TaskError(
        f"task {task.id!r}: the evaluator {spec['type']!r} takes {needs} and nothing else; got {short(spec)}"
    )
