"""The evaluator `state`: the expected values are in the environment's final state.

What always holds: a mapping may hold more than is expected, a list may not; evidence names the first difference.
"""

from typing import Any

from longstride.core.errors import TaskError, short
from longstride.core.task import Task
from longstride.rewards.evaluators import EVALUATORS, keys, malformed, normalise


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
    return None if same else f"{path}: expected {short(expected)}, got {short(got)}"


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
            return f"{path}: no item of its own for {short(item)}"
    return None


def _state(task: Task, spec: dict[str, Any], answer: str | None, state: dict[str, Any]) -> dict[str, Any]:
    expected = spec.get("expected")
    if keys(spec) != {"expected"} or not isinstance(expected, dict) or not expected:
        raise malformed(task, spec, "`expected` (a table that is not empty)")
    if not state:
        raise TaskError(
            f"task {task.id!r} is judged by the final state of its environment, and there is none: expected an "
            "environment that has one; of a program that plays, `tasks.result` says what its episode was worth"
        )
    differs = difference(expected, state)
    got = {key: state[key] for key in expected if key in state}
    evidence = {"evaluator": "state", "expected": expected, "got": got, "matched": differs is None}
    return evidence | ({"note": differs} if differs else {})


EVALUATORS["state"] = _state
