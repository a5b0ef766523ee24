"""The learning curve of `gateway_sites.py`, an agent that only calls a chat API, beside that of the native loop.

    python examples/gateway_curve.py run    # trains both sides, one after the other, or goes on with what was stopped
    python examples/gateway_curve.py draw

The runs stand below runs/gateway_curve/. Writes docs/gateway_curve.json (both curves, and how many turns have the same
ids) and .svg, which takes matplotlib: `pip install 'longstride[plot]' openai`.
"""

import json
import sys
from pathlib import Path

from gateway_sites import NATIVE, RECIPE
from matplotlib import rc_context
from matplotlib.figure import Figure

from longstride.core.provenance import commit
from longstride.rollout import TrajectoryStore

SMALL = {
    "iterations": 3,
    "episodes_per_iteration": 32,
    "engine": {"processes": 1},
    "learner": {"decay_steps": 2000, "batch_samples": 32},
    "evaluation": {"every": 3, "baselines": False, "tasks": 12},
    "seed": 920,
}
"""No more episodes than play at once, so both sides sample the same batches."""
SIDES = {"native": "the native loop", "gateway": "a program with the package openai"}
RUNS, OUT = Path("runs/gateway_curve"), Path("docs/gateway_curve")


def run() -> None:
    """Trains both sides."""
    for name, recipe in {"native": NATIVE, "gateway": RECIPE}.items():
        folder = RUNS / name
        recipe.replace(**SMALL).train(folder, resume=folder.exists())


def draw() -> None:
    """Keeps what came, and a figure of it; turns are compared as far as both sides have gone."""
    rows = {
        name: [json.loads(line) for line in (RUNS / name / "metrics.jsonl").read_text("utf-8").splitlines()]
        for name in SIDES
    }
    curves = {
        name: {
            "env_steps": [row["total_env_steps"] for row in found if row["kind"] == "train"],
            "success": [row["summary"]["success"] for row in found if row["kind"] == "train"],
            "held_out": [row["summary"]["success"] for row in found if row["kind"] == "eval"],
            "seconds": round(found[-1]["seconds"], 1),
        }
        for name, found in rows.items()
    }
    ours, theirs = (TrajectoryStore(RUNS / name / "trajectories.jsonl") for name in SIDES)
    pairs = [
        (a.prompt_ids, a.sampled_ids) == (b.prompt_ids, b.sampled_ids)
        for t, s in zip(ours, theirs, strict=False)
        for a, b in zip(t.turns, s.turns, strict=True)
    ]
    kept = {"commit": commit(), "turns": len(pairs), "turns_with_equal_ids": sum(pairs), "curves": curves}
    OUT.with_suffix(".json").write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    ax = figure.subplots()
    for (name, label), look in zip(SIDES.items(), ({"linewidth": 5, "alpha": 0.4}, {"marker": "o"}), strict=True):
        ax.plot(curves[name]["env_steps"], curves[name]["success"], label=label, **look)
    ax.set(xlabel="turns played so far", ylabel="success of an iteration's episodes", ylim=(0, 1))
    ax.legend()
    with rc_context({"svg.hashsalt": OUT.name}):  # the same plot is the same file
        figure.savefig(OUT.with_suffix(".svg"), metadata={"Date": None})
    print(json.dumps(kept))


if __name__ == "__main__":
    {"run": run, "draw": draw}[sys.argv[1]]()
