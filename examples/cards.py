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
from typing import Any

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


def kept() -> list[dict[str, Any]]:
    """All cards."""
    return [json.loads(path.read_text("utf-8")) for path in sorted(OUT.glob("*.json"))]


def table() -> list[str]:
    """What was predicted and what came, as the rows of a table of Markdown."""
    rows = ["| policy | within | predicted of twice that | measured | |", "|---" * 5 + "|"]
    for card in kept():
        said, came = card["forecast"], card["measured"]
        told = {None: "nothing to predict", True: "hit", False: "miss"}[came["hit"]]
        also = ', as "no change" would have been' if came["hit"] and came["unchanged"] else ""
        interval = f"{said['mean']:.3f} [{said['lo']:.3f}, {said['hi']:.3f}]"
        within = f"{said['budget']:g} {card['unit']}: {said['success']:.3f}"
        rows.append(f"| `{card['policy']}` | {within} | {interval} | {came['success']:.3f} | {told}{also} |")
    return rows


def draw() -> None:
    """Predictions beside what was measured."""
    cards = kept()
    said, came = [card["forecast"] for card in cards], [card["measured"]["success"] for card in cards]
    figure = Figure(figsize=(6.4, 1 + 0.4 * len(cards)), layout="constrained")
    ax, rows = figure.subplots(), np.arange(len(cards))[::-1]
    ends = [[s["mean"] - s["lo"] for s in said], [s["hi"] - s["mean"] for s in said]]
    now = [s["success"] for s in said]
    ax.plot(now, rows, "|", color="0.5", markersize=14, label="within the budget")
    ax.errorbar([s["mean"] for s in said], rows, xerr=ends, fmt="none", color="#b87800", linewidth=5, label="predicted")
    ax.plot(came, rows, "o", color="#0068a8", label="measured at twice the budget")
    ax.set_yticks(rows, [f"{card['policy']}, {s['at']:g} {card['unit']}" for card, s in zip(cards, said, strict=True)])
    ax.set(xlabel="success")
    figure.legend(loc="outside upper center", ncols=3, fontsize="small")
    with rc_context({"svg.hashsalt": "cards"}):  # the same plot is the same file
        figure.savefig(OUT.with_suffix(".svg"), metadata={"Date": None})
    told = [card["measured"]["hit"] for card in cards if card["measured"]["hit"] is not None]
    cheap = sum(bool(card["measured"]["hit"] and card["measured"]["unchanged"]) for card in cards)
    print(*table(), sep="\n")
    print(f"{sum(told)} of {len(told)} predictions hit, {cheap} of them also by 'no change'")


if __name__ == "__main__":
    for wanted in (*STARTS, *sys.argv[1:]):
        measure(wanted)
    draw()
