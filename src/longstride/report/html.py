"""`report.html`: one run in one file that opens from disk.

What always holds: the file is whole or absent (it is moved into place), refers to nothing outside itself, and its
content security policy forbids any request and any script but its own; texts from pages, models and recipes enter as
escaped text or as JSON in which no tag can open, and the scripts put them on the page as text only. The look is in
`static/`.
"""

import base64
import hashlib
import os
import string
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from statistics import fmean
from typing import Any

import longstride.run.recipe  # noqa: F401 (the sources of tasks that ship)
from longstride.core.errors import LongstrideError, RunError
from longstride.core.task import DIFFICULTIES
from longstride.envs.base import TaskSource
from longstride.envs.chart import Charted
from longstride.report.episodes import read_episodes
from longstride.report.figures import figures
from longstride.report.rows import (
    Record,
    Row,
    embed,
    horizon_text,
    interval,
    measure,
    number,
    numbers,
    points,
    read_record,
    returns,
    short,
)
from longstride.rollout.summary import HORIZONS
from longstride.run.experiment import checkpoint_folders
from longstride.stats import paired_difference

STATIC = Path(__file__).parent / "static"
RECIPE_CHARACTERS, TABLE_ROWS = 100_000, 300
WORDS = ("policy", "strategy", "tasks")
"""Columns of the table that hold words."""
PAID = {"usage": "", "judge_usage": "judge"}
"""Fields of a summary that say what servers counted, with whose it is."""
PLAY_SCRIPTS = ("llama", "agent", "play")
"""What runs a policy in a page."""
PLAY = '<section id="play" aria-labelledby="play-title"><h2 id="play-title">The policy, in this page</h2></section>'
"""Where it is run."""


def write_report(run: Path) -> Path:
    """Writes `report.html` into a run folder, finished or not; returns its path.

    Raises:
        RunError: as `read_record`; or the folder cannot be written to.
    """
    record = read_record(run)
    episodes, notes = read_episodes(run)
    play = _play(run, record, len(embed(episodes)))
    page = _page(record, {"episodes": episodes} | play, notes if record.has_trajectories else [])
    target, part = run / "report.html", run / f"report.html.part-{os.getpid()}"  # a run is looked at while it writes
    try:
        part.write_text(page, encoding="utf-8", errors="replace", newline="\n")
        os.replace(part, target)
    except OSError as e:
        part.unlink(missing_ok=True)
        raise RunError(f"cannot write {target}: {e.strerror or e}") from e
    return target


def verdict(record: Record) -> str:
    """One sentence in numbers: what training did, and what it cost."""
    first, last = record.ends
    spent = _spent(record)
    failed = sum(number(row, "summary", "failed") or 0 for row in record.rows)
    if failed and not sum(number(row, "summary", "episodes") or 0 for row in record.rows):
        return f"all {failed:.0f} episodes failed for reasons of infrastructure; nothing was measured in {spent}"
    if first and last and (change := _change(first, last)) and record.counts_returns:
        return f"return of test episodes {' -> '.join(change)} in {spent}"
    if first and last:
        a, b = number(first, "summary", "success") or 0.0, number(last, "summary", "success") or 0.0
        return f"held-out success {a:.2f} -> {b:.2f} ({points(a, b)}) in {spent}"
    if last:
        returned = _change(last, last) if record.counts_returns else None
        success = f"held-out success {number(last, 'summary', 'success') or 0.0:.2f}"
        found = f"return of test episodes {returned[1]}" if returned else success
        return f"{found} after {spent}; its start was not evaluated"
    trained = [y for r in record.train if (y := measure(r, "success")) is not None]
    if trained:
        return f"training success {trained[0]:.2f} -> {trained[-1]:.2f} in {spent}; no held-out evaluation after it yet"
    if not first and (exact := record.measured):
        changes = (f"{name.replace('_', ' ')} {found[0][1]:.4g} -> {found[-1][1]:.4g}" for name, found in exact.items())
        return f"{', '.join(list(changes)[:3])} in {spent}"
    if first and record.trained_nothing:
        return f"held-out success {number(first, 'summary', 'success') or 0.0:.2f} of {record.model}"
    if first:
        return f"held-out success {number(first, 'summary', 'success') or 0.0:.2f} before training; nothing trained yet"
    return "nothing measured yet"


def _change(first: Row, last: Row) -> tuple[str, str] | None:
    """`-1370` and `-180`: mean returns of two evaluations; None where they were not measured."""
    a, b = returns(first), returns(last)
    return (f"{fmean(a):.4g}", f"{fmean(b):.4g}") if a and b else None


def _spent(record: Record) -> str:
    n = record.last_iteration
    seconds = max((number(r, "seconds") or 0.0 for r in record.rows), default=0.0)
    steps = max((number(r, "total_env_steps") or 0.0 for r in record.rows), default=0.0)
    unit, size = ("s", 1) if seconds < 90 else ("min", 60) if seconds < 5400 else ("h", 3600)
    time = f"{seconds / size:.{0 if size == 1 else 1}f} {unit}"
    taken = f", {short(steps)} environment steps" if steps else ""
    return f"{n} iteration{'s' * (n != 1)}, {time}{taken}"


def _play(run: Path, record: Record, taken: int) -> dict[str, Any]:
    """`play`: the run's policy as data that the page carries beside so many characters, or why it cannot; nothing where
    there is no checkpoint, or no task could be played in a page."""
    tasks = record.recipe.get("tasks")
    if record.trained_nothing or not checkpoint_folders(run) or not isinstance(tasks, Mapping):
        return {}
    # of what is known without importing a module that the run names
    if not issubclass(TaskSource.members().get(str(tasks.get("type")), TaskSource), Charted):
        return {}
    try:
        from longstride.report.play import carried_run  # torch, which other reports do without

        return {"play": carried_run(run, taken)}
    except LongstrideError as e:
        return {"play": {"why": f"The run's policy could not be read: {e}"}}


def _page(record: Record, shown: dict[str, Any], notes: Sequence[str]) -> str:
    plays = "play" in shown
    names = ("charts", "viewer", *(PLAY_SCRIPTS if plays else ()))
    style, script = _static("report.css"), "".join(_static(f"{name}.js") for name in names)
    planned = record.planned
    notes = [*record.notes, *notes]
    if planned and record.last_iteration < planned and not record.trained_nothing:
        notes.insert(
            0, f"The run stands at iteration {record.last_iteration} of {planned:.0f}: it is going on or was stopped."
        )
    return string.Template(_static("report.html")).substitute(
        title=escape(record.name),
        verdict=escape(verdict(record)).replace("-&gt;", "&rarr;"),
        certainty=_certainty(record),
        tiles=_tiles(record),
        notes="".join(f"<li>{escape(n)}</li>" for n in notes),
        table=_table([*record.evals, *record.beside]) or _computed(record) or "<p>None yet.</p>",
        cloning=_cloned(record.rows),
        cost=_costs([*record.evals, *record.beside, *record.train]),
        recipe=escape(record.recipe_text[:RECIPE_CHARACTERS]) or "unknown",
        hidden="" if record.has_trajectories else " hidden",
        play=PLAY if plays else "",
        style=style,
        script=script,
        style_hash=hash_of(style),
        script_hash=hash_of(script),
        data=embed({"figures": figures(record)} | shown),
    )


def hash_of(text: str) -> str:
    """What a content security policy calls an element with this text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _static(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")


def _certainty(record: Record) -> str:
    """How sure the change is: over the same tasks where their successes were kept, else the two intervals."""
    first, last = record.ends
    a, b = returns(first), returns(last)
    if record.counts_returns and len(a) == len(b) > 1:
        effect = paired_difference(b, a, seed=0)
        return f"On the same {len(a)} episodes: {effect.mean:+.4g}, 95% interval {effect.lo:+.4g} to {effect.hi:+.4g}."
    pairs = _pairs(first or {}, last or {})
    if len(pairs) > 1:
        effect = paired_difference([b for _, b in pairs], [a for a, _ in pairs], seed=0)
        low, high = (f"{round(100 * x):+d}" for x in (effect.lo, effect.hi))
        if effect.lo < effect.hi:  # where all tasks changed alike, resampling them says nothing
            return f"On the same {len(pairs)} tasks: {points(0, effect.mean)}, 95% interval {low} to {high}."
    before, after = interval(first or {}), interval(last or {})
    if not before or not after:
        return ""
    return f"95% intervals {before[0]:.2f} to {before[1]:.2f} before and {after[0]:.2f} to {after[1]:.2f} after."


def _pairs(first: Row, last: Row) -> list[tuple[float, float]]:
    """Success at the tasks that failed in neither evaluation, before and after."""
    a, b = (m.get("success") if isinstance(m := row.get("measures"), Mapping) else None for row in (first, last))
    if not isinstance(a, list) or not isinstance(b, list) or len(a) != len(b):
        return []
    read = [(number({"x": x}, "x"), number({"x": y}, "x")) for x, y in zip(a, b, strict=True)]
    return [(x, y) for x, y in read if x is not None and y is not None]


def _tiles(record: Record) -> str:
    """Key numbers, before and after."""
    first, last = record.ends
    change = _change(first or {}, last or {})
    cells = [f"<div><dt>return</dt><dd><small>{change[0]} &rarr;</small> {change[1]}</dd></div>"] if change else []
    for label, key, digits in (
        ("success", "success", 2),
        ("supported", "supported", 2),
        (HORIZONS["length"], "length", 1),
        ("length of successes", "length_success", 1),
        ("time-outs", "timeouts", 2),
        ("idle turns", "idle", 2),
        ("invalid actions", "invalid", 2),
    ):
        a, b = measure(first, key), measure(last, key)
        if b is not None and not (key == "success" and record.counts_returns):
            was = "" if a is None else f"<small>{a:.{digits}f} &rarr;</small> "
            cells.append(f"<div><dt>{label}</dt><dd>{was}{b:.{digits}f}</dd></div>")
    return f"<dl>{''.join(cells)}</dl>" if cells else ""


def _table(rows: Sequence[Row]) -> str:
    """Every evaluation, newest last, then those on other tasks; a column that no row fills is left out."""
    return _as_table([_cells(r) for r in rows if "summary" in r])


def _computed(record: Record) -> str:
    """Every evaluation of a problem whose answer is known, newest last: a column a measure."""
    by_iteration: dict[float, dict[str, str]] = {}
    for name, found in record.measured.items():
        for at, value in found:
            by_iteration.setdefault(at, {"iteration": f"{at:.0f}"})[name.replace("_", " ")] = f"{value:.4g}"
    return _as_table([by_iteration[at] for at in sorted(by_iteration)])


def _cloned(rows: Sequence[Row]) -> str:
    """The section on cloning before the first iteration; empty where there was none."""
    names = {"step": 0, "of": 0, "examples": 0, "tokens": 0, "loss": 4, "learning rate": 2}
    keys = ("step", "steps", "examples", "tokens", "loss", "lr")
    found = [
        {
            name: "" if (v := number(row, key)) is None else f"{v:.{digits}g}" if digits else f"{v:.0f}"
            for (name, digits), key in zip(names.items(), keys, strict=True)
        }
        for row in rows
        if row.get("kind") == "cloning"
    ]
    if not found:
        return ""
    words = "Before the first iteration; loss: mean negative log-likelihood of a token, since the row before."
    return (
        f'<section aria-labelledby="cloning-title"><h2 id="cloning-title">Cloning</h2><p>{words}</p>'
        f"{_as_table(found)}</section>"
    )


def _costs(rows: Sequence[Row]) -> str:
    """The section on what models behind APIs cost; empty where none was asked."""
    found = [_cost(row, of) for row in rows for of in PAID if number(row, "summary", of, "requests")]
    if not found:
        return ""
    table = _as_table(found)
    words = "Tokens as the servers count them, of all that was played; cost by the prices of the recipe."
    return f'<section aria-labelledby="cost-title"><h2 id="cost-title">Cost</h2><p>{words}</p>{table}</section>'


def _cost(row: Row, of: str) -> dict[str, str]:
    """The texts of a row by column."""
    usage, summary = numbers(row, "summary", of), numbers(row, "summary")
    cost, episodes = usage.get("cost", 0.0), summary.get("episodes", 0.0)
    solved = episodes * summary.get("success", 0.0)
    return {
        "iteration": f"{number(row, 'iteration') or 0:.0f}",
        **{word: str(row.get(word, ""))[:60].replace("_", " ") for word in WORDS},
        "of": PAID[of],
        "requests": f"{usage.get('requests', 0):.0f}",
        "tokens read": f"{usage.get('read', 0):.0f}",
        "cached": f"{usage.get('cached', 0):.0f}",
        "sampled": f"{usage.get('sampled', 0) + usage.get('beside', 0):.0f}",
        "cost": f"{cost:.4g}" if cost else "",
        "an episode": f"{cost / episodes:.3g}" if cost and episodes else "",
        "a success": f"{cost / solved:.3g}" if cost and solved else "",
    }


def _as_table(rows: Sequence[Mapping[str, str]]) -> str:
    """The newest rows, without columns that none of them fills; empty where there is no row."""
    if not rows:
        return ""
    cells = rows[-TABLE_ROWS:]
    shown = [column for column in dict.fromkeys(c for row in cells for c in row) if any(r.get(column) for r in cells)]
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in shown)
    body = "".join(f"<tr>{''.join(_cell(column, row.get(column, '')) for column in shown)}</tr>" for row in cells)
    left = f"<p>The newest {TABLE_ROWS} of {len(rows)}.</p>" if len(rows) > TABLE_ROWS else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'{left}<div class="scroll" tabindex="0">{table}</div>'


def _cell(column: str, text: str) -> str:
    kind = ' class="word"' if column in WORDS else ""
    return f"<td{kind}>{escape(text)}</td>"


def _cells(row: Row) -> dict[str, str]:
    """The texts of a row by column; empty where it does not say."""

    def shown(digits: int, *path: str) -> str:
        value = number(row, *path)
        return "" if value is None else f"{value:.{digits}f}"

    ends = interval(row)
    return {
        "iteration": shown(0, "iteration"),
        **{word: str(row.get(word, ""))[:60].replace("_", " ") for word in WORDS},
        HORIZONS["goal_distance"]: shown(1, "summary", "goal_distance"),
        HORIZONS["budget"]: horizon_text(row),
        HORIZONS["length"]: shown(1, "summary", "length"),
        "episodes": shown(0, "summary", "episodes"),
        "failed": shown(0, "summary", "failed"),
        "return": f"{fmean(found):.4g}" if (found := returns(row)) else "",
        "success": shown(3, "summary", "success"),
        "supported": "" if measure(row, "supported") is None else shown(3, "summary", "supported"),
        "95% interval": f"{ends[0]:.2f} to {ends[1]:.2f}" if ends else "",
        "time-outs": shown(2, "summary", "timeouts"),
        "invalid": shown(3, "summary", "invalid"),
        **{d: shown(2, "summary", "by_difficulty", d, "success") for d in DIFFICULTIES},
    }
