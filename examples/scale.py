"""What TTI at the paper's size takes on 1, 8 and 64 cards, by `longstride plan`: the tables of docs/scale.md.

    python examples/scale.py      # writes docs/scale.json and the tables of docs/scale.md

Needs no card, no hub and no weights.
"""

import json
from pathlib import Path
from typing import Any

from longstride.cli.plan import as_data
from longstride.core.config import resolve
from longstride.papers.naming import find_experiment
from longstride.run.cards import card_of
from longstride.run.plan import forecast
from longstride.run.recipe import Recipe

RECIPE = "tti/published"
ASSUMED = {"tokens": 256.0, "page": 1500.0, "head": 1000.0, "latency": 2.0}
"""Of an agent on the web that thinks before it acts and reads pages as text; `longstride plan --assume`."""
ADAPTERS, AHEAD = "learner.lora={}", "pool.staleness=1"
ASKED = (
    ("H100", 1, (ADAPTERS,)),
    ("H100", 8, (ADAPTERS,)),
    ("H100", 8, (ADAPTERS, AHEAD)),
    ("H100", 64, (ADAPTERS, AHEAD)),
    ("H100", 64, (ADAPTERS, AHEAD, "learner.batch_samples=512")),
    ("H100", 8, ()),
    ("H200", 8, ()),
    ("H200", 8, (AHEAD,)),
    ("H200", 64, (AHEAD,)),
)
"""Cards and changes of the recipe."""
KEPT, PAGE = Path("docs/scale.json"), Path("docs/scale.md")
HEADS = {
    "plans": "| cards | changes | layout | fits | hours | card-hours | bound by |",
    "phases": "| cards | changes | decoding | reading | waiting | learning | weights | an iteration |",
    "utilisation": "| under way a place | 0 ahead | 1 ahead | 4 ahead |",
    "cost": "| in flight | a turn, us | an episode, kB |",
    "held": "| | predicted | measured | measured : predicted |",
}


def plan(card: str, cards: int, changes: tuple[str, ...]) -> dict[str, Any]:
    """A plan as it is kept."""
    found = find_experiment(RECIPE)
    assert isinstance(found, Recipe)
    kept = as_data(forecast(resolve(Recipe, found, list(changes)), cards, card_of(card), assumed=ASSUMED))
    return {name: value for name, value in kept.items() if name != "others"}


def tables() -> dict[str, list[str]]:
    """The rows of all tables, from what is kept: plans here, measurements under benchmarks/."""
    plans = json.loads(KEPT.read_text(encoding="utf-8"))
    return {name: [head, "|---" * (head.count("|") - 1) + "|", *_rows(name, plans)] for name, head in HEADS.items()}


def _rows(name: str, plans: list[dict[str, Any]]) -> list[str]:
    if name in ("plans", "phases"):
        return [_row(name, one) for one in plans]
    kept = Path("benchmarks") / ("plan.json" if name == "held" else "scheduler.json")
    values = {row["name"]: row for row in json.loads(kept.read_text(encoding="utf-8"))["rows"]}
    if name == "held":
        return [
            f"| {title} ({row['unit']}) | {_number(row['ours'])} | {_number(row['peer'])} | {row['value']:.2f} |"
            for title, row in values.items()
            if "peer" in row
        ]
    found: dict[str, list[str]] = {}
    for title, row in values.items():
        what, _, measure = title.partition(": ")
        if name == "cost" and " in flight" in what:
            found.setdefault(what.partition(" in flight")[0], []).append(_number(row["value"]))
        elif name == measure == "utilisation" and what.endswith(" under way a place"):
            found.setdefault(what.split()[2], []).append(f"{row['value']:.2f}")
    return [f"| {' | '.join([first, *cells])} |" for first, cells in found.items()]


def _row(name: str, one: dict[str, Any]) -> str:
    best, changes = one["best"], " ".join(f"`{change}`" for change in one["changes"])
    cells = [f"{one['cards']} x {one['card']['name']}", changes]
    if name == "plans":
        fits = "yes" if best["fits"] else "**no**"
        cells += [best["layout"]["in_words"], fits, f"{best['hours']:,.0f}", f"{best['card_hours']:,.0f}"]
        cells.append(best["bound"])
    else:
        cells += [f"{phase['seconds']:,.0f}" for phase in best["phases"]] + [f"{best['iteration']:,.0f}"]
    return f"| {' | '.join(cells)} |"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def write() -> None:
    """Plans, and writes the tables between the marks of the page."""
    found = [plan(*asked) | {"changes": asked[2]} for asked in ASKED]
    KEPT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    for name, rows in tables().items():
        before, _, rest = text.partition(HEADS[name])
        after = rest[rest.index("\n\n") :]
        text = before + "\n".join(rows) + after
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
