"""What distance costs under each schedule of the horizon, and how far it carries (`schedules/distance`).

    python examples/distances.py run [SEED ...]   # what is there already is not run again
    python examples/distances.py draw

The runs stand below runs/distances/. Writes docs/horizons/distances.json (success far away) with a figure, which takes
matplotlib (`pip install 'longstride[plot]'`), and laws_*.json: what half of the tasks at a distance cost in environment
steps, episodes and tokens.
"""

import json
import sys
from itertools import product
from pathlib import Path
from statistics import fmean

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

import longstride as ls
from longstride.core.provenance import commit
from longstride.report.fits import fit_runs, fits_as_text, load_fits
from longstride.scaling import FitError, RisingPower
from longstride.studies.schedules.distance import FAR, FAR_TURNS, RECIPE
from longstride.studies.schedules.recipe import SCHEDULES, under

SEEDS = (910, 911)
NAMES = ("short", "slow", "long", "worth", "multiplicative", "staged")
SPENT = ("env_steps", "episodes", "tokens")
NEAR = 16
"""The farthest distance of training: farther ones are held out."""
RUNS, OUT = Path("runs/distances"), Path("docs/horizons")


def run(seeds: tuple[int, ...]) -> None:
    """Trains under every schedule, a seed at a time, and tests far away."""
    for seed, name in product(seeds, NAMES):
        folder = RUNS / f"{name}-{seed}"
        if not (far := folder / "far.json").exists():
            under(RECIPE, SCHEDULES[name]).replace(name=name, seed=seed).train(folder, resume=folder.exists())
            changes = {"tasks": {"test_distances": FAR}, "evaluation": {"tasks": 8 * len(FAR)}}
            found = ls.evaluate(folder, **changes, test_budget={"turns": FAR_TURNS}).summary["by_distance"]
            far.write_text(json.dumps(found), encoding="utf-8")
        print(folder, {d: of["success"] for d, of in json.loads(far.read_text("utf-8")).items()}, flush=True)
    keep()


def keep() -> None:
    """Keeps what the runs gave, with its laws."""
    found = {
        name: {path.parent.name.rpartition("-")[2]: json.loads(path.read_text("utf-8")) for path in paths}
        for name in NAMES
        if (paths := sorted(RUNS.glob(f"{name}-*/far.json")))
    }
    kept = {"turns": FAR_TURNS, "commit": commit(), "schedules": found}
    (OUT / "distances.json").write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    laws()


def draw() -> None:
    """Draws what is kept, and prints its tables."""
    found = json.loads((OUT / "distances.json").read_text("utf-8"))["schedules"]
    figure = Figure(figsize=(6.4, 4), layout="constrained")
    ax = figure.subplots()
    for name, by_seed in found.items():
        means = [fmean(of[str(d)]["success"] for of in by_seed.values()) for d in FAR]
        color = ax.plot(FAR, means, "-", label=name)[0].get_color()
        for of in by_seed.values():
            ax.plot(FAR, [of[str(d)]["success"] for d in FAR], "o", color=color, alpha=0.4)
    ax.axvline(NEAR, color="0.6", linestyle=":")
    ax.set(xscale="log", xlabel="goal distance (training has up to 16)", ylabel=f"success within {FAR_TURNS} turns")
    ax.set_xticks(FAR, list(map(str, FAR)))
    ax.legend()
    with rc_context({"svg.hashsalt": "distances"}):  # the same plot is the same file
        figure.savefig(OUT / "distances.svg", metadata={"Date": None})
    print(*table(), *law_table(), sep="\n")


def table() -> list[str]:
    """Success far away, as the rows of a table of Markdown: the mean of seeds."""
    rows = [f"| schedule | {' | '.join(map(str, FAR))} |", "|---" * (len(FAR) + 1) + "|"]
    for name, by_seed in json.loads((OUT / "distances.json").read_text("utf-8"))["schedules"].items():
        means = (fmean(of[str(d)]["success"] for of in by_seed.values()) for d in FAR)
        rows.append(f"| `{name}` | {' | '.join(f'{mean:.2f}' for mean in means)} |")
    return rows


def law_table() -> list[str]:
    """The laws of environment steps, as the rows of a table of Markdown."""
    rows = ["| schedule | exponent | steps at 16 | held out: distance, measured, band |", "|---" * 4 + "|"]
    for group in load_fits(OUT / "laws_env_steps.json")["groups"]:
        of, (lo, hi) = group["fit"]["values"], group["fit"]["intervals"]["exponent"]
        held = "; ".join(
            f"{d:g}: {real:,.0f}, {low:,.0f} to {high:,.0f}, {'inside' if low <= real <= high else 'outside'}"
            for d, real, _, low, high in group.get("held_out", ())
        )
        at = np.exp(of["log_factor"]) * NEAR ** of["exponent"]
        rows.append(f"| `{group['setting']}` | {of['exponent']:.2f} [{lo:.2f}, {hi:.2f}] | {at:,.0f} | {held or '-'} |")
    return rows


def laws() -> None:
    """Fits what distances cost, in each of `SPENT`, up to `NEAR`; says which schedules have too few points."""
    for y in SPENT:
        groups, left = [], {}
        for name in NAMES:
            try:
                if runs := sorted(RUNS.glob(f"{name}-*")):
                    groups += fit_runs(runs, RisingPower(), "goal_distance", y, "name", NEAR)["groups"]
            except (FitError, ls.RunError) as e:
                left[name] = str(e).partition("\n")[0]
        if groups:
            found = {"x": "goal_distance", "y": y, "by": "name", "until": NEAR, "groups": groups, "without": left}
            (OUT / f"laws_{y}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
            print(y, fits_as_text(found), left, sep="\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        run(tuple(map(int, sys.argv[2:])) or SEEDS)
    elif sys.argv[1:2] == ["draw"]:
        draw()
    else:
        sys.exit(__doc__)
