"""`longstride plan`: what a run takes on cards before they are rented: layout, memory, speed by phase, hours, and what
bounds it. Nothing is loaded and no card is needed."""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longstride.cli.common import experiment_from, print_json, say
from longstride.core.errors import ConfigError

if TYPE_CHECKING:
    from longstride.run.plan import CardPlan, RunForecast


def add(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "plan",
        help="say what a run takes, before it is run",
        description=__doc__,
        epilog="example: longstride plan tti model=Qwen/Qwen3-8B --cards 8 --card H100",
        allow_abbrev=False,
    )
    parser.add_argument("recipe", metavar="RECIPE", help="as of `longstride train`")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="replaces a field of the recipe")
    parser.add_argument("--cards", type=int, default=1, metavar="N", help="how many (default: 1)")
    parser.add_argument("--card", metavar="NAME", help="H100, H200, B200, A100, L40S or RTX4090")
    parser.add_argument(
        "--from",
        dest="run_folder",
        type=Path,
        metavar="RUN",
        help="a run of the same tasks, which says what is assumed otherwise; without --card its machine is planned for",
    )
    parser.add_argument(
        "--assume",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        help="ends (chance that an episode ends at a turn), tokens (sampled in a turn), page and head (tokens), "
        "latency (seconds of a step; needs --card), trained (share of episodes); may be given more than once",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the plan; 0 also where nothing fits, which it says."""
    from longstride.core.config import resolve
    from longstride.run.cards import card_of
    from longstride.run.plan import forecast
    from longstride.run.recipe import Recipe

    base = experiment_from(args.recipe)
    if not isinstance(base, Recipe):
        raise ConfigError(f"plans are for language agents, and {args.recipe} is of a {base.type_name()}")
    if args.cards < 1:
        raise ConfigError(f"--cards is at least 1; got {args.cards}")
    card = card_of(args.card) if args.card else None
    assumed = dict(_number(word) for word in args.assume)
    found = forecast(resolve(Recipe, base, args.overrides), args.cards, card, args.run_folder, assumed)
    print_json(as_data(found)) if args.json else say(as_text(found))
    return 0


def _number(word: str) -> tuple[str, float]:
    name, _, value = word.partition("=")
    try:
        return name, float(value)
    except ValueError:
        raise ConfigError(f"--assume {word}: expected NAME=NUMBER") from None


def as_data(found: "RunForecast") -> dict[str, Any]:
    """A forecast as plain data: bytes, seconds, tokens."""
    better = found.better and {"change": found.better[0], **_plan_data(found.better[1])}
    return {
        "recipe": found.recipe.name,
        "model": found.recipe.model,
        "parameters": found.shape.parameters,
        "card": asdict(found.card),
        "cards": found.cards,
        "best": _plan_data(found.best),
        "others": [_plan_data(plan) for plan in found.plans[1:4]],
        "better": better,
        "facts": {name: asdict(fact) for name, fact in found.facts.items()},
    }


def _plan_data(plan: "CardPlan") -> dict[str, Any]:
    more = {"fits": plan.fits, "card_hours": plan.card_hours, "bound": plan.bound}
    phases = [asdict(phase) | {"rate": phase.rate} for phase in plan.phases]
    return asdict(plan) | more | {"phases": phases, "layout": asdict(plan.layout) | {"in_words": str(plan.layout)}}


def as_text(found: "RunForecast") -> str:
    """A forecast for a person."""
    from longstride.report.tables import table
    from longstride.run.plan import NOT_COUNTED

    best, r = found.best, found.recipe
    gib = 2.0**30
    lines = [
        f"{r.name}: {r.model} ({found.shape.parameters / 1e9:.2f}B parameters) on {found.cards} x {found.card.name}",
        f"layout: {best.layout}",
        f"        {' '.join((*best.layout.settings, *best.settings))}".rstrip(),
        "",
    ]
    both = [
        ("learner's card", best.learner),
        ("while it samples" if best.layout.shared else "engine's card", best.engine),
    ]
    for title, parts in both:
        rows = [[name, f"{size / gib:8.1f}"] for name, size in parts.items()]
        lines += [table([[title, "     GiB"], *rows, ["in all", f"{sum(parts.values()) / gib:8.1f}"]]), ""]
    room = f"a card has room for {best.room / gib:.1f} GiB"
    lines += [room if best.fits else f"DOES NOT FIT: {room}; learner.lora={{}} or more cards take less a card", ""]
    rows = [["an iteration", "seconds", "tokens/s", "bound by"]]
    for phase in best.phases:
        rate = f"{phase.rate:,.0f}" if phase.tokens else ""
        rows.append([phase.name, f"{phase.seconds:,.1f}", rate, phase.bound if phase.seconds else ""])
    how = "learning beside the rest" if best.ahead else "one after the other"
    lines += [table([*rows, ["in all", f"{best.iteration:,.1f}", "", how]]), ""]
    lines += [
        f"to the end of {r.iterations} iterations: {best.hours:,.2f} hours, {best.card_hours:,.1f} card-hours",
        f"bound by {best.bound}; {best.in_flight:,.0f} episodes in flight an engine",
    ]
    if found.better:
        change, plan = found.better
        lines.append(
            f"next better: {change} ({plan.layout}): {plan.hours:,.2f} hours, {plan.card_hours:,.1f} card-hours"
        )
    others = [p for p in found.plans[1:4] if p.fits]
    if others:
        lines.append("other layouts: " + "; ".join(f"{p.layout}: {p.hours:,.2f} hours" for p in others))
    facts = [["what went in", "", "", ""]]
    facts += [[name, f"{fact.value:,.6g}", fact.kind, fact.source] for name, fact in found.facts.items()]
    lines += ["", table(facts), "", "Memory is derived from the configuration, times from the numbers above."]
    lines += [f"Not counted: {NOT_COUNTED}."]
    return "\n".join(lines)
