"""Evaluators: what an episode earned, and why.

A task's evaluator is data:

| evaluator | reward 1 when |
|---|---|
| `{"type": "answer", "reference": "red"}` | the answer is the reference |
| `{"type": "answer", "any_of": ["red", "crimson"]}` | the answer is one of them |
| `{"type": "state", "expected": {...}}` | the expected values are in the final state |
| `{"type": "all", "of": [...]}` | all of them say 1 (WebArena's product of checkers) |
| `string_match`, `url_match`, `program_html` | WebArena's checkers say so: see `web.judging.webarena` |
| `rubric`, `judged` | a judge says so: see `web.judging.rubric`; `judge` raises, for it asks nobody |

What always holds: `judge` never executes anything and never guesses: a malformed evaluator raises and is not a reward
of 0; the same episode gets the same verdict; evidence is JSON data that says what was expected and what was got.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from longstride.core.component import find, unknown
from longstride.core.errors import TaskError
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
    """WebArena's normal form of an exact match (lower case, one pair of quotes off), white space collapsed and
    without a full stop at the end."""
    text = " ".join(text.lower().split()).rstrip(". ")
    for quote in "'\"":
        if len(text) > 1 and text[0] == text[-1] == quote:
            text = text[1:-1].strip().rstrip(". ")
    return text


def difference(expected: Any, got: Any, path: str = "state") -> str | None:
    """Where `got` first fails to hold what is expected, in words; None where it holds all of it.

    A mapping must hold the expected keys (others are ignored). A list must have as many items as expected, each
    matched by an item of its own, in any order. Numbers are equal, true and false are no numbers, texts are equal in
    normal form.
    """
    if isinstance(expected, dict) and isinstance(got, dict):
        for key, value in expected.items():
            if key not in got:
                return f"{path}.{key}: missing"
            if found := difference(value, got[key], f"{path}.{key}"):
                return found
        return None
    if isinstance(expected, list) and isinstance(got, list):
        return _list_difference(expected, got, path)
    if isinstance(expected, str) and isinstance(got, str):
        same = normalise(expected) == normalise(got)
    else:
        same = expected == got and isinstance(expected, bool) == isinstance(got, bool)
    return None if same else f"{path}: expected {_short(expected)}, got {_short(got)}"


def _list_difference(expected: list[Any], got: list[Any], path: str) -> str | None:
    if len(expected) != len(got):
        return f"{path}: expected {len(expected)} items, got {len(got)}"
    if len(expected) == 1:  # nothing to choose: the difference can be named inside
        return difference(expected[0], got[0], f"{path}[0]")
    fits = [[j for j, g in enumerate(got) if difference(e, g) is None] for e in expected]
    owner: dict[int, int] = {}

    def place(i: int, tried: set[int]) -> bool:
        """Finds an item for expected[i], moving others along an augmenting path (Kuhn's bipartite matching)."""
        for j in fits[i]:
            if j not in tried:
                tried.add(j)
                if j not in owner or place(owner[j], tried):
                    owner[j] = i
                    return True
        return False

    for i, item in enumerate(expected):
        if not place(i, set()):
            return f"{path}: no item of its own for {_short(item)}"
    return None


def _judge(task: Task, spec: Any, answer: str | None, state: dict[str, Any]) -> dict[str, Any]:
    kind = spec.get("type") if isinstance(spec, dict) else None
    if not isinstance(kind, str):
        raise TaskError(
            f'task {task.id!r}: an evaluator is {{"type": ...}} with one of {", ".join(EVALUATORS)}; got {_short(spec)}'
        )
    evaluator = find(EVALUATORS, "evaluator", kind)
    if evaluator is None:
        raise TaskError(f"task {task.id!r}: {unknown('evaluator', kind, EVALUATORS | LOCATIONS['evaluator'])}")
    return evaluator(task, spec, answer, state)


def _answer(task: Task, spec: dict[str, Any], answer: str | None, state: dict[str, Any]) -> dict[str, Any]:
    keys = _keys(spec)
    accepted = [spec["reference"]] if keys == {"reference"} else spec["any_of"] if keys == {"any_of"} else None
    if not isinstance(accepted, list) or not accepted or not all(isinstance(a, str) and normalise(a) for a in accepted):
        raise _malformed(task, spec, "`reference` (a text) or `any_of` (a list of texts)")
    evidence = {"evaluator": "answer", "expected": spec[keys.pop()], "got": answer}
    if answer is None:
        return evidence | {"matched": False, "note": "no answer"}
    return evidence | {"matched": normalise(answer) in map(normalise, accepted)}


def _state(task: Task, spec: dict[str, Any], answer: str | None, state: dict[str, Any]) -> dict[str, Any]:
    expected = spec.get("expected")
    if _keys(spec) != {"expected"} or not isinstance(expected, dict) or not expected:
        raise _malformed(task, spec, "`expected` (a table that is not empty)")
    differs = difference(expected, state)
    got = {key: state[key] for key in expected if key in state}
    evidence = {"evaluator": "state", "expected": expected, "got": got, "matched": differs is None}
    return evidence | ({"note": differs} if differs else {})


def _all(task: Task, spec: dict[str, Any], answer: str | None, state: dict[str, Any]) -> dict[str, Any]:
    of = spec.get("of")
    if _keys(spec) != {"of"} or not isinstance(of, list) or not of:
        raise _malformed(task, spec, "`of` (a list of evaluators that is not empty)")
    parts = [_judge(task, part, answer, state) for part in of]
    return {"evaluator": "all", "matched": all(p["matched"] for p in parts), "parts": parts}


Evaluator = Callable[[Task, dict[str, Any], str | None, dict[str, Any]], dict[str, Any]]
"""Task, evaluator's data, answer and final state to evidence."""
EVALUATORS: dict[str, Evaluator] = {"answer": _answer, "state": _state, "all": _all}
"""By `type`; others are added by the module that holds them (see `core.locations`)."""


def _keys(spec: dict[str, Any]) -> set[str]:
    return set(spec) - {"type"}


def _malformed(task: Task, spec: dict[str, Any], needs: str) -> TaskError:
    return TaskError(
        f"task {task.id!r}: the evaluator {spec['type']!r} takes {needs} and nothing else; got {_short(spec)}"
    )


def _short(value: Any, limit: int = 100) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."
