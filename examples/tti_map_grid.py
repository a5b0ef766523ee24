"""Draws the map of `tti_map/exact`: growing minus long over what waste weighs when it is cloned and how long it lasts.

    python examples/tti_map_grid.py [SEEDS]

Writes docs/tti_map_grid.json and .svg (which takes matplotlib: `pip install 'longstride[plot]'`).
"""

import json
import sys
from pathlib import Path
from statistics import fmean

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from longstride.studies.regimes.exact import at_the_end
from longstride.studies.tti_map.exact import RECIPE, SCHEDULES

FAVOURS = (0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.33)
GOES_ON = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
BEGINS = 0.3
"""Of `goes_on`: the ratio of both starts of the recipe."""
OUT = Path("docs/tti_map_grid")


def supported(schedule: str, favour: float, goes_on: float, seed: int) -> float:
    """Supported success at the end of a run."""
    start = {"favour": favour, "goes_on": goes_on, "begins": BEGINS * goes_on, "schedule": SCHEDULES[schedule]}
    return at_the_end(RECIPE.replace(method=start), seed)


def main(seeds: int) -> None:
    """Computes the grid, keeps it and draws it."""
    gain = {
        name: [[fmean(supported(name, f, g, seed) for seed in range(seeds)) for f in FAVOURS] for g in GOES_ON]
        for name in ("growing", "long")
    }
    grid = {"favour": FAVOURS, "goes_on": GOES_ON, "seeds": seeds, "iterations": RECIPE.iterations, **gain}
    OUT.with_suffix(".json").write_text(json.dumps(grid, indent=1) + "\n", encoding="utf-8")
    more = np.array(gain["growing"]) - np.array(gain["long"])
    figure = Figure(figsize=(6, 4.2), layout="constrained")
    ax = figure.subplots()
    shown = ax.imshow(more, cmap="RdBu", vmin=-0.25, vmax=0.25, origin="lower", aspect="auto")
    for (row, column), value in np.ndenumerate(more):
        ax.text(column, row, f"{value:+.2f}", ha="center", va="center", fontsize="x-small")
    ax.set_xticks(range(len(FAVOURS)), [f"{f:g}" for f in FAVOURS])
    ax.set_yticks(range(len(GOES_ON)), [f"{g:g}" for g in GOES_ON])
    ax.set_xlabel("weight of a wasted step in cloning (self-amplification)")
    ax.set_ylabel("waste goes on with probability (wandering)")
    figure.colorbar(shown, label="supported success, growing minus long")
    with rc_context({"svg.hashsalt": OUT.name}):  # the same plot is the same file
        figure.savefig(OUT.with_suffix(".svg"), metadata={"Date": None})


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
