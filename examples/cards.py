"""The horizon cards of the shipped starts, and of runs that are named, with the hit rate of their predictions.

    python examples/cards.py [RUN ...]

Writes a card for each into docs/horizons/cards/ where there is none (a page stands beside it below runs/cards/), and
docs/horizons/cards.svg: what was predicted of twice the budget, and what came. The figure takes matplotlib:
`pip install 'longstride[plot]'`.
"""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from longstride.cli.main import main

STARTS = ("base", "base-wander", "base-keep-last", "base-puzzles", "base-thoughts", "base-dial")
OUT, PAGES = Path("docs/horizons/cards"), Path("runs/cards")


def measure(target: str) -> None:
    """Makes the card of a model or a run, and keeps its data."""
    name = Path(target).name
    if not (OUT / f"{name}.json").exists() and not main(["card", target, "--samples", "1", "--out", str(PAGES / name)]):
        OUT.mkdir(parents=True, exist_ok=True)
        shutil.copy(PAGES / name / "card.json", OUT / f"{name}.json")


def draw() -> None:
    """Predictions beside what was measured."""
    cards = [json.loads(path.read_text("utf-8")) for path in sorted(OUT.glob("*.json"))]
    said, came = [card["forecast"] for card in cards], [card["measured"]["success"] for card in cards]
    figure = Figure(figsize=(6.4, 0.5 + 0.45 * len(cards)), layout="constrained")
    ax, rows = figure.subplots(), np.arange(len(cards))[::-1]
    ends = [[s["mean"] - s["lo"] for s in said], [s["hi"] - s["mean"] for s in said]]
    now = [s["success"] for s in said]
    ax.plot(now, rows, "|", color="0.5", markersize=14, label="within the budget")
    ax.errorbar([s["mean"] for s in said], rows, xerr=ends, fmt="none", color="#b87800", linewidth=5, label="predicted")
    ax.plot(came, rows, "o", color="#0068a8", label="measured at twice the budget")
    ax.set_yticks(rows, [f"{card['policy']}, {s['at']:g} {card['unit']}" for card, s in zip(cards, said, strict=True)])
    ax.set(xlabel="success")
    ax.legend(fontsize="small")
    with rc_context({"svg.hashsalt": "cards"}):  # the same plot is the same file
        figure.savefig(OUT.with_suffix(".svg"), metadata={"Date": None})
    told = [card["measured"]["hit"] for card in cards if card["measured"]["hit"] is not None]
    cheap = sum(bool(card["measured"]["hit"] and card["measured"]["unchanged"]) for card in cards)
    print(f"{sum(told)} of {len(told)} predictions hit, {cheap} of them also by 'no change'")


if __name__ == "__main__":
    for wanted in (*STARTS, *sys.argv[1:]):
        measure(wanted)
    draw()
