"""Laws fitted to runs, and what a budget is best spent on.

What always holds: a kept fit has its points, so whatever is asked of it later is computed from these anew.
"""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from longstride.core.component import build
from longstride.core.errors import ConfigError, RunError
from longstride.core.files import make_folder, write_atomically
from longstride.core.provenance import commit
from longstride.core.sealed import dumps
from longstride.report.curves import (
    DISTANCE,
    ERROR,
    Curve,
    by_setting,
    cheapest,
    cost_of,
    curve_of,
    run_folders,
    size_of,
)
from longstride.report.tables import table
from longstride.scaling import Fit, FitError, Frontier, Geometric, Law, MixedGeometric, fit, plateau, split

COVERAGE = Geometric, MixedGeometric
"""Laws of attempts."""
ALL = "all"
"""The group of runs that are not told apart."""


def fit_runs(
    paths: Sequence[Path],
    law: Law,
    x: str,
    y: str,
    by: str = "",
    until: float = np.inf,
    since: float = 0.0,
    rivals: Sequence[Law] = (),
    gain: float = 0.0,
    sizes_until: float = np.inf,
    reach: tuple[str, float] | None = None,
    best: Sequence[str] = (),
) -> dict[str, Any]:
    """Fits a law to the learning curves of runs.

    Args:
        paths: run folders, or folders of them.
        law: of y by x, or by the model's parameters and x.
        x: what was spent, or `goal_distance`, or `attempts` (see `report.curves.curve_of`).
        y: a measure.
        by: a setting by which runs are told apart, each with a fit of its own; seeds are fitted together.
        until: points beyond it are held out, and compared with what was predicted.
        since: points before it are left out, as a run's first steps often follow no law.
        rivals: other laws, which are fitted to the same points and held to the same that were held out.
        gain: of a law of coverage, what one more attempt has to add; 0 asks for no plateau.
        sizes_until: runs of models of more parameters are held out.
        reach: a measure and a level: x is then a setting, and y what was spent until the level was reached
            (`report.curves.cost_of`).
        best: settings of which, at each x, the combination counts that costs least; y may be one of them.

    Returns:
        `x`, `y`, `by`; `until`, `sizes_until` (where they are finite), `since`, `gain`, `reach` and `best` (where they
        are set);
        `commit`; and `groups`, of each `setting`, `runs`, `points` [x, y] or [parameters, x, y], `run_of` each point,
        `fit` (see `Fit.as_data`), `spent` an iteration; `held_out`: as `points`, predicted, lo, hi, with the mean
        distance of what was predicted, `error`, and that of rivals by name, `rivals`; `plateau`: attempts after which
        one more adds less than the gain, and the ends of their interval.

    Raises:
        RunError: no runs, or without these measures.
        ConfigError: no such setting, or rivals and nothing held out.
        FitError: too few points; the group is named.
    """
    if rivals and not np.isfinite(min(until, sizes_until)):
        raise ConfigError("rivals are held to points that no law has seen: name a place beyond which they are, --until")
    if gain and not isinstance(law, COVERAGE):
        raise ConfigError(f"attempts add to coverage, and {law.type_name()} is no law of it: take geometric for --gain")
    if best and reach is None:
        raise ConfigError("the best settings are those that reach a level for least: name it, --reach MEASURE=LEVEL")
    if reach is None:
        curves = [curve_of(folder, x, y) for folder in run_folders(paths)]
    else:
        spent = "env_steps" if y in best else y
        curves = [cost_of(folder, x, spent, *reach) for folder in run_folders(paths)]
    parts = by_setting(curves, by) if by else {ALL: curves}
    if reach is not None:
        parts = {setting: cheapest(some, best, y if y in best else "") for setting, some in parts.items()}
    seen = Seen(until, since, sizes_until)
    groups = [_group(law, setting, some, seen, rivals, by) for setting, some in parts.items()]
    for group in groups if gain else ():
        group["plateau"] = list(plateau(fitted(group), gain))
    limits = (
        ({"gain": gain} if gain else {})
        | ({"until": until} if np.isfinite(until) else {})
        | ({"since": since} if since else {})
        | ({"sizes_until": sizes_until} if np.isfinite(sizes_until) else {})
        | ({"reach": list(reach)} if reach else {})
        | ({"best": list(best)} if best else {})
    )
    return {"x": x, "y": y, "by": by, **limits, "groups": groups, "commit": commit()}


class Seen(NamedTuple):
    """What of runs a law sees; see `fit_runs`."""

    until: float = np.inf
    since: float = 0.0
    sizes_until: float = np.inf

    def part(self, law: Law, curves: Sequence[Curve]) -> tuple[np.ndarray, np.ndarray]:
        """The points that are seen, and those that are held out, as `points_of` has them."""
        points = points_of(law, curves, self.since)
        early = points[:, -2] <= self.until
        if np.isfinite(self.sizes_until):
            small = np.array([size_of(curve.folder) <= self.sizes_until for curve in curves])
            early &= small[points[:, 0].astype(int)]
        return points[early], points[~early]


def _group(
    law: Law, setting: Any, curves: Sequence[Curve], limits: Seen, rivals: Sequence[Law], by: str
) -> dict[str, Any]:
    seen, later = limits.part(law, curves)
    named = f"{by}={setting}" if by else setting
    found = fit_curves(law, named, seen)
    out = {
        "setting": setting,
        "runs": [str(curve.folder) for curve in curves],
        "points": seen[:, 1:].tolist(),
        "run_of": seen[:, 0].astype(int).tolist(),
        "fit": found.as_data(),
        "spent": float(np.mean([curve.x[-1] / max(curve.iterations, 1) for curve in curves])),
    }
    if len(later):
        held = held_out(found, later)
        out |= {"held_out": held.tolist(), "error": error_of(held)}
        if rivals:
            out["rivals"] = {rival.type_name(): _error(rival, named, curves, limits) for rival in rivals}
    return out


def _error(rival: Law, setting: Any, curves: Sequence[Curve], limits: Seen) -> float:
    seen, later = limits.part(rival, curves)
    return error_of(held_out(fit_curves(rival, f"{setting}, {rival.type_name()}", seen), later))


def points_of(law: Law, curves: Sequence[Curve], since: float = 0.0) -> np.ndarray:
    """[n, inputs + 2] of curves: which of them, what the law takes, and y; where something was spent, from `since`.

    Raises:
        RunError: a run keeps no model whose size the law takes.
    """
    sizes = [[size_of(curve.folder)] if law.inputs > 1 else [] for curve in curves]
    return np.array(
        [
            (k, *sizes[k], a, b)
            for k, curve in enumerate(curves)
            for a, b in zip(curve.x, curve.y, strict=True)
            if a > 0 and a >= since
        ]
    ).reshape(-1, law.inputs + 2)


def fit_curves(law: Law, setting: Any, seen: np.ndarray) -> Fit:
    """A law fitted to points of runs, as `points_of` has them.

    Raises:
        FitError: too few; the setting is named.
    """
    try:
        return fit(law, _x(seen[:, 1:]), seen[:, -1], runs=seen[:, 0])
    except FitError as e:
        raise FitError(f"{setting}: {e}") from e


def held_out(found: Fit, later: np.ndarray) -> np.ndarray:
    """[m, inputs + 4] of points that a fit has not seen: at each x the mean of y over runs, and what was predicted for
    a run there, with its band."""
    came = means_at(later)
    return np.column_stack([came, *found.predict(_x(came), deviations=1)])


def means_at(points: np.ndarray) -> np.ndarray:
    """[m, inputs + 1] the mean of y over runs at each x of points, as `points_of` has them."""
    at, which = np.unique(points[:, 1:-1], axis=0, return_inverse=True)
    return np.column_stack([at, np.bincount(which.ravel(), points[:, -1]) / np.bincount(which.ravel())])


def error_of(held: np.ndarray) -> float:
    """The mean distance of what was predicted from what came, over rows of `held_out`."""
    return float(np.abs(held[:, -4] - held[:, -3]).mean())


def _x(points: np.ndarray) -> np.ndarray:
    """What a law takes of points [n, inputs + 1]."""
    return points[:, :-1] if points.shape[1] > 2 else points[:, 0]


def fitted(group: dict[str, Any]) -> Fit:
    """The fit of a group of what `fit_runs` found, computed from its points."""
    points = np.array(group["points"])
    return fit(_law(group), _x(points), points[:, -1], runs=group.get("run_of"))


def _law(group: dict[str, Any]) -> Law:
    return build(Law, group["fit"]["law"])


def keep(found: dict[str, Any], path: Path) -> Path:
    """Writes what `fit_runs` found as JSON, and beside it a figure where matplotlib is installed.

    Returns:
        The figure, or the JSON file where there is none.
    """
    if path.is_dir():
        raise ConfigError(f"{path} is a folder; expected the name of a file for the fit")
    make_folder(path.parent)
    write_atomically(path, dumps(found, indent=1) + "\n")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return path
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for group in found["groups"]:
        points, held, whole = np.array(group["points"]), np.array(group.get("held_out", [])), fitted(group)
        name = f"{found['by'] or found['y']} {group['setting']}"
        known = [*points[:, 0], *(row[0] for row in held)]
        for size in np.unique(known) if whole.law.inputs > 1 else [None]:
            own, later = (of if size is None or not len(of) else of[of[:, 0] == size, 1:] for of in (points, held))
            shown = [*own[:, 0], *(row[0] for row in later)]
            at = np.geomspace(min(shown), max(shown) * 1.5, 200)
            band = whole.predict(at if size is None else np.column_stack([np.full(200, size), at]))
            color = axes.plot(at, band.mean, label=name if size is None else f"{size:,.0f} parameters")[0].get_color()
            axes.fill_between(at, band.lo, band.hi, color=color, alpha=0.2, linewidth=0)
            axes.plot(own[:, 0], own[:, 1], ".", color=color)
            axes.plot([row[0] for row in later], [row[1] for row in later], "x", color=color)
    scale = "log" if all(_law(group).logarithmic for group in found["groups"]) else "linear"
    axes.set(xscale="log", yscale=scale, xlabel=found["x"].replace("_", " "), ylabel=found["y"].replace("_", " "))
    axes.legend()
    figure.savefig(path.with_suffix(".svg"), format="svg", metadata={"Date": None})
    return path.with_suffix(".svg")


def load_fits(path: Path) -> dict[str, Any]:
    """What `keep` wrote.

    Raises:
        RunError: it cannot be read, or is something else.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not all({"fit", "points", "setting", "spent"} <= group.keys() for group in found["groups"]):
            raise KeyError("fit, points, setting or spent")
        if not {"x", "y", "by"} <= found.keys():
            raise KeyError("x, y or by")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
        raise RunError(
            f"{path} is no fit: {type(e).__name__}: {e}; give a file that `longstride fit --out` wrote"
        ) from e
    return found


def allocate(found: dict[str, Any], budget: float) -> dict[str, Any]:
    """What a budget is best spent on, by the fits of several settings.

    Laws of coverage by attempts share the budget out: attempts a task, for each kind of task, by what each adds. All
    others choose one setting for the whole budget, in the units of x.

    Returns:
        `budget`, `choices` (of each `setting`: `predicted`, `lo`, `hi`, and `iterations` that the budget buys; or
        `attempts` in their place), best first, and `best`, with `clear`: whether its band lies above the next one's
        prediction. Where settings are numbers, `frontier`: from which budgets on which is best, between the smallest
        that was measured and this one, and, where it is not one alone, `rule`: which number that comes to at this
        budget, with an interval (`scaling.Frontier.rule`).

    Raises:
        ConfigError: one setting alone, no budget, or a fit of what distances or levels cost, or of errors.
        FitError: a budget of attempts that is too small for one at each task of any kind.
    """
    if found["x"] == DISTANCE or found.get("reach"):
        raise ConfigError("what distances or levels cost says nothing of a budget; fit a measure by what is spent")
    if len({str(group["setting"]) for group in found["groups"]}) < 2:
        raise ConfigError(f"there is nothing to choose between: fit runs `--by` a setting, got {found['by'] or 'none'}")
    if any(_law(group).inputs > 1 for group in found["groups"]):
        raise ConfigError("a law in the model's size says nothing of a budget alone; fit a law of one amount")
    if found["y"] == ERROR:
        raise ConfigError("a budget goes to what comes to most, and an error is to be small: fit --y success")
    if not 0 < budget < math.inf:
        raise ConfigError(f"--budget is a positive number, got {budget:g}")
    groups = {str(group["setting"]): (group, fitted(group)) for group in found["groups"]}
    if all(isinstance(f.law, COVERAGE) for _, f in groups.values()):
        shared = split({name: f for name, (_, f) in groups.items()}, int(budget))
        choices = [
            {"setting": name, "attempts": shared[name]} | _predicted(f, shared[name]) for name, (_, f) in groups.items()
        ]
        return {"budget": budget, "choices": choices}
    if "." in found["x"] or found["x"] == "attempts":  # a setting is not spent, nor are attempts by other laws
        raise ConfigError(
            f"a budget is shared out by what training spends, and the fit is by {found['x']!r}; fit --x episodes, "
            "env_steps, tokens or seconds, or --x attempts with a law of coverage"
        )
    choices = [
        {"setting": group["setting"], "iterations": int(budget // group["spent"])} | _predicted(f, budget)
        for group, f in groups.values()
    ]
    choices.sort(key=lambda c: -c["predicted"])
    clear = choices[0]["lo"] > choices[1]["predicted"]
    found = {"budget": budget, "choices": choices, "best": choices[0]["setting"], "clear": clear}
    return found | _frontier([(group["setting"], f) for group, f in groups.values()], budget)


def _frontier(fits: Sequence[tuple[Any, Fit]], budget: float) -> dict[str, Any]:
    """`frontier` and `rule` of what `allocate` found; nothing where settings are no numbers, or nothing was measured
    below the budget."""
    least = min(f.x.min() for _, f in fits)
    if least >= budget or any(isinstance(s, bool) or not isinstance(s, int | float) or s <= 0 for s, _ in fits):
        return {}
    envelope = Frontier({float(setting): f for setting, f in fits})
    steps = envelope.steps(np.geomspace(least, budget, 200))
    if len(steps) < 2:
        return {"frontier": steps}
    band = envelope.rule(least, budget).predict([budget], deviations=1)
    return {"frontier": steps, "rule": [float(v[0]) for v in band]}


def _predicted(found: Fit, amount: float) -> dict[str, Any]:
    if not amount:
        return {"predicted": 0.0, "lo": 0.0, "hi": 0.0, "doubts": []}
    mean, lo, hi = (float(v[0]) for v in found.predict([amount]))
    return {"predicted": mean, "lo": lo, "hi": hi, "doubts": list(found.doubts)}


def fits_as_text(found: dict[str, Any]) -> str:
    """What `fit_runs` found, as tables of plain text."""
    names = list(found["groups"][0]["fit"]["values"])
    rows = [[found["by"] or "runs", "points", "R2", "correlated", *names]]
    for group in found["groups"]:
        values, ends = group["fit"]["values"], group["fit"]["intervals"]
        cells = [f"{values[n]:.4g} [{ends[n][0]:.3g}, {ends[n][1]:.3g}]" for n in names]
        quality = [f"{group['fit']['r_squared']:.3f}", f"{group['fit']['correlation']:.2f}"]
        rows.append([str(group["setting"]), str(group["fit"]["points"]), *quality, *cells])
    held = [["held out", found["x"], "measured", "predicted", "95 %", "inside"]]
    for group in found["groups"]:
        held += [
            [
                " ".join([str(group["setting"]), *(f"{s:,.0f}" for s in size)]),
                f"{x:.4g}",
                f"{real:.3f}",
                f"{mean:.3f}",
                f"{lo:.3f} to {hi:.3f}",
                "yes" if lo <= real <= hi else "no",
            ]
            for *size, x, real, mean, lo, hi in group.get("held_out", ())
        ]
    errors = [["mean error", *dict.fromkeys(name for g in found["groups"] for name in _errors(g))]]
    errors += [[str(g["setting"]), *(f"{v:.4f}" for v in of.values())] for g in found["groups"] if (of := _errors(g))]
    flat = [["plateau", f"attempts until one more adds less than {found.get('gain', 0):g}", "95 %"]]
    flat += [
        [str(g["setting"]), str(n), f"{lo} to {hi}"]
        for g in found["groups"]
        if "plateau" in g
        for n, lo, hi in [g["plateau"]]
    ]
    return "\n\n".join(table(of) for of in (rows, held, errors, flat) if len(of) > 1)


def _errors(group: dict[str, Any]) -> dict[str, float]:
    """By law, the mean distance from what was held out; empty where nothing was, or there are no rivals."""
    if not group.get("rivals"):
        return {}
    return {group["fit"]["law"]["type"]: group["error"], **group["rivals"]}


def choices_as_text(found: dict[str, Any]) -> str:
    """What `allocate` found, as a table and a sentence."""
    what = "iterations" if "best" in found else "attempts"
    rows = [["setting", what, "predicted", "95 %"]]
    rows += [
        [str(c["setting"]), str(c[what]), f"{c['predicted']:.3f}", f"{c['lo']:.3f} to {c['hi']:.3f}"]
        for c in found["choices"]
    ]
    if "best" not in found:
        return table(rows)
    said = f"best: {found['best']}" + ("" if found["clear"] else ", though the next one may be as good")
    if steps := found.get("frontier"):
        said += "\nbest by budget: " + ", then ".join(f"{n:g} from {at:.4g}" for at, n in steps)
    if "rule" in found:
        best, lo, hi = found["rule"]
        said += f"\nas a rule: {best:.3g} at this budget (95 % {lo:.3g} to {hi:.3g})"
    return f"{table(rows)}\n\n{said}"
