"""Runs side by side: what each came to, differences paired by task, and what differs in their recipes.

What always holds: a difference is between the last evaluations of two policies, task by task, and only where both runs
draw the same held-out tasks; a run that is unfinished or damaged is compared as far as it can be read.
"""

import json
import string
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from longstride.core.errors import ConfigError
from longstride.report.figures import comparison
from longstride.report.html import STATIC, hash_of
from longstride.report.rows import Record, Row, embed, interval, measure, number, read_record, short
from longstride.stats import paired_difference

COMPARED = ("success", "reward", "length")
"""Measures that are shown; all others are in the data."""
SHOWN = 48
"""Characters of a value of a recipe."""
SAME = "The recipes are the same."


def compare(folders: Sequence[Path]) -> dict[str, Any]:
    """Compares runs with the first of them.

    Returns:
        `runs`: of each `name`, `recipe`, `folder`, `iterations`, `episodes`, `env_steps`, `seconds`, `before`, `after`
        (success of the start and of the trained policy), `interval` of the latter, `curve` of evaluations;
        `differences` of each other run from the first: `run`, `against`, and by measure `mean`, `lo`, `hi`, on how many
        tasks it is `higher` and `lower`, of how many `tasks`, or a `note` in place of them; `recipe`: by dotted key
        what each run has, where they differ.

    Raises:
        ConfigError: fewer than two runs.
        RunError: a folder is missing.
    """
    if len(folders) < 2:
        raise ConfigError(f"compare needs two runs or more, got {len(folders)}")
    records = [read_record(folder) for folder in folders]
    names = _names(folders)
    return {
        "runs": [_run(name, folder, r) for name, folder, r in zip(names, folders, records, strict=True)],
        "differences": [
            {"run": name, "against": names[0]} | _difference(records[0], record)
            for name, record in zip(names[1:], records[1:], strict=True)
        ],
        "recipe": _recipes(records),
    }


def as_text(found: dict[str, Any]) -> str:
    """What `compare` found, as tables of plain text."""
    parts = [_table(_rows(found)), _table(_difference_rows(found)), "\n".join(_notes(found))]
    return "\n\n".join(filter(None, [*parts, _table(_recipe_rows(found)) or SAME]))


def write_comparison(folders: Sequence[Path], found: dict[str, Any], target: Path) -> Path:
    """Writes what `compare` found as one HTML file that refers to nothing outside itself."""
    names = [run["name"] for run in found["runs"]]
    records = dict(zip(names, map(read_record, folders), strict=True))
    style, script = ((STATIC / name).read_text(encoding="utf-8") for name in ("report.css", "charts.js"))
    page = string.Template((STATIC / "compare.html").read_text(encoding="utf-8")).substitute(
        title=escape(" and ".join(names) if len(names) == 2 else f"{len(names)} runs"),
        summary=escape(_summary(found)), runs=_html(_rows(found)),
        differences=_html(_difference_rows(found)) + "".join(f"<p>{escape(note)}.</p>" for note in _notes(found)),
        recipes=_html(_recipe_rows(found)) or f"<p>{SAME}</p>", style=style, script=script,
        style_hash=hash_of(style), script_hash=hash_of(script), data=embed({"figures": comparison(records)}),
    )  # fmt: skip
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page, encoding="utf-8", errors="replace", newline="\n")
    return target


def _names(folders: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that tell the runs apart."""
    paths = [folder.resolve().parts for folder in folders]
    for n in range(1, max(map(len, paths))):
        names = ["/".join(parts[-n:]) for parts in paths]
        if len(set(names)) == len(names):
            return names
    return [f"{folder} ({k})" for k, folder in enumerate(folders, 1)]


def _run(name: str, folder: Path, record: Record) -> dict[str, Any]:
    first, last = record.ends
    final = last or first
    largest = lambda key: max((number(r, key) or 0.0 for r in record.rows), default=0.0)  # noqa: E731
    curve = [
        {
            "iteration": int(number(row, "iteration") or 0), "env_steps": int(number(row, "total_env_steps") or 0),
            "success": measure(row, "success"), "interval": interval(row),
        }
        for row in record.learning
    ]  # fmt: skip
    return {
        "name": name, "recipe": record.recipe.get("name"), "folder": str(folder), "iterations": record.last_iteration,
        "episodes": int(largest("total_episodes")), "env_steps": int(largest("total_env_steps")),
        "seconds": largest("seconds"), "before": measure(first, "success"), "after": measure(last, "success"),
        "interval": interval(final) if final else None, "curve": curve,
    }  # fmt: skip


def _difference(reference: Record, other: Record) -> dict[str, Any]:
    """The last evaluation of one run less that of the reference, by measure."""
    a, b = (_measures(record) for record in (reference, other))
    if a is None or b is None:
        return {"note": "no evaluation by task in both"}
    if reference.recipe.get("tasks") != other.recipe.get("tasks"):
        return {"note": "other held-out tasks, so nothing can be paired"}
    out: dict[str, Any] = {}
    for name in a:
        pairs = [(y, x) for x, y in zip(a[name], b.get(name, ()), strict=False) if None not in (x, y)]
        if len(pairs) > 1:
            theirs, ours = ([float(v) for v in side] for side in zip(*pairs, strict=True))
            e = paired_difference(theirs, ours, seed=0)
            changed = [t - o for t, o in zip(theirs, ours, strict=True)]
            higher, lower = sum(d > 0 for d in changed), sum(d < 0 for d in changed)
            out[name] = {
                "mean": e.mean, "lo": e.lo, "hi": e.hi, "higher": higher, "lower": lower, "tasks": len(pairs)
            }  # fmt: skip
    return out or {"note": "no measure in common"}


def _measures(record: Record) -> Mapping[str, list[Any]] | None:
    """By measure the values of the tasks in the last evaluation of the policy."""
    rows: list[Row] = [r for r in record.learning if isinstance(r.get("measures"), Mapping)]
    return rows[-1]["measures"] if rows else None


def _recipes(records: Sequence[Record]) -> dict[str, list[Any]]:
    flat = [dict(_flat(record.recipe)) for record in records]
    keys = dict.fromkeys(key for data in flat for key in data)
    values = {key: [data.get(key) for data in flat] for key in keys if key != "name"}
    return {key: found for key, found in values.items() if any(value != found[0] for value in found[1:])}


def _flat(data: Mapping[str, Any], before: str = "") -> Any:
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value


def _rows(found: dict[str, Any]) -> list[list[str]]:
    rows = [["run", "recipe", "iterations", "env steps", "minutes", "success before", "after", "95 %", "along the way"]]
    for run in found["runs"]:
        ends = run["interval"]
        rows.append([
            run["name"], run["recipe"] or "-", str(run["iterations"]), short(run["env_steps"]),
            f"{run['seconds'] / 60:.1f}",
            _share(run["before"]), _share(run["after"]), f"{ends[0]:.2f} to {ends[1]:.2f}" if ends else "-",
            " ".join(_share(point["success"]) for point in _thinned(run["curve"])),
        ])  # fmt: skip
    return rows


def _difference_rows(found: dict[str, Any]) -> list[list[str]]:
    rows = [["difference", "measure", "mean", "95 %", "tasks higher", "lower", "of"]]
    for d in found["differences"]:
        pair = f"{d['run']} - {d['against']}"
        for name in COMPARED:
            if isinstance(e := d.get(name), Mapping):
                ends = f"{e['lo']:+.3f} to {e['hi']:+.3f}"
                rows.append([pair, name, f"{e['mean']:+.3f}", ends, str(e["higher"]), str(e["lower"]), str(e["tasks"])])
    return rows


def _recipe_rows(found: dict[str, Any]) -> list[list[str]]:
    names = [run["name"] for run in found["runs"]]
    return [["differs in", *names], *([key, *map(_brief, values)] for key, values in found["recipe"].items())]


def _notes(found: dict[str, Any]) -> list[str]:
    """Why some runs have no differences."""
    return [f"{d['run']} - {d['against']}: {d['note']}" for d in found["differences"] if "note" in d]


def _summary(found: dict[str, Any]) -> str:
    """One sentence for each difference in success."""
    said = []
    for d in found["differences"]:
        e, text = d.get("success"), d.get("note", "success was not measured by task")
        if e:
            ends = f"95% interval {100 * e['lo']:+.0f} to {100 * e['hi']:+.0f}"
            text = f"{100 * e['mean']:+.0f} points of success on the same {e['tasks']} tasks, {ends}"
        said.append(f"{d['run']}: {text}")
    return f"Against {found['runs'][0]['name']}, " + "; ".join(said) + "."


def _thinned(curve: Sequence[Any], most: int = 8) -> Sequence[Any]:
    """Evenly spaced entries, the first and the last among them."""
    n = len(curve)
    return curve if n <= most else [curve[round(k * (n - 1) / (most - 1))] for k in range(most)]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _brief(value: Any) -> str:
    text = "-" if value is None else value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Rows as plain text; nothing where there is only a head."""
    if len(rows) == 1:
        return ""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n".join(lines)


def _html(rows: Sequence[Sequence[str]]) -> str:
    """As `_table`, for a page."""
    if len(rows) == 1:
        return ""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in rows[0])
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows[1:])
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll words" tabindex="0">{table}</div>'
