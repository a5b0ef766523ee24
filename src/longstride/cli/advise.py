"""`longstride advise`: which strategy a policy should use on tasks of one's own, at a budget of tokens a task: measured
on one half of the held-out tasks, tested on the other."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from longstride.cli.common import print_json, say
from longstride.core.errors import ConfigError

if TYPE_CHECKING:
    from longstride.core.task import Task
    from longstride.strategies import Strategy
    from longstride.strategies.advice import Advice


def add(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "advise", help="say which test-time strategy to use", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("target", metavar="TARGET", help="a run folder, `base`, a model folder, a name, or a recipe")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="replaces a setting of the run's recipe")
    parser.add_argument(
        "--tasks", type=int, default=120, metavar="N", help="held-out tasks, both halves together (default: 120)"
    )
    parser.add_argument(
        "--budget", type=int, required=True, metavar="TOKENS", help="sampled tokens that a task may cost, in the mean"
    )
    parser.add_argument(
        "--mark",
        metavar="TEXT",
        help="what ends a step of a thought (default: `;`; with several turns a step is a turn)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints what is advised for each difficulty."""
    from longstride.cli.evaluate import agent_of, bars, experiment_of
    from longstride.core.config import resolve
    from longstride.core.task import DIFFICULTIES
    from longstride.envs.text import STEP_END
    from longstride.run.evaluation import evaluate_policy
    from longstride.run.recipe import Recipe
    from longstride.strategies.advice import advise

    recipe = experiment_of(args.target)
    if not isinstance(recipe, Recipe):
        raise ConfigError(f"strategies are for language agents, and {args.target} is of a {recipe.type_name()}")
    recipe = resolve(Recipe, recipe, args.overrides)
    policy, tasks = agent_of(args.target, recipe), recipe.tasks.held_out(args.tasks)

    turns = recipe.test_budget.limits("turns", 1)
    single = turns == 1 or isinstance(turns, dict) and set(turns.values()) == {1}
    mark = args.mark if args.mark is not None else STEP_END if single else ""
    turn = min(recipe.test_budget.at(1, d).turn_tokens for d in DIFFICULTIES)
    with bars() as watch:

        def evaluate(strategy: "Strategy", of: "Sequence[Task]") -> list[tuple[bool, int] | None]:
            once = recipe.replace(evaluation={"attempts": 1})
            found = evaluate_policy(policy, once, of, strategy, watch(strategy.name)).episodes
            return [None if e.trajectory.stop.failed else (e.trajectory.success, e.spent_tokens) for e in found]

        found = advise(tasks, args.budget, mark, turn, recipe.seed, evaluate, single)
    if args.json:
        print_json(asdict(found) | {"best_fixed": found.best_fixed, "beats": found.beats})
    else:
        _print(found)
    return 0


def _print(advice: "Advice") -> None:
    from longstride.report.tables import table

    lines = [["difficulty", "strategy", "tokens", "predicted", "observed"]]
    for a in advice.by_difficulty:
        observed = "-" if a.observed is None else f"{a.observed:.2f} [{a.interval[0]:.2f}, {a.interval[1]:.2f}]"
        lines.append([a.difficulty, a.strategy, f"{a.tokens:.0f}", f"{a.predicted:.2f}", f"{observed} of {a.tasks}"])
    say(table(lines))
    say()
    say(table([["one strategy for all", "success"], *([name, f"{v:.2f}"] for name, v in advice.fixed.items())]))
    mean, low, high = advice.difference
    verdict = "better" if advice.beats else "not better"
    say(
        f"\non the half that was not looked at: {advice.success:.2f} as advised, {verdict} than every fixed strategy "
        f"({mean:+.2f} [{low:+.2f}, {high:+.2f}] against the best of them, sign test p = {advice.p:.2g})"
    )
