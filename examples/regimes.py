"""Regimes on trails of pages: what the exact model predicts of them, the runs, and predictions beside results.

    python examples/regimes.py predict            # habits of the start, and what follows from them; to be committed
    python examples/regimes.py run [SEED ...]     # what is there already is not run again
    python examples/regimes.py judge              # hits and misses, with a figure

Writes docs/horizons/regimes_predicted.json, the runs below runs/regimes/, and docs/horizons/regimes.json and .svg
(which takes matplotlib: `pip install 'longstride[plot]'`).
"""

import json
import sys
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

import longstride as ls
from longstride.core.provenance import commit, committed
from longstride.core.seeds import stream
from longstride.envs.dial import Habits
from longstride.stats import paired_difference_clustered
from longstride.studies.regimes.exact import predicted
from longstride.studies.regimes.recipe import HORIZONS, LONG, RECIPE, REGIMES

SEEDS = (320, 321, 322)
LEVEL = 0.03
"""Differences of success below this are level."""
RELATIONS = ("long", "short")
"""What growing is compared with."""
PREDICTED, OUT, RUNS = Path("docs/horizons/regimes_predicted.json"), Path("docs/horizons/regimes"), Path("runs/regimes")


def call(difference: float) -> str:
    """Which is ahead by a difference of growing and another horizon."""
    return "level" if abs(difference) < LEVEL else "growing" if difference > 0 else "other"


def predict() -> None:
    """Measures how the start wanders in each regime, and writes what the exact model makes of it."""
    found, seen = {}, {}
    for name, regime in REGIMES.items():
        if regime.tasks not in seen:
            tasks = regime.tasks.sample(stream(0, "habits"), 200)
            played = ls.evaluate(regime.start, regime, held_out=tasks, test_budget={"turns": LONG})
            seen[regime.tasks] = {k: value or 0.0 for k, value in Habits.of(played.trajectories).table().items()}
        habits = seen[regime.tasks]
        ends = predicted(regime, habits)
        less = {other: ends["growing"] - ends[other] for other in RELATIONS}
        called = {other: call(value) for other, value in less.items()}
        found[name] = {"habits": habits, "success": ends, "growing_minus": less, "ahead": called}
        print(name, {k: round(v, 3) for k, v in ends.items()}, called)
    write(PREDICTED, {"commit": commit(), "level": LEVEL, "regimes": found})


def run(seeds: tuple[int, ...]) -> None:
    """Runs every regime under every horizon, a seed at a time."""
    if committed(PREDICTED) is None:
        sys.exit(f"{PREDICTED} is not committed: predictions come before runs")
    for seed, name, horizon in product(seeds, REGIMES, HORIZONS):
        recipe = REGIMES[name].replace(name=f"regimes/{name}", seed=seed, budget={"turns": HORIZONS[horizon]})
        folder = RUNS / f"{name}-{horizon}-{seed}"
        if not ended(folder):
            recipe.train(folder, resume=folder.exists())
        print(folder, ls.load_run(folder).metrics.where(kind="eval")[-1]["summary"]["success"], flush=True)


def judge() -> None:
    """Puts results beside predictions, keeps and draws them."""
    said, found = json.loads(PREDICTED.read_text("utf-8"))["regimes"], {}
    for name in REGIMES:
        seeds = [s for s in SEEDS if all(ended(RUNS / f"{name}-{h}-{s}") for h in HORIZONS)]
        if len(seeds) < 2:
            continue
        done = {h: np.array([successes(RUNS / f"{name}-{h}-{s}") for s in seeds]) for h in HORIZONS}
        found[name] = {"seeds": seeds, "success": {h: done[h].mean(1).tolist() for h in HORIZONS}, "growing_minus": {}}
        for other in RELATIONS:
            effect = paired_difference_clustered(done["growing"], done[other], seed=0)
            own, told = said[name]["growing_minus"][other], call(effect.mean)
            found[name]["growing_minus"][other] = {
                "measured": [effect.mean, effect.lo, effect.hi],
                "predicted": own,
                "ahead": told,
                "hit": told == said[name]["ahead"][other],
                "inside": bool(effect.lo <= own <= effect.hi),
            }
    each = [r for regime in found.values() for r in regime["growing_minus"].values()]
    told = {
        "relations": len(each),
        "hits": sum(r["hit"] for r in each),
        "inside": sum(r["inside"] for r in each),
        "correlation": float(np.corrcoef([r["predicted"] for r in each], [r["measured"][0] for r in each])[0, 1]),
    }
    write(OUT.with_suffix(".json"), {"commit": commit(), "level": LEVEL, **told, "regimes": found})
    draw(found)
    print(*table(), told, sep="\n")


def table() -> list[str]:
    """What is kept, as the rows of a table of Markdown."""
    rows = ["| regime | growing, long, short | minus long: predicted, measured | minus short: predicted, measured |"]
    rows.append("|---" * 4 + "|")
    for name, regime in json.loads(OUT.with_suffix(".json").read_text("utf-8"))["regimes"].items():
        ends = ", ".join(f"{fmean(regime['success'][h]):.3f}" for h in HORIZONS)
        each = (
            f"{r['predicted']:+.3f}, {r['measured'][0]:+.3f} {'hit' if r['hit'] else 'miss'}"
            for r in regime["growing_minus"].values()
        )
        rows.append(f"| `{name}` | {ends} | {' | '.join(each)} |")
    return rows


def ended(folder: Path) -> bool:
    """Whether a run has its last evaluation."""
    rows = ls.load_run(folder).metrics.where(kind="eval") if folder.exists() else []
    return bool(rows) and rows[-1]["iteration"] == RECIPE.iterations


def successes(folder: Path) -> list[float]:
    """At every held-out task, at the end."""
    return ls.load_run(folder).metrics.where(kind="eval")[-1]["measures"]["success"]


def draw(found: dict[str, Any]) -> None:
    """Measured differences by predicted ones: the mean, and from the least to the most of a seed."""
    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    ax = figure.subplots()
    ax.axline((0, 0), slope=1, color="0.7", linewidth=1)
    ax.axhspan(-LEVEL, LEVEL, color="0.92", linewidth=0)
    ax.axvspan(-LEVEL, LEVEL, color="0.92", linewidth=0)
    for other, color, mark, place in (("long", "#0072b2", "o", (5, 5)), ("short", "#d55e00", "s", (5, -11))):
        for name, regime in found.items():
            by_seed = np.array(regime["success"]["growing"]) - np.array(regime["success"][other])
            x = regime["growing_minus"][other]["predicted"]
            ax.plot([x, x], [by_seed.min(), by_seed.max()], color=color, linewidth=1)
            ax.plot(x, by_seed.mean(), mark, color=color)
            if max(abs(x), abs(by_seed.mean())) > 2 * LEVEL:  # those that are level lie upon one another
                ax.annotate(name, (x, by_seed.mean()), place, textcoords="offset points", fontsize="small", color=color)
        ax.plot([], [], mark, color=color, label=f"growing minus {other}")
    ax.set(xlabel="predicted difference of success", ylabel="measured: the mean, and the range of seeds")
    ax.legend()
    with rc_context({"svg.hashsalt": OUT.name}):  # the same plot is the same file
        figure.savefig(OUT.with_suffix(".svg"), metadata={"Date": None})


def write(path: Path, data: Any) -> None:
    """Keeps what was found."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["predict"]:
        predict()
    elif sys.argv[1:2] == ["run"]:
        run(tuple(map(int, sys.argv[2:])) or SEEDS)
    elif sys.argv[1:2] == ["judge"]:
        judge()
    else:
        sys.exit(__doc__)
