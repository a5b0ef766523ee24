"""What `make train` reaches, on three seeds, and what its policies do within other horizons than they were trained for.

    python examples/main_job.py run [SEED ...]   # what is there already is not run again
    python examples/main_job.py table

The runs stand below runs/main_job/; docs/tti_main_job.json keeps what README.md and docs/tti.md say of them.
"""

import json
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

import longstride as ls
from longstride.core.provenance import commit
from longstride.papers.tti.recipe import RECIPE
from longstride.run.folder import read_rows

SEEDS = (31, 32, 33)
"""No setting was chosen on them."""
HORIZONS = (8, 16, 24, 32, 48)
RUNS, KEPT = Path("runs/main_job"), Path("docs/tti_main_job.json")
ROWS = {
    "new tasks of training templates": ("new", "success"),
    "of them supported: the answer rests on pages that were seen": ("new", "supported"),
    "hard ones": ("new", "hard"),
    "held-out templates": ("held_out", "success"),
    "turns that move nothing": ("new", "idle"),
}


def run(seeds: tuple[int, ...]) -> None:
    """Trains, tests within every horizon, and keeps what came."""
    for seed in seeds:
        folder = RUNS / str(seed)
        if not (tested := folder / "horizons.json").exists():
            recipe = RECIPE.replace(seed=seed)
            recipe.train(folder, resume=folder.exists())
            sides = {"before": RECIPE.model, "after": folder}
            found = {
                side: {h: brief(ls.evaluate(of, recipe, test_budget={"turns": h}).summary) for h in HORIZONS}
                for side, of in sides.items()
            }
            tested.write_text(json.dumps(found), encoding="utf-8")
        print(folder, json.loads(tested.read_text("utf-8"))["after"], flush=True)
    kept = {int(path.name): of_run(path) for path in sorted(RUNS.iterdir()) if (path / "horizons.json").exists()}
    KEPT.write_text(json.dumps({"commit": commit(), "seeds": kept}, indent=1) + "\n", encoding="utf-8")


def of_run(folder: Path) -> dict[str, Any]:
    """The evaluations before and after training, and what it took."""
    rows = [row for row in read_rows(folder / "metrics.jsonl") if row.get("policy") in ("warm_start", "agent")]
    new, held_out = ([row["summary"] for row in rows if row["kind"] == kind] for kind in ("eval", "beside"))
    return {
        "episodes": rows[-1]["total_episodes"],
        "env_steps": rows[-1]["total_env_steps"],
        "seconds": round(rows[-1]["seconds"]),
        "before": {"new": brief(new[0]), "held_out": brief(held_out[0])},
        "after": {"new": brief(new[-1]), "held_out": brief(held_out[-1])},
        "horizons": json.loads((folder / "horizons.json").read_text("utf-8")),
    }


def brief(summary: dict[str, Any]) -> dict[str, float]:
    """What the tables have of a summary."""
    found = {name: round(summary[name], 4) for name in ("success", "supported", "length", "timeouts", "idle")}
    return found | {"hard": round(summary["by_difficulty"]["hard"]["success"], 4)}


def table() -> list[str]:
    """What training brings, as the rows of a table of Markdown: the mean of the seeds, and each."""
    rows = []
    for row, (tasks, name) in ROWS.items():
        of = {side: [run[side][tasks][name] for run in runs()] for side in ("before", "after")}
        unit = percent if name == "idle" else "{:.3f}".format
        means = " | ".join(unit(fmean(of[side])) for side in of)
        rows.append(f"| {row} | {means} | {', '.join(map(unit, of['after']))} |")
    return rows


def horizon_table() -> list[str]:
    """The same policies within other horizons."""
    rows = []
    for horizon in map(str, HORIZONS):
        cells = []
        for name, form in (("success", ".3f"), ("supported", ".3f"), ("length", ".1f"), ("timeouts", ".2f")):
            ends = (fmean(run["horizons"][side][horizon][name] for run in runs()) for side in ("before", "after"))
            cells.append(" to ".join(format(end, form) for end in ends))
        rows.append(f"| {horizon} | {' | '.join(cells)} |")
    return rows


def runs() -> list[dict[str, Any]]:
    """What is kept of each seed."""
    return list(json.loads(KEPT.read_text("utf-8"))["seeds"].values())


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        run(tuple(map(int, sys.argv[2:])) or SEEDS)
    elif sys.argv[1:2] == ["table"]:
        print(*table(), *horizon_table(), sep="\n")
    else:
        sys.exit(__doc__)
