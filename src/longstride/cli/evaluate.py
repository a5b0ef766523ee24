"""`longstride eval`: a run or a model on held-out tasks, beside the warm start and, where the recipe asks for them
(`evaluation.baselines`), the trivial policies."""

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from longstride import papers
from longstride.cli.common import RUN_FILE, print_json
from longstride.core.errors import ConfigError

if TYPE_CHECKING:
    from longstride.core.task import Task
    from longstride.models.load import Policy
    from longstride.run.experiment import Experiment
    from longstride.run.recipe import Recipe
    from longstride.strategies import Strategy

Watch = Callable[[str], Callable[[int, int], None]]
"""Gives a progress callback (done, total) for what is evaluated."""
MODEL_RECIPES = {
    "base-keep-last": "webagent_r1",
    "base-miniwob": "tti/miniwob",
    "base-puzzles": "grpo",
    "base-thoughts": "grpo",
}
"""Give tasks, horizon and context where a model is evaluated and no run says which; `tti` for any other model."""
SCORERS = ("generative", "pairwise")
"""Those that need nothing but their name."""


def add(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser("eval", help="evaluate a run or a model", description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "target", metavar="RUN_OR_MODEL", help="a run folder, `base`, a model folder or a Hugging Face name"
    )
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="replaces a setting of the run's recipe")
    parser.add_argument(
        "--strategy",
        choices=("direct", "check-again", "anytime", "think-on", "best-of", "revise", "delegate"),
        default="direct",
        help="what a language agent does at test time",
    )
    parser.add_argument(
        "--checks", type=_span, default=range(2, 3), metavar="N|A..B", help="answers needed by check-again (1..4)"
    )
    parser.add_argument(
        "--times", type=int, metavar="N",
        help="how often think-on makes each thought go on, at most (default: 1; with --thought until it is so long)",
    )  # fmt: skip
    parser.add_argument(
        "--thought", type=int, metavar="TOKENS", help="tokens at which think-on ends each thought by force"
    )
    parser.add_argument(
        "--samples", type=int, default=4, metavar="N", help="episodes of a task under best-of (default: 4)"
    )
    parser.add_argument(
        "--answers", type=int, default=2, metavar="N", help="answers under revise, one after the other (default: 2)"
    )
    parser.add_argument("--to", metavar="RUN_OR_MODEL", help="who goes on under delegate")
    parser.add_argument(
        "--below", type=float, default=0.5, metavar="SHARE",
        help="mean probability of a token under which delegate hands over (default: 0.5)",
    )  # fmt: skip
    parser.add_argument(
        "--each", choices=("episode", "turn", "step"), default="episode", help="what delegate hands over"
    )
    parser.add_argument(
        "--by",
        choices=("majority", "verifier", "likelihood", *SCORERS),
        default="majority",
        help="which of them counts: that with the most frequent answer, one that is right, the most likely one, that "
        "which the policy says is right, or is better than the others",
    )
    parser.add_argument(
        "--scorer",
        type=Path,
        metavar="FILE",
        help="a TOML file of what chooses instead: `scorer`, and `judge` if it is not the policy that is asked",
    )
    parser.add_argument(
        "--tasks", action="append", default=[], metavar="N|SOURCE",
        help="how many held-out tasks, or where they come from, such as miniwob (default: as in the recipe)",
    )  # fmt: skip
    parser.add_argument("--browser", choices=("text", "chromium"), help="what the embedded sites are seen with")
    parser.add_argument(
        "--horizon", type=int, metavar="N", help="turns of an episode (default: the recipe's test budget)"
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
    from longstride.control.evaluation import evaluate_run
    from longstride.control.recipe import ControlRecipe
    from longstride.core.config import resolve
    from longstride.run.recipe import Recipe

    experiment = experiment_of(args.target)
    experiment = resolve(type(experiment), experiment, _overrides(args, isinstance(experiment, ControlRecipe)))
    if not isinstance(experiment, Recipe | ControlRecipe):
        raise ConfigError(f"{args.target} is of a {experiment.type_name()}: its metrics rows have all that it measures")
    with bars() as watch:
        if isinstance(experiment, ControlRecipe):
            if args.strategy != "direct":
                raise ConfigError(f"--strategy {args.strategy} is for language agents, and {args.target} is of control")
            rows = evaluate_run(experiment, Path(args.target), watch)
            tasks = len(rows[0]["summary"]["by_source"])
        else:
            held_out = experiment.tasks.held_out(experiment.evaluation.tasks)
            rows, tasks = _rows(args.target, experiment, held_out, _strategies(args), watch), len(held_out)
    if args.json:
        print_json({"target": args.target, "tasks": tasks, "seed": experiment.seed, "rows": rows})
    else:
        _print_table(rows, tasks)
    return 0


def _overrides(args: argparse.Namespace, control: bool) -> list[str]:
    """What the options say, as settings of a recipe (of control or not)."""
    found = [f"evaluation.tasks={t}" if t.lstrip("-").isdecimal() else f"tasks.type={t}" for t in args.tasks]
    if args.browser:
        found.append(f"tasks.browser={args.browser}")
    if args.horizon is not None:
        n = args.horizon
        found.append(f"test_horizon={{type='fixed', limit={n}}}" if control else f"test_budget.turns={n}")
    return [*found, *args.overrides]


def _strategies(args: argparse.Namespace) -> "Sequence[Strategy]":
    from longstride.core.component import build
    from longstride.run.delegate import Delegate
    from longstride.strategies import Direct
    from longstride.strategies.anytime import Anytime
    from longstride.strategies.best_of import BestOf
    from longstride.strategies.check_again import CheckAgain
    from longstride.strategies.revise import Revise
    from longstride.strategies.think_on import ThinkOn

    match args.strategy:
        case "check-again":
            return [CheckAgain(checks=n) for n in args.checks]
        case "anytime":
            return [Anytime()]
        case "think-on":
            times = 1 if args.times is None and args.thought is None else args.times
            return [build(ThinkOn, {"times": times, "most": args.thought})]
        case "best-of":
            return [build(BestOf, {"samples": args.samples, "by": _choice(args)})]
        case "revise":
            return [build(Revise, {"answers": args.answers})]
        case "delegate":
            if args.to is None:
                raise ConfigError("--strategy delegate needs to know to whom; name a run or a model with --to")
            return [build(Delegate, {"model": args.to, "below": args.below, "each": args.each})]
        case _:
            return [Direct()]


def _choice(args: argparse.Namespace) -> Any:
    """Which sample counts: a choice, or data of one."""
    from longstride.core.config import load_toml
    from longstride.strategies.scored import Scored

    if args.scorer is not None:
        return load_toml(Scored, args.scorer)
    return {"type": "scored", "scorer": {"type": args.by}} if args.by in SCORERS else {"type": args.by}


@contextmanager
def bars() -> Iterator[Watch]:
    """Progress bars on stderr, one for each name that is asked for."""
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:

        def watch(name: str) -> Callable[[int, int], None]:
            bar = shown.add_task(name, total=None)
            return lambda done, total: shown.update(bar, completed=done, total=total)

        yield watch


def experiment_of(target: str) -> "Experiment":
    """What a run is of; for a model, the recipe that gives tasks, horizon and context."""
    from longstride.run.experiment import load_run_experiment

    is_run = (Path(target) / RUN_FILE).is_file()
    return load_run_experiment(Path(target)) if is_run else papers.load(MODEL_RECIPES.get(target, "tti"))


def agent_of(target: str, recipe: "Recipe") -> "Policy":
    """The policy of a run's last checkpoint, or a model."""
    from longstride.models.device import device_here
    from longstride.models.load import load_policy
    from longstride.run.policies import load_run

    if (Path(target) / RUN_FILE).is_file():
        return load_run(Path(target))[1]
    return load_policy(target, recipe.chat, device_here(recipe.device, target))


def _rows(
    target: str, recipe: "Recipe", tasks: "Sequence[Task]", strategies: "Sequence[Strategy]", watch: Watch
) -> list[dict[str, Any]]:
    """Rows with the keys of an evaluation in `metrics.jsonl`."""
    from longstride.models.load import load_policy
    from longstride.run.evaluation import evaluate_baselines, evaluate_policy

    agent = agent_of(target, recipe)
    start = load_policy(recipe.model, recipe.chat, agent.device) if target != recipe.model else None
    results = [("agent", s.name, evaluate_policy(agent, recipe, tasks, s, watch(s.name))) for s in strategies]
    if start is not None:
        results.append(("warm_start", "direct", evaluate_policy(start, recipe, tasks, None, watch("warm start"))))
    baselines = evaluate_baselines(recipe, tasks, watch("baselines")) if recipe.evaluation.baselines else {}
    results += [(name, "direct", result) for name, result in baselines.items()]
    horizon = recipe.test_budget.limits("turns", 1)
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
    horizon = turns = rows[0]["horizon"]
    parts, parted = tuple(rows[0]["summary"].get("by_source", ())), "by_source"
    if isinstance(horizon, dict):
        parts, parted = tuple(horizon), "by_difficulty"
        turns = " / ".join(map(str, horizon.values())) if len(set(horizon.values())) > 1 else horizon["easy"]
    lines = [["policy", "strategy", "success", *parts, "length", "timeouts", "invalid"]]
    spent = [[n for n in row.get("measures", {}).get("spent_tokens", ()) if n is not None] for row in rows]
    means = [[f"{fmean(of_row):.0f}" if of_row else "-"] * any(spent) for of_row in spent]
    lines[0] += ["tokens"] * any(spent)
    for row, tokens in zip(rows, means, strict=True):
        s, (low, high) = row["summary"], row["interval"]
        by_part = (f"{s[parted][p]['success']:.2f}" if p in s[parted] else "-" for p in parts)
        invalid = f"{s['invalid']:.2f}" if "invalid" in s else "-"
        success = f"{s['success']:.2f} [{low:.2f}, {high:.2f}]" if s["episodes"] else "-"
        numbers = [f"{s['length']:.1f}", f"{s['timeouts']:.2f}", invalid, *tokens]
        lines.append([row["policy"], row["strategy"], success, *by_part, *numbers])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    print(f"{tasks} held-out tasks, horizon {turns}, 95 % intervals")
    for line in lines:
        print("  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip())
    for row in rows:
        if values := [v for v in row.get("measures", {}).get("anytime", ()) if v is not None]:
            print(f"{row['policy']} {row['strategy']}: anytime {fmean(values):.3f} (1 - normalised regret)")
    if failed := sum(row["summary"]["failed"] for row in rows):
        print(f"{failed} episodes failed for reasons of infrastructure; they are in no figure above")
