"""Claims as pages: what `claims.runner.run_claim` kept, as a table and a plot each, and all of a folder on one page.

What always holds: a page says what its JSON says and nothing else, so it can be made again at any time.
"""

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from longstride.claims.runner import CHECKS, SPENT
from longstride.core.errors import RunError
from longstride.core.files import write_atomically
from longstride.stats import Relation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OVERVIEW = "README.md"
LISTED = 20
"""Most seeds whose values stand one by one; of more, the lowest and the highest."""
CONTROL = {"not reproduced": "absent, as expected", "reproduced": "present", "undecided": "undecided"}
"""What a verdict means for a relation that must not hold."""


def write_pages(folder: Path, result: dict[str, Any]) -> None:
    """Writes `NAME.md` and `NAME.svg` of a result (the plot only where matplotlib is installed), and `README.md`: all
    results that are kept in the folder.

    Raises:
        RunError: one of them is damaged.
    """
    name = result["name"]
    drawn = _plot(result, folder / f"{name}.svg")
    write_atomically(folder / f"{name}.md", _page(result, drawn))
    lines = [
        "# Claims",
        "",
        "A line a claim: the verdict on all its relations, the first of them with its difference, and whether the",
        "effect is gone in every control, where it has to be. The page of a claim has its statement and all the rest.",
        "",
        "| claim | verdict | seeds | first relation | difference, 95 % | control |",
        "|---" * 6 + "|",
    ]
    for path in sorted(folder.glob("*.json")):
        try:
            lines.append(_line(json.loads(path.read_text(encoding="utf-8"))))
        except (OSError, ValueError, KeyError, TypeError) as e:
            raise RunError(f"{path} cannot be read: {type(e).__name__}: {e}; remove it, and run the claim again") from e
    write_atomically(folder / OVERVIEW, "\n".join(lines) + "\n")


def _line(result: dict[str, Any]) -> str:
    """A claim's line of the overview."""
    name, first = result["name"], result["effects"][0]
    controls = {e["verdict"] for e in result["control_effects"]}
    left = "there" if "reproduced" in controls else "undecided" if "undecided" in controls else "gone"
    cells = [
        f"[{name}]({name}.md)", result["verdict"], str(len(result["seeds"])), first["relation"],
        f"{first['mean']:+.3f} [{first['lo']:+.3f}, {first['hi']:+.3f}]", left if controls else "none",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _judged(result: dict[str, Any]) -> list[tuple[str, dict[str, Any], str]]:
    """Relation, interval and verdict of what is expected, and of the control."""
    return [
        *((e["relation"], e, e["verdict"]) for e in result["effects"]),
        *((f"control: {e['relation']}", e, CONTROL[e["verdict"]]) for e in result["control_effects"]),
    ]


def _page(result: dict[str, Any], drawn: bool) -> str:
    lines = [f"# {result['name']}: {result['verdict']}", "", f"{result['statement']} ({result['paper']})", ""]
    spent = [name for name in SPENT if all(all(arm[name]) for arm in result["arms"].values())]
    measure = result["measure"]
    others = dict.fromkeys(m for arm in result["arms"].values() for m in arm["measures"] if m != measure)
    titles = ["arm", measure, "95 % over seeds", "by seed", *(name.replace("_", " ") for name in [*others, *spent])]
    lines += [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for name, arm in result["arms"].items():
        cells = [name, "", "", ""]
        if of := arm["measures"].get(measure):
            lo, hi = of["interval"]
            cells = [name, f"{of['value']:.3f}", f"{lo:.3f} to {hi:.3f}", _listed(of["by_seed"], "{:.3f}".format)]
        cells += [f"{of['value']:.3f}" if (of := arm["measures"].get(m)) else "" for m in others]
        lines.append(f"| {' | '.join([*cells, *(f'{sum(arm[s]) / len(arm[s]):,.0f}' for s in spent)])} |")
    lines += ["", "| relation | difference | 95 % | verdict |", "|---|---|---|---|"]
    reported = [(e["relation"], e, "reported only") for e in result.get("reported", [])]
    reported += [
        (f"{e['relation']}, at equal {e['spent'].replace('_', ' ')}", e, "reported only") for e in result["matched"]
    ]
    for relation, e, judgement in (*_judged(result), *reported):
        lines.append(f"| {relation} | {e['mean']:+.3f} | {e['lo']:+.3f} to {e['hi']:+.3f} | {judgement} |")
    if result["check_again"]:
        lines += [
            "",
            "| policy | " + " | ".join(f"{c} checks" for c in CHECKS) + " |",
            "|---" * (len(CHECKS) + 1) + "|",
        ]
        for name in result["check_again"][0]:
            columns = zip(*(seed[name] for seed in result["check_again"]), strict=True)
            means = [sum(p["success"] for p in column) / len(column) for column in columns]
            lines.append(f"| {name} | " + " | ".join(f"{m:.3f}" for m in means) + " |")
    lines += ["", f"![value by what was spent]({result['name']}.svg)"] if drawn else [
        "", "No plot: matplotlib is not installed (`pip install 'longstride[plot]'`, then run the claim again)."
    ]  # fmt: skip
    if result.get("judged_again"):
        lines += [
            "",
            "Which relations decide was changed after the run; differences and intervals are those of the run.",
        ]
    seeds = _listed(result["seeds"], str)
    lines += ["", f"Seeds {seeds}; commit {result['commit']}; {result['seconds'] / 3600:.2f} h; `{result['command']}`."]
    return "\n".join(lines) + "\n"


def _listed(values: list[Any], shown: Callable[[Any], str]) -> str:
    """All values; of many the lowest and the highest."""
    if len(values) <= LISTED:
        return ", ".join(map(shown, values))
    return f"{shown(min(values))} to {shown(max(values))}"


def _plot(result: dict[str, Any], path: Path) -> bool:
    """Draws the figure of a claim; False where matplotlib is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        return False
    from matplotlib import rc_context

    figure = _by_strategy(result) if result.get("along") else _by_training(result)
    with rc_context({"svg.hashsalt": result["name"]}):  # the same plot is the same file
        figure.savefig(path, metadata={"Date": None})
    return True


def _by_strategy(result: dict[str, Any]) -> "Figure":
    """The measure against what an evaluation spends, of the start and of the trained policy: mean of the seeds. One
    curve for strategies whose names differ in numbers alone; each begins at the first strategy."""
    from matplotlib.figure import Figure

    measure, along = result["measure"], result["along"]
    figure = Figure(figsize=(10, 4), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, at, when in zip(axes, (0, -1), ("before training", "after training"), strict=True):
        kinds: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for side, arm in result["arms"].items():
            points = [curve[at]["values"] for curve in arm["curves"]]
            name, _, strategy = side.partition("@")
            kind = " ".join(part for part in strategy.split("_") if not part.isdecimal())
            kinds.setdefault((name, kind), []).append(
                (fmean(p[along] for p in points), fmean(p[measure] for p in points))
            )
        for (name, kind), points in kinds.items():
            if kind:
                curve = np.array(sorted([*kinds[name, ""], *points]))
                ax.plot(*curve.T, "o-", label=f"{name}: {kind}", markersize=4)
        ax.set_title(when, fontsize="medium")
        ax.set_xlabel(f"{along.replace('_', ' ')} a task")
    axes[0].set_ylabel(f"held-out {measure}")
    lines, names = axes[0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside right upper", frameon=False, fontsize="small")
    return figure


def _by_training(result: dict[str, Any]) -> "Figure":
    """The measure against what was spent, or against iterations where some run collected nothing: mean of the seeds,
    band from the lowest to the highest. Of strategies, the first and what is compared."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter, MaxNLocator

    measure = result["measure"]
    compared = {side for text in result["ordering"] + result["control"] for side in Relation.of(text)[:2]}
    arms = {
        side: arm
        for side, arm in result["arms"].items()
        if measure in arm["measures"] and ("@" not in side or side in compared)
    }
    along = [x for x in ("episodes", *SPENT) if all(curve[-1][x] for a in arms.values() for curve in a["curves"])]
    along = along or ["iteration"]
    figure = Figure(figsize=(3 + 3.6 * len(along), 3.6), layout="constrained")
    for ax, x in zip(figure.subplots(1, len(along), sharey=True, squeeze=False)[0], along, strict=True):
        for name, arm in arms.items():
            x_SI = np.array([[p[x] for p in curve] for curve in arm["curves"]], float)
            y_SI = np.array([[p["values"][measure] for p in curve] for curve in arm["curves"]])
            ax.plot(x_SI.mean(0), y_SI.mean(0), label=name)
            ax.fill_between(x_SI.mean(0), y_SI.min(0), y_SI.max(0), alpha=0.15, linewidth=0)
        ax.set_xlabel(x.replace("_", " "))
        ax.xaxis.set_major_locator(MaxNLocator(5))
        ax.xaxis.set_major_formatter(EngFormatter(sep=""))
    figure.axes[0].set_ylabel(f"held-out {measure}")
    lines, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside right upper", frameon=False, fontsize="small")
    return figure
