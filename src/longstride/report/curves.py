"""Learning curves of runs, as points that laws are fitted to and tables are made of.

What always holds: a curve has the run's evaluations of its agent, the start's among them, in order; what a run folder
lacks is named with what it has.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from statistics import fmean
from typing import Any

from longstride.core.errors import ConfigError, RunError, unknown
from longstride.report.rows import Record, Row, number, read_record, successes
from longstride.run.experiment import RUN_FILE

AMOUNTS = {
    "iteration": "iteration",
    "episodes": "total_episodes",
    "env_steps": "total_env_steps",
    "seconds": "seconds",
}
"""What a run has spent, by the key of its rows; `tokens` are added up, and all else is a measure."""
TOKENS, DISTANCE, ATTEMPTS = "tokens", "goal_distance", "attempts"
HALF = 0.5
"""Of success, until which it is counted what a goal distance costs."""

ERROR = "error"
"""The measure that falls where success rises."""


@dataclass(frozen=True)
class Curve:
    """The evaluations of a run."""

    folder: Path
    settings: dict[str, Any]
    """Of the recipe, by dotted key."""
    x: tuple[float, ...]
    y: tuple[float, ...]
    iterations: float = 0.0
    """Until its last evaluation."""


def run_folders(paths: Sequence[Path]) -> list[Path]:
    """The run folders among paths: a path that is none stands for those directly in it, such as a sweep's.

    Raises:
        RunError: a path is neither.
    """
    found = []
    for path in paths:
        inside = [path] if (path / RUN_FILE).is_file() else sorted(p.parent for p in path.glob(f"*/{RUN_FILE}"))
        if not inside:
            raise RunError(f"{path} is no run folder and has none in it; give what `longstride train` or `sweep` wrote")
        found += inside
    return found


def curve_of(folder: Path, x: str, y: str) -> Curve:
    """The learning curve of a run, or what each goal distance cost it.

    Args:
        folder: of the run.
        x: what was spent: `iteration`, `episodes`, `env_steps`, `tokens`, `seconds`, or a measure. `goal_distance`,
            where y is one of what is spent. Or `attempts`: how many at a task, in the run's last evaluation. Or a
            setting that is a number, such as `tasks.environments`: the run's last evaluation is a point at it.
        y: a measure; its mean over tasks. `error` is 1 - success. Beside `goal_distance`, what was spent until half of
            the held-out tasks at a distance were done, read between evaluations; distances of which half were done
            before training, and such as never came to it, are left out. Beside `attempts`, the measure that an
            evaluation has for several numbers of them: `pass` (whether one of so many is a success, with
            `evaluation.attempts`), or `within`, of those that follow one another (with `trial.episodes`).

    Raises:
        RunError: no such folder, or it has no evaluation with both.
    """
    record = read_record(folder)
    amounts, settings = {*AMOUNTS, TOKENS}, dict(flat(record.recipe))
    if x not in amounts and (at := number(settings, x)) is not None:
        points = [(at, value) for row in record.learning[-1:] if (value := measured(row, y)) is not None]
    elif x == DISTANCE and y in amounts:
        points = _costs(record, y)
    elif x == ATTEMPTS:
        points = _by_attempts(record, y)
    else:
        both = ((_spent(row, tokens, x), measured(row, y)) for row, tokens in _evaluations(record))
        points = [(a, b) for a, b in both if a is not None and b is not None]
    if not points and x == ATTEMPTS:
        raise RunError(
            f"{folder}: its last evaluation has no {y}@N: set evaluation.attempts for pass@N and take --y pass, or "
            "trial.episodes for within@N and take --y within"
        )
    if not points:
        known = sorted({name for row in record.learning for name in _names(row)})
        missing = next((m for m in (y, x) if m not in {*amounts, ERROR, *known}), None)
        why = unknown("measure", missing, known) if missing and known else "it has no evaluation with both"
        raise RunError(f"{folder}: {y} by {x}: {why}")
    xs, ys = zip(*points, strict=True)
    last = next((row for row in reversed(record.learning) if measured(row, y) is not None), {})
    return Curve(folder, settings, xs, ys, number(last, "iteration") or 0.0)


def cost_of(folder: Path, x: str, spent: str, measure: str, level: float) -> Curve:
    """What a run spent until a measure of its evaluations first reached a level, read between evaluations, by a
    setting: a curve of one point, at infinity where the level was never reached, or was before training.

    Args:
        folder: of the run.
        x: the setting, a number.
        spent: as `x` of `curve_of`, but no measure.
        measure: its mean over tasks.
        level: what it has to reach.

    Raises:
        RunError: no such folder, or it has no evaluation with both.
        ConfigError: no such setting, or it is no number.
    """
    if spent not in (*AMOUNTS, TOKENS):
        raise ConfigError(
            f"what a level costs is {', '.join((*AMOUNTS, TOKENS))} or a setting of --best; got {spent!r}"
        )
    curve = curve_of(folder, spent, measure)
    at = _number(curve, x)
    cost = _crossing(list(zip(curve.x, curve.y, strict=True)), level)
    return replace(curve, x=(at,), y=(cost or math.inf,))


def cheapest(curves: Sequence[Curve], best: Sequence[str], y: str = "") -> list[Curve]:
    """Of curves that `cost_of` made, at each x those of the combination of settings that costs least in the mean over
    its runs.

    Args:
        curves: seeds of every combination.
        best: the settings that are combined.
        y: one of `best`, whose value takes the place of the cost; empty: the cost.

    Raises:
        ConfigError: some run has no such setting, or y is no number.
        RunError: no combination came to the level in all its runs; its x is named.
    """
    found: list[Curve] = []
    for at in sorted({curve.x[0] for curve in curves}):
        combined: dict[tuple[Any, ...], list[Curve]] = defaultdict(list)
        for curve in curves:
            if curve.x[0] == at:
                combined[tuple(_setting(curve, key) for key in best)].append(curve)
        runs = min(combined.values(), key=lambda runs: fmean(run.y[0] for run in runs))
        if not math.isfinite(fmean(run.y[0] for run in runs)):
            raise RunError(
                f"at {at:g} training brought no combination to the level in all its runs; choose one between what they "
                "began with and what they came to, or train longer"
            )
        if y:
            runs = [replace(runs[0], y=(_number(runs[0], y),))]
        found += runs
    return found


def _setting(curve: Curve, key: str) -> str | int | float:
    """The value of a setting, as text where it is neither text nor a number."""
    if key not in curve.settings:
        raise ConfigError(f"{curve.folder}: {unknown('setting', key, curve.settings)}")
    value = curve.settings[key]
    return value if isinstance(value, str | int | float) else str(value)


def _number(curve: Curve, key: str) -> float:
    value = _setting(curve, key)
    if isinstance(value, str | bool):
        raise ConfigError(f"{curve.folder}: {key} is {value!r}, and a law takes numbers")
    return float(value)


def _evaluations(record: Record) -> Iterator[tuple[Row, float]]:
    """The evaluations of a run's agent, each with the tokens that were sampled until then."""
    tokens, learning = 0.0, {id(row) for row in record.learning}
    for row in record.rows:
        if row.get("kind") == "train":
            tokens += number(row, "summary", "sampled_tokens") or 0.0
            tokens += number(row, "summary", "judge_usage", "sampled") or 0.0
        if id(row) in learning:
            yield row, tokens


def _spent(row: Row, tokens: float, name: str) -> float | None:
    """What a run had spent by an evaluation, or a measure of it."""
    if name == TOKENS:
        return tokens
    return number(row, AMOUNTS[name]) if name in AMOUNTS else measured(row, name)


def _costs(record: Record, y: str) -> list[tuple[float, float]]:
    """What was spent until half of the tasks at a goal distance were done, by the distance."""
    curves: dict[float, list[tuple[float, float]]] = defaultdict(list)
    for row, tokens in _evaluations(record):
        for distance, success in successes(row, "by_distance").items():
            curves[float(distance)].append((_spent(row, tokens, y) or 0.0, success))
    found = {distance: _crossing(curves[distance]) for distance in sorted(curves)}
    return [(distance, spent) for distance, spent in found.items() if spent]


def _by_attempts(record: Record, y: str) -> list[tuple[float, float]]:
    """The measures `y@N` of the last evaluation by N; `pass@1` is `success`."""
    last = record.learning[-1] if record.learning else {}
    found = {} if y != "pass" else {1: measured(last, "success")}
    for name in last.get("measures") or {}:
        of, _, n = str(name).partition("@")
        if of == y and n.isdecimal():
            found[int(n)] = measured(last, name)
    points = [(float(n), value) for n, value in sorted(found.items()) if value is not None]
    return points if len(points) > 1 else []


def _crossing(curve: Sequence[tuple[float, float]], level: float = HALF) -> float:
    """Where a measure first reaches a level, on lines between evaluations; 0 where it never does, or did before
    training."""
    after = next((k for k, (_, reached) in enumerate(curve) if reached >= level), 0)
    if not after:
        return 0.0
    (x, low), (x_after, high) = curve[after - 1], curve[after]
    return x + (x_after - x) * (level - low) / (high - low)


def size_of(folder: Path) -> float:
    """Parameters of the model that a run trains.

    Raises:
        RunError: it keeps no whole model.
    """
    from safetensors import safe_open

    newest = max((folder / "checkpoints").glob("[0-9]*"), default=folder)
    count = 0
    for path in newest.glob("model*.safetensors"):
        with safe_open(path, "np") as weights:
            count += sum(prod(weights.get_slice(name).get_shape()) for name in weights.keys())  # noqa: SIM118
    if not count:
        raise RunError(f"{folder} keeps no model, so its size is not known; a law in size is for language agents")
    return float(count)


def measured(row: Row, name: str) -> float | None:
    """A measure of an evaluation: its mean over tasks, or what the summary has of that name; `error` is 1 - success."""
    if name == ERROR:
        return None if (success := measured(row, "success")) is None else 1 - success
    measures = row.get("measures")
    values = measures.get(name) if isinstance(measures, Mapping) else None
    if isinstance(values, list) and (there := [v for v in values if isinstance(v, int | float)]):
        return fmean(there)
    return number(row, "summary", name)


def by_setting(curves: Sequence[Curve], key: str) -> dict[Any, list[Curve]]:
    """Curves by the value of a setting, in order.

    Raises:
        ConfigError: some run has no such setting.
    """
    groups: dict[Any, list[Curve]] = {}
    for curve in curves:
        groups.setdefault(_setting(curve, key), []).append(curve)
    return dict(sorted(groups.items(), key=lambda item: (isinstance(item[0], str), item[0])))


def flat(data: Mapping[str, Any], before: str = "") -> Any:
    """The values of nested tables with dotted keys; those of a list of tables have their place in it as a key."""
    for key, value in data.items():
        if isinstance(value, list) and value and all(isinstance(of, Mapping) for of in value):
            value = {str(place): of for place, of in enumerate(value)}
        if isinstance(value, Mapping):
            yield from flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def _names(row: Row) -> list[str]:
    return [name for key in ("measures", "summary") for name in (row.get(key) or {}) if measured(row, name) is not None]
