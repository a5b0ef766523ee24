"""Learning inside a context: what a policy earns, episode by episode, beside the learners that it was taught by.

    python examples/in_context.py run [WORLD ...]     # bandits, dark_rooms, corridors; what is there is not run again
    python examples/in_context.py draw                # docs/in_context.json and docs/in_context.svg

Runs lie below runs/in_context/. The figure takes matplotlib (`pip install 'longstride[plot]'`).
"""

import json
import sys
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

import longstride as ls
from longstride.core.provenance import commit
from longstride.run.histories import LearningHistories
from longstride.setups import trials
from longstride.stats import mean_interval
from longstride.strategies.learners import UCB, AnyChoice, GreedyMean, Optimal, QLearning, Thompson

RUNS, OUT = Path("runs/in_context"), Path("docs/in_context")
MOST = {"bandits": "reward of 5 pulls", "dark_rooms": "turns at the goal, of 8", "corridors": "share of ends reached"}
"""What an episode earns, by world."""
NAMES = {
    "direct": "policy, weights fixed",
    "thompson": "Thompson sampling",
    "ucb": "UCB1",
    "greedy_mean": "best mean so far",
    "q_learning": "Q-learning",
    "any_choice": "any choice",
}
COLORS = {
    "direct": "#0072b2",
    "thompson": "#d55e00",
    "q_learning": "#d55e00",
    "ucb": "#009e73",
    "greedy_mean": "#cc79a7",
}
RECIPES = {
    "bandits": trials.recipe(
        "in_context/bandits",
        LearningHistories(learner=Thompson(), labels=Optimal()),
        tasks=trials.BANDITS.replace(arms=3, pulls=5),
        episodes=6,
        cloning={"learner": {"epochs": 1}},
        beside=(Thompson(), UCB(), GreedyMean(), AnyChoice()),
    ),
    "dark_rooms": trials.recipe(
        "in_context/dark_rooms",
        LearningHistories(learner=QLearning(), labels=Optimal()),
        tasks=trials.ROOMS,
        episodes=8,
        trials=3000,
        cloning={"learner": {"epochs": 1}},
        beside=(QLearning(), AnyChoice()),
    ),
    "corridors": trials.recipe(
        "in_context/corridors",
        LearningHistories(learner=QLearning(), labels=Optimal()),
        tasks=trials.CORRIDORS,
        episodes=10,
        beside=(QLearning(), AnyChoice()),
    ),
}


def run(worlds: tuple[str, ...]) -> None:
    """Trains a policy in each world."""
    for world in worlds:
        recipe, folder = RECIPES[world].replace(evaluation={"tasks": 100}), RUNS / world
        if not ended(folder):
            recipe.train(folder, resume=folder.exists())
        print(world, {name: [round(m[0], 2) for m in curve] for name, curve in curves(world).items()}, flush=True)
    keep()


def ended(folder: Path) -> bool:
    """Whether a run has its last evaluation."""
    rows = ls.load_run(folder).metrics.where(kind="eval") if folder.exists() else []
    return bool(rows) and rows[-1]["iteration"] == 1


def curves(world: str) -> dict[str, list[tuple[float, float, float]]]:
    """Who earned what in each episode: mean over held-out rules, and its interval."""
    found = {}
    for row in ls.load_run(RUNS / world).metrics.where(kind="eval"):
        if row["iteration"] != 1:
            continue
        curve = []
        for k in range(RECIPES[world].trial.episodes):
            values = [v for v in row["measures"][f"reward@{k + 1}"] if v is not None]
            curve.append((sum(values) / len(values), *mean_interval(values, seed=0)))
        found[row["strategy"]] = curve
    return found


def keep() -> None:
    """Keeps what the runs gave, beside what is kept of worlds without one."""
    path = OUT.with_suffix(".json")
    data: dict[str, Any] = json.loads(path.read_text("utf-8"))
    for world in RECIPES:
        if ended(RUNS / world):
            data["worlds"][world] = {"commit": commit(), "curves": curves(world)}
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def draw() -> None:
    """Draws what is kept."""
    kept = json.loads(OUT.with_suffix(".json").read_text("utf-8"))["worlds"]
    figure = Figure(figsize=(3.4 * len(kept), 3.8), layout="constrained")
    for ax, (world, found) in zip(figure.subplots(1, len(kept), squeeze=False)[0], kept.items(), strict=True):
        for name, curve in found["curves"].items():
            mean, low, high = zip(*curve, strict=True)
            x, color = range(1, len(curve) + 1), COLORS.get(name, "0.5")
            ax.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)
            ax.plot(x, mean, color=color, linewidth=2 if name == "direct" else 1, label=NAMES[name])
        ax.set(title=world.replace("_", " "), xlabel="episode in one context", ylabel=MOST[world])
        ax.legend(fontsize="x-small", loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
    with rc_context({"svg.hashsalt": OUT.name}):  # the same plot is the same file
        figure.savefig(OUT.with_suffix(".svg"), metadata={"Date": None})


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        run(tuple(sys.argv[2:]) or tuple(RECIPES))
    elif sys.argv[1:2] == ["draw"]:
        draw()
    else:
        sys.exit(__doc__)
