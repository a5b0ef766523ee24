"""`longstride eval`: a run or a model on held-out tasks, beside the warm start and the trivial policies."""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from longstride.cli.common import RUN_FILE, print_json, recipe_from

if TYPE_CHECKING:
    from longstride.core.task import Task
    from longstride.strategies import Strategy
    from longstride.training.recipe import Recipe

MODEL_RECIPES = {"base-keep-last": "webagent_r1", "base-miniwob": "tti_miniwob", "base-puzzles": "grpo"}
"""Give tasks, horizon and context where a model is evaluated and no run says which; `tti` for any other model."""


def add(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser("eval", help="evaluate a run or a model", description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "target", metavar="RUN_OR_MODEL", help="a run folder, `base`, a model folder or a Hugging Face name"
    )
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="replaces a setting of the run's recipe")
    parser.add_argument(
        "--strategy", choices=("direct", "check-again", "anytime"), default="direct", help="what is done at test time"
    )
    parser.add_argument(
        "--checks", type=_span, default=range(2, 3), metavar="N|A..B", help="answers needed by check-again (1..4)"
    )
    parser.add_argument(
        "--tasks", action="append", default=[], metavar="N|SOURCE",
        help="how many held-out tasks, or where they come from, such as miniwob (default: as in the recipe)",
    )  # fmt: skip
    parser.add_argument("--browser", choices=("text", "chromium"), help="what the embedded sites are seen with")
    parser.add_argument(
        "--horizon", type=int, metavar="N", help="turns of an episode (default: the recipe's test horizon)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=run)


def _span(text: str) -> range:
    match = re.fullmatch(r"([1-4])(?:\.\.([1-4]))?", text)
    if not match or int(match[2] or match[1]) < int(match[1]):
        raise argparse.ArgumentTypeError(f"expected a number from 1 to 4 or a span such as 1..4, got {text!r}")
    return range(int(match[1]), int(match[2] or match[1]) + 1)


def run(args: argparse.Namespace) -> int:
    """Prints a row for each policy and strategy."""
    from longstride.core.config import resolve
    from longstride.strategies import Anytime, CheckAgain, Direct
    from longstride.training.recipe import Recipe

    toml = Path(args.target) / RUN_FILE
    overrides = [f"evaluation.tasks={t}" if t.lstrip("-").isdecimal() else f"tasks.type={t}" for t in args.tasks]
    if args.browser:
        overrides.append(f"tasks.browser={args.browser}")
    if args.horizon is not None:
        overrides.append(f"test_horizon={{type='fixed', limit={args.horizon}}}")
    overrides += args.overrides
    whose = str(toml) if toml.is_file() else MODEL_RECIPES.get(args.target, "tti")
    recipe = resolve(Recipe, recipe_from(whose), overrides)
    tasks = recipe.tasks.held_out(recipe.evaluation.tasks)
    strategies = {
        "direct": [Direct()],
        "check-again": [CheckAgain(checks=n) for n in args.checks],
        "anytime": [Anytime()],
    }
    rows = _rows(args.target, recipe, tasks, strategies[args.strategy])
    if args.json:
        print_json({"target": args.target, "tasks": len(tasks), "seed": recipe.seed, "rows": rows})
    else:
        _print_table(rows, len(tasks))
    return 0


def _rows(
    target: str, recipe: "Recipe", tasks: "Sequence[Task]", strategies: "Sequence[Strategy]"
) -> list[dict[str, Any]]:
    """Rows with the keys of an evaluation in `metrics.jsonl`."""
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from longstride.models.load import load_policy
    from longstride.training.evaluate import evaluate_baselines, evaluate_policy, limits_by_difficulty, load_run

    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:

        def watch(name: str) -> Any:
            bar = bars.add_task(name, total=len(tasks))
            return lambda done, total: bars.update(bar, completed=done, total=total)

        path = Path(target)
        agent = load_run(path)[1] if (path / RUN_FILE).is_file() else load_policy(target)
        start = load_policy(recipe.model) if target != recipe.model else None
        results = [("agent", s.name, evaluate_policy(agent, recipe, tasks, s, watch(s.name))) for s in strategies]
        if start is not None:
            results.append(("warm_start", "direct", evaluate_policy(start, recipe, tasks, None, watch("warm start"))))
        baselines = evaluate_baselines(recipe, tasks, watch("baselines"))
        results += [(name, "direct", result) for name, result in baselines.items()]
    horizon = limits_by_difficulty(recipe.test_horizon, 1)
    return [
        {
            "policy": p,
            "strategy": s,
            "horizon": horizon,
            "summary": r.summary,
            "interval": list(r.interval),
            "measures": r.measures,
        }
        for p, s, r in results
    ]


def _print_table(rows: list[dict[str, Any]], tasks: int) -> None:
    horizon = rows[0]["horizon"]
    turns = " / ".join(map(str, horizon.values())) if len(set(horizon.values())) > 1 else horizon["easy"]
    print(f"{tasks} held-out tasks, horizon {turns}, 95 % intervals")
    print(
        f"{'policy':15}{'strategy':15}{'success':21}{'easy':6}{'medium':8}{'hard':6}{'length':8}{'timeouts':10}invalid"
    )
    for row in rows:
        s, (low, high) = row["summary"], row["interval"]
        easy, medium, hard = (
            f"{s['by_difficulty'][d]['success']:.2f}" if d in s["by_difficulty"] else "-" for d in horizon
        )
        success = f"{s['success']:.2f} [{low:.2f}, {high:.2f}]"
        print(
            f"{row['policy']:15}{row['strategy']:15}{success:21}{easy:6}{medium:8}{hard:6}"
            f"{s['length']:<8.1f}{s['timeouts']:<10.2f}{s['invalid']:.2f}"
        )
    for row in rows:
        if values := [v for v in row["measures"].get("anytime", ()) if v is not None]:
            print(f"{row['policy']} {row['strategy']}: anytime {fmean(values):.3f} (1 - normalised regret)")
    if failed := sum(row["summary"]["failed"] for row in rows):
        print(f"{failed} episodes failed for reasons of infrastructure; they are in no figure above")
