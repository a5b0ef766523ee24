"""Runs side by side: what each came to, differences paired by task, and what differs in recipe, seed and code. Files of
episodes (`rollout.formats`) are compared like the evaluation of a run.

What always holds: a difference is between the last evaluations of two policies, task by task, and only where both runs
draw the same held-out tasks; a run that is unfinished or damaged is compared as far as it can be read. Runs that differ
in nothing but their seed are runs of one *method*; where one has several, methods are compared as `stats.reliable`
defines it, by the scores of tasks, or where these are all 0 or 1, by the share of a run: an interquartile mean of
zeros and ones is near 0 or 1, whatever their share. Beside that stands their difference paired by seed and task, over
the seeds that both have.
"""

import json
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from longstride.core.errors import ConfigError, RunError, unknown
from longstride.core.files import make_folder
from longstride.core.trajectory import Trajectory
from longstride.report.curves import flat, measured, run_folders
from longstride.report.figures import comparison
from longstride.report.html import STATIC, hash_of
from longstride.report.protocol import by_place, names_of
from longstride.report.rows import (
    DATA,
    MODULE,
    Record,
    Row,
    embed,
    interval,
    measure,
    number,
    read_record,
    short,
    thinned,
)
from longstride.report.tables import brief, table, table_html
from longstride.rollout.formats import read_episodes
from longstride.rollout.formats.reading import ENDS
from longstride.rollout.summary import HORIZONS, MEASURES, summarise
from longstride.run.evaluation import success_interval
from longstride.run.experiment import RUN_FILE, load_run_experiment
from longstride.run.recipe import Recipe
from longstride.stats import mean_interval, paired_difference, paired_difference_clustered
from longstride.stats.ordering import FEWEST
from longstride.stats.reliable import (
    interquartile_mean,
    performance_profile,
    probability_of_improvement,
    stratified_interval,
)

COMPARED = ("success", "reward", "length")
"""Measures that are shown, beside the one that methods are compared by; all others are in the data."""
SHOWN = 48
"""Characters of a value of a recipe."""
ALONG = 8
"""Evaluations that a row shows, at most."""
PROFILE = 21
"""Thresholds of a performance profile."""
DOCTYPE = b"<!doctype html"
"""What a page begins with."""
CONTROL = "control_recipe"
"""Type of the recipes whose test episodes begin and aim as their seed says."""


def compare(folders: Sequence[Path], by: str = "") -> dict[str, Any]:
    """Compares runs with the first of them, and methods by a measure: success where none is named, or the return where
    returns are all that was measured.

    Returns:
        `measure`: by which is compared; `runs`: of each `name`, `recipe`, `folder`, `iterations`, `episodes`,
        `env_steps`, `seconds`, `before`, `after` (the measure of the start and of the trained policy), `interval` of
        the latter, `cost` of its evaluation, its `horizons` (`goal_distance`, `budget`, `length`; None where it is not
        known), `curve` of evaluations (`value` is the measure); `differences` of each other run from the first: `run`,
        `against`, and by measure `mean`, `lo`, `hi` (None where each run has one number), on how many tasks it is
        `higher` and `lower`, of how many `tasks`, or a `note` in place of them; `recipe`: by dotted key what each run
        has, where they differ, or `type` alone where they are of different kinds; `code`: likewise, the version and
        commit that wrote each run;
        `methods` (where one has several runs): `name`, `runs`, `iqm` of the measure with `lo` and `hi`, its `profile`
        (shares of scores above each of `thresholds`), `improvement` over the first method with its `lo` and `hi`, and
        the `difference` from it, paired by seed and task: `mean`, `lo`, `hi` and `seeds` in common; or a `note`; all by
        task, but for the first three by run where a measure of tasks is 0 or 1.

    Raises:
        ConfigError: fewer than two runs, or one of them twice.
        RunError: a folder is missing, or what it says of its run is damaged (see `read_record`); no run has the
            measure.
    """
    if len(folders) < 2:
        raise ConfigError(f"compare needs two runs or more, got {len(folders)}")
    places = [folder.resolve() for folder in folders]
    if twice := next((f for k, f in enumerate(folders) if places[k] in places[:k]), None):
        raise ConfigError(f"{twice} is given twice; a run is compared with others")
    records = [_record(folder) for folder in folders]
    known = dict.fromkeys(name for record in records for name in _last(record))
    by = by or _chosen(records, known)
    if known and by not in known:
        raise RunError(unknown("measure", by, known))
    names = _names(folders)
    return {
        "runs": [_run(name, folder, r, by) for name, folder, r in zip(names, folders, records, strict=True)],
        "differences": [
            {"run": name, "against": names[0]} | _difference((folders[0], records[0]), (folder, record))
            for name, folder, record in zip(names[1:], folders[1:], records[1:], strict=True)
        ],
        "recipe": _recipes(records),
        "code": _differing([record.code for record in records]),
        "measure": by,
        "methods": _methods(records, by),
    }


def as_text(found: dict[str, Any]) -> str:
    """What `compare` found, as tables of plain text."""
    kinds = (_rows, _horizon_rows, _difference_rows, _method_rows)
    parts = [
        *(table(rows(found)) for rows in kinds),
        "\n".join(_notes(found)),
        table(_recipe_rows(found)) or _nothing_differs(found),
    ]
    return "\n\n".join(filter(None, parts))


def _last(record: Record) -> list[str]:
    """What the last evaluation of a run measured."""
    row = record.learning[-1] if record.learning else {}
    return [name for of in ("measures", "summary") for name in row.get(of) or () if _value(row, name) is not None]


def _chosen(records: Sequence[Record], known: Iterable[str]) -> str:
    """By what runs are compared where nobody says it."""
    if evaluated := [record for record in records if record.learning]:
        if all(record.counts_returns for record in evaluated):
            return "return"
        if "success" not in known:
            return next(iter(known), "success")
    return "success"


def _value(row: Row | None, name: str) -> float | None:
    """A measure of an evaluation, from its summary where that has it, else its mean over tasks."""
    if row is None:
        return None
    summary = row.get("summary")
    return measure(row, name) if isinstance(summary, Mapping) and name in summary else measured(row, name)


def write_comparison(folders: Sequence[Path], found: dict[str, Any], target: Path) -> Path:
    """Writes what `compare` found as one HTML file that refers to nothing outside itself."""
    names = [run["name"] for run in found["runs"]]
    records = dict(zip(names, map(_record, folders), strict=True))
    style, script = ((STATIC / name).read_text(encoding="utf-8") for name in ("report.css", "charts.js"))
    page = string.Template((STATIC / "compare.html").read_text(encoding="utf-8")).substitute(
        title=escape(_title(found)),
        summary=escape(_summary(found)),
        runs=table_html(_rows(found)) + table_html(_horizon_rows(found)),
        differences=table_html(_difference_rows(found))
        + table_html(_method_rows(found))
        + "".join(f"<p>{escape(note)}.</p>" for note in _notes(found)),
        recipes=table_html(_recipe_rows(found)) or f"<p>{_nothing_differs(found)}</p>",
        style=style,
        script=script,
        style_hash=hash_of(style),
        script_hash=hash_of(script),
        data=embed({"figures": comparison(records)}),
    )
    if target.exists():
        with target.open("rb") as file:
            if file.read(len(DOCTYPE)).lower() != DOCTYPE:
                raise RunError(f"{target} is there already, and is no page; give --html another place")
    make_folder(target.parent)
    target.write_text(page, encoding="utf-8", errors="replace", newline="\n")
    return target


def comparable(paths: Sequence[Path]) -> list[Path]:
    """What is compared, of paths: run folders, those in a folder of them, and files of episodes.

    Raises:
        RunError: a path is none of them.
    """
    return [found for path in paths for found in ([path] if _holds_episodes(path) else run_folders([path]))]


def _holds_episodes(path: Path) -> bool:
    if path.is_dir():
        runs = (path / RUN_FILE).is_file() or any(path.glob(f"*/{RUN_FILE}"))
        return not runs and any(file.suffix.lower() in ENDS for file in path.rglob("*"))
    return path.is_file()


def _record(path: Path) -> Record:
    return episodes_record(path) if _holds_episodes(path) else read_record(path)


def episodes_record(path: Path) -> Record:
    """Files of episodes, as the record of a run that was evaluated and not trained.

    Raises:
        RunError: they cannot be read, or do not say what came of an episode.
    """
    by_task = by_place(judged_episodes(path))
    played = {task: [t for t in episodes if not t.stop.failed] for task, episodes in by_task.items()}
    measures = {
        name: [
            fmean(values) if (values := [v for t in episodes if (v := of(t)) is not None]) else None
            for episodes in played.values()
        ]
        for name, of in MEASURES.items()
    }
    counted = [t for episodes in played.values() for t in episodes]
    row = {
        "kind": "eval",
        "iteration": 0,
        "policy": "agent",
        "strategy": "direct",
        "summary": summarise(t for episodes in by_task.values() for t in episodes),
        "interval": list(success_interval(counted)),
        "measures": measures,
    }
    return Record(path.resolve().name, rows=[row], tasks=list(by_task))


def judged_episodes(path: Path) -> Iterator[Trajectory]:
    """The episodes of files that say what came of each.

    Raises:
        RunError: they cannot be read, or one does not.
    """
    for found in read_episodes(path):
        if not found.judged:
            raise RunError(f"{found.place}: it does not say what came of the episode, so nothing can be compared")
        yield found.trajectory


def _tasks(folder: Path, record: Record) -> list[str]:
    """Names of the tasks of an evaluation, in order."""
    if record.tasks is not None:
        return record.tasks
    recipe = load_run_experiment(folder)
    return names_of(t.id for t in recipe.held_out()) if isinstance(recipe, Recipe) else []


def _by_task(measures: Mapping[str, list[Any]], tasks: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The values of measures by the ids of tasks."""
    return {name: dict(zip(tasks, values, strict=False)) for name, values in measures.items()}


def _names(folders: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that tell the runs apart."""
    paths = [folder.resolve().parts for folder in folders]
    for n in range(1, max(map(len, paths))):
        names = ["/".join(parts[-n:]) for parts in paths]
        if len(set(names)) == len(names):
            return names
    return [f"{folder} ({k})" for k, folder in enumerate(folders, 1)]


def _run(name: str, folder: Path, record: Record, by: str) -> dict[str, Any]:
    rows = [row for row in record.learning if _value(row, by) is not None]
    final = rows[-1] if rows else None
    first = next((row for row in rows if not number(row, "iteration")), None)
    last = None if final is first else final
    if last is None and record.trained_nothing:
        first, last = None, final
    largest = lambda key: max((number(r, key) or 0.0 for r in record.rows), default=0.0)  # noqa: E731
    curve = [
        {
            "iteration": int(number(row, "iteration") or 0),
            "env_steps": int(number(row, "total_env_steps") or 0),
            "value": _value(row, by),
            "interval": _interval(row, by),
        }
        for row in record.learning
    ]
    return {
        "name": name,
        "recipe": record.recipe.get("name"),
        "folder": str(folder),
        "iterations": record.last_iteration,
        "episodes": int(largest("total_episodes")),
        "env_steps": int(largest("total_env_steps")),
        "seconds": largest("seconds"),
        "before": _value(first, by),
        "after": _value(last, by),
        "interval": _interval(final, by) if final else None,
        "cost": number(final, "summary", "usage", "cost"),
        "horizons": {name: measure(final, name) for name in HORIZONS},
        "curve": curve,
    }


def _interval(row: Row, by: str) -> tuple[float, float] | None:
    """The interval of a measure of an evaluation, over tasks; None where it is one number."""
    if by == "success" and (ends := interval(row)):
        return ends
    found = row.get("measures")
    values = [v for v in (found.get(by) or () if isinstance(found, Mapping) else ()) if v is not None]
    return mean_interval(values, seed=0) if len(values) > 1 else None


def _difference(reference: tuple[Path, Record], other: tuple[Path, Record]) -> dict[str, Any]:
    """The last evaluation of one run less that of the reference, by measure."""
    records = reference[1], other[1]
    a, b = map(_measures, records)
    if a is None or b is None:
        return {"note": "no evaluation by task in both"}
    if any(record.tasks is not None for record in records):
        a, b = _by_task(a, _tasks(*reference)), _by_task(b, _tasks(*other))
        if not (shared := [task for task in a["success"] if task in b["success"]]):
            return {"note": "no task in common, so nothing can be paired"}
        a, b = ({name: [of.get(task) for task in shared] for name, of in side.items()} for side in (a, b))
    elif records[0].recipe.get("tasks") != records[1].recipe.get("tasks"):
        return {"note": "other held-out tasks, so nothing can be paired"}
    elif changed := _changed_tasks(*records):
        return {"note": f"tasks by another {changed}, so nothing can be paired"}
    elif records[0].recipe.get("type") == CONTROL and records[0].recipe.get("seed") != records[1].recipe.get("seed"):
        return {"note": "other starts and goals, which go by the seed, so nothing can be paired"}
    out: dict[str, Any] = {}
    for name in a:
        pairs = [(y, x) for x, y in zip(a[name], b.get(name, ()), strict=False) if None not in (x, y)]
        if pairs:
            theirs, ours = ([float(v) for v in side] for side in zip(*pairs, strict=True))
            e = paired_difference(theirs, ours, seed=0) if len(pairs) > 1 else None
            changed = [t - o for t, o in zip(theirs, ours, strict=True)]
            higher, lower = sum(d > 0 for d in changed), sum(d < 0 for d in changed)
            ends = {"mean": e.mean, "lo": e.lo, "hi": e.hi} if e else {"mean": changed[0], "lo": None, "hi": None}
            out[name] = ends | {"higher": higher, "lower": lower, "tasks": len(pairs)}
    return out or {"note": "no measure in common"}


def _changed_tasks(a: Record, b: Record) -> str | None:
    """What the tasks of both runs are made by and was another file in each: a module of the user's own, or data."""
    of = str(a.recipe.get("tasks"))
    for key in (key for key, file in a.code.items() if file != b.code.get(key, file)):
        if key.startswith(MODULE) and f"{(name := key.removeprefix(MODULE))}:" in of:
            return f"file of the module {name}"
        if key.startswith(f"{DATA}tasks."):
            return f"file in {key.removeprefix(DATA)}"
    return None


def _measures(record: Record) -> Mapping[str, list[Any]] | None:
    """By measure the values of the tasks in the last evaluation of the policy."""
    rows: list[Row] = [r for r in record.learning if isinstance(r.get("measures"), Mapping)]
    return rows[-1]["measures"] if rows else None


def _recipes(records: Sequence[Record]) -> dict[str, list[Any]]:
    """The settings in which runs differ; of runs of different kinds, which have few in common, their kinds alone."""
    kinds = [record.recipe.get("type", "recipe") for record in records if record.recipe]
    if len(set(kinds)) > 1:
        return {"type": [record.recipe.get("type", "recipe") if record.recipe else None for record in records]}
    return _differing([{k: v for k, v in flat(record.recipe) if k != "name"} for record in records])


def _differing(data: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """By key what each has, where those differ that have anything."""
    some = [d for d in data if d]
    values = {key: [d.get(key) for d in some] for key in dict.fromkeys(key for d in some for key in d)}
    differing = [key for key, found in values.items() if any(value != found[0] for value in found[1:])]
    return {key: [d.get(key) for d in data] for key in differing}


def _methods(records: Sequence[Record], by: str) -> list[dict[str, Any]]:
    """Runs that differ in their seed alone, taken together; files of episodes, which have no recipe, are none."""
    groups: dict[str, list[Record]] = {}
    for record in (r for r in records if r.tasks is None):
        groups.setdefault(json.dumps({**record.recipe, "seed": 0}, sort_keys=True), []).append(record)
    if all(len(runs) == 1 for runs in groups.values()):
        return []
    if any(len({record.recipe.get("seed") for record in runs}) < len(runs) for runs in groups.values()):
        return [{"note": "methods are not compared: two runs are of one recipe and one seed, which is one run"}]
    names = _method_names([runs[0] for runs in groups.values()])
    scores: list[list[Any]] = [[(_measures(record) or {}).get(by) for record in runs] for runs in groups.values()]
    tasks = {
        (json.dumps(runs[0].recipe.get("tasks"), sort_keys=True), len(values))
        for runs, of in zip(groups.values(), scores, strict=True)
        for values in of
        if values
    }
    if len(tasks) != 1 or any(not values or None in values for of in scores for values in of):
        return [{"note": f"methods are not compared: not every run has {by} for the same tasks"}]
    by_seed = [
        {record.recipe.get("seed"): values for record, values in zip(runs, of, strict=True)}
        for runs, of in zip(groups.values(), scores, strict=True)
    ]
    if all(value in (0, 1) for of in scores for values in of for value in values):
        scores = [[[fmean(values)] for values in of] for of in scores]
    all_of = np.concatenate([np.ravel(of) for of in scores])
    thresholds = np.linspace(all_of.min(), all_of.max(), PROFILE).tolist()
    out = []
    for name, of in zip(names, scores, strict=True):
        e = stratified_interval(interquartile_mean, of, seed=0)
        method = {"name": name, "runs": len(of), "iqm": e.mean, "lo": e.lo, "hi": e.hi}
        method |= {"thresholds": thresholds, "profile": performance_profile(of, thresholds)}
        if out:
            e = stratified_interval(probability_of_improvement, of, scores[0], seed=0)
            method["improvement"] = {"mean": e.mean, "lo": e.lo, "hi": e.hi}
            method["difference"] = _of_methods(by_seed[len(out)], by_seed[0])
        out.append(method)
    return out


def _of_methods(ours: Mapping[Any, Sequence[float]], first: Mapping[Any, Sequence[float]]) -> dict[str, Any]:
    """The difference of two methods, whose values of tasks are given by seed."""
    seeds = [seed for seed in first if seed in ours]
    if len(seeds) < 2:
        return {"seeds": len(seeds), "note": "fewer than two seeds in common, so nothing can be paired"}
    e = paired_difference_clustered([ours[seed] for seed in seeds], [first[seed] for seed in seeds], seed=0)
    return {"mean": e.mean, "lo": e.lo, "hi": e.hi, "seeds": len(seeds)}


def _method_names(records: Sequence[Record]) -> list[str]:
    """Names for methods: those of their recipes, with the settings in which recipes of one name differ; these alone
    where all recipes have one name."""
    recipes = [str(record.recipe.get("name")) for record in records]
    names = []
    for k, recipe in enumerate(recipes):
        alike = [i for i, name in enumerate(recipes) if name == recipe]
        differing = _recipes([records[i] for i in alike])
        place = alike.index(k)
        settings = ", ".join(f"{key}={brief(v[place], SHOWN)}" for key, v in differing.items() if key != "seed")
        names.append(settings if settings and len(alike) == len(recipes) else f"{recipe} {settings}".rstrip())
    return names


def _rows(found: dict[str, Any]) -> list[list[str]]:
    by = found["measure"]
    rows = [["run", "recipe", "iterations", "env steps", "minutes", f"{by} before", "after", "95 %", "along the way"]]
    paid = any(run["cost"] for run in found["runs"])
    rows[0] += ["cost"] * paid
    for run in found["runs"]:
        ends = run["interval"]
        rows.append(
            [
                run["name"],
                run["recipe"] or "-",
                str(run["iterations"]),
                short(run["env_steps"]),
                f"{run['seconds'] / 60:.1f}",
                _share(run["before"]),
                _share(run["after"]),
                f"{_share(ends[0])} to {_share(ends[1])}" if ends else "-",
                " ".join(_share(point["value"]) for point in thinned(run["curve"], ALONG)),
                *[f"{run['cost'] or 0:.4g}"] * paid,
            ]
        )
    return rows


def _horizon_rows(found: dict[str, Any]) -> list[list[str]]:
    """Goal distance, budget and effective horizon of the newest evaluation of each run."""
    rows = [["run", *HORIZONS.values()]]
    if all(v is None for run in found["runs"] for v in run["horizons"].values()):
        return rows  # of problems without episodes
    for run in found["runs"]:
        rows.append([run["name"], *("-" if v is None else f"{v:.1f}" for v in run["horizons"].values())])
    return rows


def _difference_rows(found: dict[str, Any]) -> list[list[str]]:
    rows = [["difference", "measure", "mean", "95 %", "tasks higher", "lower", "of"]]
    for d in found["differences"]:
        pair = f"{d['run']} - {d['against']}"
        for name in dict.fromkeys((*COMPARED, found["measure"])):
            if isinstance(e := d.get(name), Mapping):
                ends = f"{e['lo']:+.3f} to {e['hi']:+.3f}" if e["lo"] is not None else "-"
                rows.append(
                    [
                        pair,
                        HORIZONS.get(name, name),
                        f"{e['mean']:+.3f}",
                        ends,
                        str(e["higher"]),
                        str(e["lower"]),
                        str(e["tasks"]),
                    ]
                )
    return rows


def _recipe_rows(found: dict[str, Any]) -> list[list[str]]:
    names = [run["name"] for run in found["runs"]]
    differing = found["recipe"] | {f"code: {key}": values for key, values in found["code"].items()}
    return [
        ["differs in", *names],
        *([key, *(brief(value, SHOWN) for value in values)] for key, values in differing.items()),
    ]


def _nothing_differs(found: dict[str, Any]) -> str:
    """In place of a table without rows."""
    several = sum(bool(run["recipe"]) for run in found["runs"]) > 1
    return "The recipes are the same." if several else "Files of episodes have no recipe to compare."


def _method_rows(found: dict[str, Any]) -> list[list[str]]:
    rows = [["method", "runs", f"IQM of {found['measure']}", "95 %", "less the first, paired", "95 %"]]
    rows[0] += ["better than the first", "95 %"]
    for m in found["methods"]:
        if "note" not in m:
            chance, e = m.get("improvement"), m.get("difference", {})
            paired = [f"{e['mean']:+.3f}", f"{e['lo']:+.3f} to {e['hi']:+.3f}"] if "mean" in e else ["-", "-"]
            rows.append(
                [
                    m["name"],
                    str(m["runs"]),
                    f"{m['iqm']:.3f}",
                    f"{m['lo']:.3f} to {m['hi']:.3f}" if m["runs"] > 1 else "-",
                    *paired,
                    *([f"{chance['mean']:.2f}", f"{chance['lo']:.2f} to {chance['hi']:.2f}"] if chance else ["-", "-"]),
                ]
            )
    return rows


def _notes(found: dict[str, Any]) -> list[str]:
    """What the tables do not say: why some runs have no differences, and what decides nothing."""
    said = [f"{d['run']} - {d['against']}: {d['note']}" for d in found["differences"] if "note" in d]
    said += [m["note"] for m in found["methods"] if "note" in m]
    paired = [(m["name"], m["difference"]) for m in found["methods"] if "difference" in m]
    said += [f"{name}, less the first: {d['note']}" for name, d in paired if "note" in d]
    if few := sorted({d["seeds"] for _, d in paired if 1 < d["seeds"] < FEWEST}):
        said.append(f"methods have {' or '.join(map(str, few))} seeds in common: fewer than {FEWEST} decide nothing")
    if kinds := found["recipe"].get("type"):
        named = ", ".join(dict.fromkeys(kind for kind in kinds if kind))
        said.append(f"the runs are of different kinds ({named}), so their settings are not compared")
    return said


def _title(found: dict[str, Any]) -> str:
    names = [m["name"] for m in found["methods"] if "name" in m] or [run["name"] for run in found["runs"]]
    return " and ".join(names) if len(names) == 2 else f"{len(found['runs'])} runs"


def _summary(found: dict[str, Any]) -> str:
    """One sentence for each difference: of methods, where runs make some, else of runs."""
    by, methods = found["measure"], [m for m in found["methods"] if "name" in m]
    if len(methods) == 1:
        (m,) = methods
        ends = f"95% interval {m['lo']:.3f} to {m['hi']:.3f}"
        return f"{m['name']} over {m['runs']} runs: IQM of {by} {m['iqm']:.3f}, {ends}."
    if methods:
        pairs = [(m["name"], m["difference"], f"{m['difference']['seeds']} seeds") for m in methods[1:]]
    else:
        nothing = {"note": f"{by} was not measured by task"}
        of = [(d["run"], d if "note" in d else d.get(by, nothing)) for d in found["differences"]]
        pairs = [(name, e, f"{e.get('tasks')} tasks") for name, e in of]
    said = [f"{name}: {e.get('note') or _told(e, by, over)}" for name, e, over in pairs]
    return f"Against {(methods or found['runs'])[0]['name']}, " + "; ".join(said) + "."


def _told(e: Mapping[str, Any], by: str, over: str) -> str:
    """A difference in words; a share in percentage points."""
    of, shown = (f"points of {by}", lambda x: f"{100 * x:+.0f}") if by == "success" else (by, lambda x: f"{x:+.4g}")
    text = f"{shown(e['mean'])} {of}"
    return text if e["lo"] is None else f"{text} on the same {over}, 95% interval {shown(e['lo'])} to {shown(e['hi'])}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}" if abs(value) <= 1 else f"{value:.4g}"
