"""Two results of an evaluation, and whether one is better: first whether they were measured under one protocol, and
only then the difference.

What always holds: every setting that differs, and every one that a side does not say, is named; while there is one that
was not accepted by name, there is no verdict; a difference is paired by task.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from longstride.core.errors import ConfigError, RunError
from longstride.report.compare import judged_episodes
from longstride.report.inspect_log import read_inspect_log
from longstride.report.protocol import (
    PROTOCOL,
    Protocol,
    by_place,
    names_of,
    of_tasks,
    protocol_of,
    strategy_named,
    template_of_run,
)
from longstride.report.rows import read_record
from longstride.report.tables import brief
from longstride.run.experiment import RUN_FILE, load_run_experiment
from longstride.run.recipe import Recipe
from longstride.stats import paired_difference, sign_test

NEEDED = (
    "tasks", "order", "evaluators", "attempts", "template", "context", "actions", "limits", "sampling", "strategy",
    "judge", "seed",
)  # fmt: skip
"""What two results have to say, at least, to be compared: keys of a protocol, or what begins several of them."""
SURE = 0.05
"""What p is below where a sign test agrees."""
PLAIN = 60
"""Characters of a setting that are shown."""


class Side(NamedTuple):
    """A result."""

    protocol: Protocol
    success: dict[str, float | None]
    """Of each task, by its id: the mean over attempts, None where all of them failed."""


def referee(ours: Path, theirs: Path, accept: Sequence[str] = ()) -> dict[str, Any]:
    """Compares two results: run folders, exported evaluation episodes, or logs of inspect_ai.

    Args:
        ours: the first.
        theirs: the second.
        accept: settings that may differ or be unsaid: a key of a protocol, or what begins several.

    Returns:
        `differs` (by setting, what each side has), `unsaid` (by setting, who does not say it: `ours`, `theirs`,
        `both`), `accepted` (those of them that were accepted), `comparable`, and where it is true `difference`: `mean`,
        `lo`, `hi` of our success less theirs (95 %), `tasks` that it is over, `missing` (tasks without an outcome on a
        side), `higher` and `lower` (tasks), `p` (of an exact sign test, where outcomes are 0 or 1), `verdict` (`ours`,
        `theirs`, `undecided`: that of the interval, and p < 0.05).

    Raises:
        RunError: a result cannot be read, or has none by task.
        ConfigError: nothing begins with what is accepted, or fewer than two tasks are shared.
    """
    a, b = side_of(ours), side_of(theirs)
    differs, unsaid = _differing(a.protocol, b.protocol)
    named = [*differs, *unsaid]
    if odd := next((key for key in accept if not any(_begins(name, key) for name in named)), None):
        raise ConfigError(f"--accept {odd}: no setting of that name differs or is unsaid; those are {', '.join(named)}")
    accepted = [name for name in named if any(_begins(name, key) for key in accept)]
    found = {"differs": differs, "unsaid": unsaid, "accepted": accepted, "comparable": len(accepted) == len(named)}
    return found | ({"difference": _difference(a, b)} if found["comparable"] else {})


def _begins(name: str, key: str) -> bool:
    return name == key or name.startswith(f"{key}.")


def _differing(a: Protocol, b: Protocol) -> tuple[dict[str, list[Any]], dict[str, str]]:
    """Settings that differ, and those that are not said."""
    groups = sorted({key.partition(".")[0] for key in (*a, *b, *NEEDED)})
    differs: dict[str, list[Any]] = {}
    unsaid: dict[str, str] = {}
    for group in groups:
        ours, theirs = ({key: v for key, v in side.items() if _begins(key, group)} for side in (a, b))
        if not ours or not theirs:
            if group in NEEDED or ours or theirs:
                unsaid[group] = "both" if not ours and not theirs else "theirs" if ours else "ours"
            continue
        for key in sorted(ours | theirs):
            if ours.get(key) != theirs.get(key):
                differs[key] = [ours.get(key), theirs.get(key)]
    return differs, unsaid


def _difference(a: Side, b: Side) -> dict[str, Any]:
    shared = [task for task in a.success if task in b.success]
    pairs = [(x, y) for t in shared if (x := a.success[t]) is not None and (y := b.success[t]) is not None]
    if len(pairs) < 2:
        raise ConfigError(f"the results share {len(pairs)} tasks with an outcome; a difference needs two at least")
    ours, theirs = ([float(value) for value in column] for column in zip(*pairs, strict=True))
    e = paired_difference(ours, theirs, seed=0)
    higher, lower = sum(x > y for x, y in pairs), sum(x < y for x, y in pairs)
    p = sign_test(higher, lower) if {*ours, *theirs} <= {0, 1} else None
    decided = p is None or p < SURE
    return {
        "mean": e.mean,
        "lo": e.lo,
        "hi": e.hi,
        "tasks": len(pairs),
        "missing": len(a.success.keys() | b.success.keys()) - len(pairs),
        "higher": higher,
        "lower": lower,
        "p": p,
        "verdict": "ours" if e.lo > 0 and decided else "theirs" if e.hi < 0 and decided else "undecided",
    }


def side_of(path: Path) -> Side:
    """A result of a run folder, of files of episodes, or of a log of inspect_ai.

    Raises:
        RunError: it cannot be read, or says nothing by task.
        MissingExtra: a log, and inspect_ai is not installed.
    """
    if path.suffix == ".eval":
        protocol, scores = read_inspect_log(path)
        return Side(protocol, {task: fmean(values) if values else None for task, values in scores.items()})
    return _of_run(path) if (path / RUN_FILE).is_file() else _of_files(path)


def _of_run(path: Path) -> Side:
    recipe, record = load_run_experiment(path), read_record(path)
    if not isinstance(recipe, Recipe):
        raise RunError(f"{path} is a run of a {recipe.type_name()}; expected one of a language agent")
    rows = [row for row in record.learning if isinstance(row.get("measures"), Mapping)]
    if not rows:
        raise RunError(f"{path} has no evaluation by task yet")
    tasks = recipe.held_out()
    strategy = strategy_named(recipe, rows[-1].get("strategy"))
    values = rows[-1]["measures"]["success"]
    if len(values) != len(tasks):
        raise RunError(f"{path} was evaluated on {len(values)} tasks, and its recipe has {len(tasks)}")
    protocol = protocol_of(recipe, tasks, strategy, template_of_run(path, recipe))
    if strategy.name != rows[-1].get("strategy"):
        protocol |= {"strategy.name": rows[-1].get("strategy")}
    return Side(protocol, dict(zip(names_of(task.id for task in tasks), values, strict=True)))


def _of_files(path: Path) -> Side:
    found = by_place(judged_episodes(path))
    counted = {name: [float(t.success) for t in episodes if not t.stop.failed] for name, episodes in found.items()}
    success = {name: fmean(values) if values else None for name, values in counted.items()}
    return Side(_said(path, of_tasks([episodes[0].task for episodes in found.values()])), success)


def _said(path: Path, seen: Protocol) -> Protocol:
    """The protocol that stands beside files; where it is not of the tasks that are `seen` in them, with these."""
    file = (path if path.is_dir() else path.parent) / PROTOCOL
    if not file.is_file():
        return seen
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as e:
        raise RunError(f"{file} cannot be read: {e}") from e
    protocol = found.get("protocol") if isinstance(found, dict) else None
    if not isinstance(protocol, dict):
        raise RunError(f'{file}: expected {{"protocol": {{...}}, "episodes": {{...}}}}')
    return protocol if found.get("episodes") == seen else protocol | seen


def as_text(found: Mapping[str, Any]) -> str:
    """What `referee` found, in lines."""
    lines = []
    for name, (ours, theirs) in found["differs"].items():
        mark = ", accepted" if name in found["accepted"] else ""
        lines.append(f"differs: {name}: ours {brief(ours, PLAIN)}, theirs {brief(theirs, PLAIN)}{mark}")
    for name, who in found["unsaid"].items():
        whose = {"both": "neither side says it", "ours": "ours does not say it", "theirs": "theirs does not say it"}[
            who
        ]
        lines.append(f"unsaid: {name}: {whose}{', accepted' if name in found['accepted'] else ''}")
    if not found["comparable"]:
        n = len(lines) - len(found["accepted"])
        lines.append(f"not comparable: {n} setting{'s' * (n > 1)} of the protocol; there is no verdict")
        return "\n".join(lines)
    e = found["difference"]
    words = {"ours": "ours is higher", "theirs": "theirs is higher", "undecided": "undecided"}[e["verdict"]]
    lines.append("one protocol" if not found["accepted"] else "comparable, as far as what was accepted does not matter")
    test = "" if e["p"] is None else f", sign test p = {e['p']:.2g}"
    lines.append(
        f"success, ours - theirs: {e['mean']:+.3f}, 95 % {e['lo']:+.3f} to {e['hi']:+.3f}, over {e['tasks']} tasks "
        f"({e['higher']} higher, {e['lower']} lower{test}): {words}"
    )
    if e["missing"]:
        lines.append(f"{e['missing']} tasks have no outcome on a side and are left out")
    return "\n".join(lines)
