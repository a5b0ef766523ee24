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
    for name, regime in found.items():
        for other, r in regime["growing_minus"].items():
            mean, lo, hi = r["measured"]
            ours = " ".join(f"{h} {fmean(regime['success'][h]):.2f}" for h in HORIZONS)
            print(f"{name:10} {other:6} predicted {r['predicted']:+.2f}, {mean:+.3f} [{lo:+.2f}, {hi:+.2f}]", end=" ")
            print("hit" if r["hit"] else "miss", f"({ours})")
    print(told)


def ended(folder: Path) -> bool:
    """Whether a run has its last evaluation."""
    rows = ls.load_run(folder).metrics.where(kind="eval") if folder.exists() else []
    return bool(rows) and rows[-1]["iteration"] == RECIPE.iterations


def successes(folder: Path) -> list[float]:
    """At every held-out task, at the end."""
    return ls.load_run(folder).metrics.where(kind="eval")[-1]["measures"]["success"]


def draw(found: dict[str, Any]) -> None:
    """Measured differences by predicted ones."""
    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    ax = figure.subplots()
    ax.axline((0, 0), slope=1, color="0.7", linewidth=1)
    ax.axhspan(-LEVEL, LEVEL, color="0.92", linewidth=0)
    ax.axvspan(-LEVEL, LEVEL, color="0.92", linewidth=0)
    for other, color, mark in (("long", "#0072b2", "o"), ("short", "#d55e00", "s")):
        each = {name: regime["growing_minus"][other] for name, regime in found.items()}
        x, y = [r["predicted"] for r in each.values()], np.array([r["measured"] for r in each.values()])
        ends = [y[:, 0] - y[:, 1], y[:, 2] - y[:, 0]]
        ax.errorbar(x, y[:, 0], ends, fmt=mark, color=color, label=f"growing minus {other}", capsize=2, linewidth=1)
        for name, at, height in zip(each, x, y[:, 0], strict=True):
            ax.annotate(name, (at, height), (4, 4), textcoords="offset points", fontsize="small", color=color)
    ax.set(xlabel="predicted difference of success", ylabel="measured, 95 % interval")
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
