"""Learning inside a context: what a policy earns, episode by episode, beside the learners that it was taught by, and
its regret, added up over the episodes.

    python examples/in_context.py run [WORLD ...]     # bandits, dark_rooms, corridors; what is there is not run again
    python examples/in_context.py draw                # docs/in_context.json and docs/in_context.svg

Runs lie below runs/in_context/. The figure takes matplotlib (`pip install 'longstride[plot]'`).
"""

import json
import sys
from itertools import accumulate
from pathlib import Path
from statistics import fmean
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

import longstride as ls
from longstride.core.provenance import commit
from longstride.run.histories import LearningHistories
from longstride.setups import trials
from longstride.stats import mean_interval
from longstride.strategies.learners import UCB, AnyChoice, GreedyMean, Optimal, QLearning, Thompson

RUNS, OUT = Path("runs/in_context"), Path("docs/in_context")
SEED = 970
"""Of all runs; on bandits the steps and the rate of training were chosen by it, in two tries."""
MOST = {"bandits": "reward of 5 pulls", "dark_rooms": "turns at the goal, of 8", "corridors": "share of ends reached"}
"""What an episode earns, by world."""
SOURCES = {"bandits": "thompson", "dark_rooms": "q_learning", "corridors": "q_learning"}
"""Whose histories are imitated, by world."""
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
        beside=(Thompson(), UCB(), GreedyMean(), AnyChoice()),
    ),
    "dark_rooms": trials.recipe(
        "in_context/dark_rooms",
        LearningHistories(learner=QLearning(), labels=Optimal()),
        tasks=trials.ROOMS,
        episodes=8,
        trials=4000,
        beside=(QLearning(), AnyChoice()),
    ),
    "corridors": trials.recipe(
        "in_context/corridors",
        LearningHistories(learner=QLearning(), labels=Optimal()),
        tasks=trials.CORRIDORS,
        episodes=10,
        trials=4000,
        beside=(QLearning(), AnyChoice()),
    ),
}


def run(worlds: tuple[str, ...]) -> None:
    """Trains a policy in each world."""
    for world in worlds:
        recipe, folder = RECIPES[world].replace(seed=SEED), RUNS / world
        if not ended(folder):
            recipe.train(folder, resume=folder.exists())
        print(world, {name: [round(m[0], 2) for m in curve] for name, curve in curves(world).items()}, flush=True)
    keep()


def ended(folder: Path) -> bool:
    """Whether a run has its last evaluation."""
    rows = ls.load_run(folder).metrics.where(kind="eval") if folder.exists() else []
    return bool(rows) and rows[-1]["iteration"] == 1


def curves(world: str, measure: str = "reward", added_up: bool = False) -> dict[str, list[tuple[float, float, float]]]:
    """What is measured of each who plays, in each episode or in all up to it: mean over held-out rules, and its
    interval. A rule of which an episode failed is in none of them."""
    found = {}
    for row in ls.load_run(RUNS / world).metrics.where(kind="eval"):
        if row["iteration"] != 1:
            continue
        episodes = range(1, RECIPES[world].trial.episodes + 1)
        rules = zip(*(row["measures"][f"{measure}@{k}"] for k in episodes), strict=True)
        whole = [list(accumulate(of) if added_up else of) for of in rules if None not in of]
        found[row["strategy"]] = [(fmean(of), *mean_interval(of, seed=0)) for of in zip(*whole, strict=True)]
    return found


def keep() -> None:
    """Keeps what the runs gave, beside what is kept of worlds without one."""
    path = OUT.with_suffix(".json")
    data: dict[str, Any] = json.loads(path.read_text("utf-8"))
    for world in RECIPES:
        if ended(RUNS / world):
            regret = curves(world, "regret", added_up=True)
            data["worlds"][world] = {"commit": commit(), "curves": curves(world), "regret": regret}
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def draw() -> None:
    """Draws what is kept."""
    kept = json.loads(OUT.with_suffix(".json").read_text("utf-8"))["worlds"]
    figure = Figure(figsize=(3.4 * len(kept), 6.4), layout="constrained")
    axes = figure.subplots(2, len(kept), squeeze=False)
    for column, (world, found) in enumerate(kept.items()):
        _curves(axes[0, column], found["curves"], world)
        axes[0, column].set(title=world.replace("_", " "), ylabel=MOST[world])
        _curves(axes[1, column], found["regret"], world)
        axes[1, column].set(ylabel="regret so far", xlabel="episode in one context")
        axes[1, column].legend(fontsize="x-small", loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
    with rc_context({"svg.hashsalt": OUT.name}):  # the same plot is the same file
        figure.savefig(OUT.with_suffix(".svg"), metadata={"Date": None})


def _curves(ax: Axes, curves: dict[str, list[tuple[float, float, float]]], world: str) -> None:
    for name, curve in curves.items():
        mean, low, high = zip(*curve, strict=True)
        x, color = range(1, len(curve) + 1), COLORS.get(name, "0.5")
        ax.fill_between(x, low, high, color=color, alpha=0.12, linewidth=0)
        label = NAMES[name] + ", the source" * (name == SOURCES[world])
        ax.plot(x, mean, color=color, linewidth=2 if name == "direct" else 1, label=label)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        run(tuple(sys.argv[2:]) or tuple(RECIPES))
    elif sys.argv[1:2] == ["draw"]:
        draw()
    else:
        sys.exit(__doc__)
