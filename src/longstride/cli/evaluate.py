"""`longstride eval`: a run or a model on held-out tasks, beside the warm start and, where the recipe asks for them
(`evaluation.baselines`), the trivial policies."""

import argparse
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from longstride import papers
from longstride.cli.common import RUN_FILE, free_folder, print_json, say
from longstride.cli.searches import GUIDES, SEARCHES, guide, guided, placed, search
from longstride.core.errors import ConfigError, RunError, unknown
from longstride.core.locations import LOCATIONS

if TYPE_CHECKING:
    from longstride.core.component import Component
    from longstride.core.task import Task
    from longstride.models.api import ChatAPI
    from longstride.models.load import Policy
    from longstride.run.evaluation import Result
    from longstride.run.experiment import Experiment
    from longstride.run.recipe import Recipe
    from longstride.strategies import Strategy

Watch = Callable[[str], Callable[[int, int], None]]
"""Gives a progress callback (done, total) for what is evaluated."""
MODEL_RECIPES = {
    "base-dial": "tti/dial",
    "base-dial-straight": "tti/dial",
    "base-judge": "genrm",
    "base-keep-last": "webagent_r1",
    "base-miniwob": "tti/miniwob",
    "base-puzzles": "grpo",
    "base-thoughts": "grpo",
}
"""Give tasks, horizon and context where a model is evaluated and no run says which; `tti` for any other model."""
NAMES = ("direct", *LOCATIONS["strategy"], *SEARCHES)
"""The strategies that Longstride brings, searches by plain names among them."""

COUNTED = {"spent_tokens": "tokens", "scored_tokens": "guide", "total_tokens": "in all"}
"""Columns of tokens, by measure: all that were sampled; what a guide or scorer sampled and read; and all."""


def add(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "eval",
        help="evaluate a run or a model",
        description=__doc__,
        epilog="examples: longstride eval RUN --strategy direct --strategy best_of attempts=8 by.type=likelihood; "
        "longstride eval RUN model.url=http://127.0.0.1:11434/v1 model.name=qwen3:8b actions=explained",
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_argument(
        "target",
        metavar="TARGET",
        help="a run folder, `base`, a model folder, a Hugging Face name, or a recipe, whose `model` is then "
        "evaluated: one behind a chat API by model.url and model.name",
    )
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="replaces a setting of the run's recipe")
    parser.add_argument(
        "--strategy",
        nargs="+",
        action="append",
        default=[],
        metavar=("NAME", "KEY=VALUE"),
        help="what a language agent does at test time, with its settings; several are compared. "
        f"{', '.join(NAMES)} (`--strategy NAME --help` lists the settings of one), module:Class of your own, or a TOML "
        "file; the default is what the recipe evaluates",
    )
    parser.add_argument(
        "--guide",
        nargs="+",
        action="append",
        default=[],
        metavar=("NAME|RUN", "KEY=VALUE"),
        help="what leads searches and delegate, with its settings; each of them is played under each guide. "
        f"{', '.join(f'{name} ({says})' for name, says in GUIDES.items())}; a run folder, whose model is asked; "
        "module:Class of your own; the default is confidence",
    )
    add_tasks(parser)
    parser.add_argument(
        "--horizon", type=int, metavar="N", help="turns of an episode (default: the recipe's test budget)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="keep it there, as `view` and `compare` read it (language agents)"
    )
    parser.add_argument(
        "--inspect",
        type=Path,
        metavar="FILE.eval",
        help="write a log of inspect_ai (language agents); of several strategies each has its own, FILE-NAME.eval",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("-h", "--help", action=_Help, nargs=0, help="show this, or the settings of a strategy")
    parser.set_defaults(run=run)


def add_tasks(parser: argparse.ArgumentParser) -> None:
    """Adds the options that say which tasks are played."""
    parser.add_argument(
        "--tasks",
        action="append",
        default=[],
        metavar="N|SOURCE",
        help="how many held-out tasks, or where they come from, such as miniwob (default: as in the recipe)",
    )
    parser.add_argument("--browser", choices=("text", "chromium"), help="what the embedded sites are seen with")


class _Help(argparse.Action):
    """Prints the help of the command; behind `--strategy` the settings of the strategy."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, *rest: Any) -> None:
        try:
            print("\n".join(_described(*asked) for asked in namespace.strategy) or parser.format_help(), end="")
        except ConfigError as e:
            parser.error(str(e))
        parser.exit()


def run(args: argparse.Namespace) -> int:
    """Prints a row for each policy and strategy."""
    from longstride.control.evaluation import evaluate_run
    from longstride.control.recipe import ControlRecipe
    from longstride.core.config import resolve
    from longstride.models.load import Policy
    from longstride.report.html import write_report
    from longstride.run.experiment import counted
    from longstride.run.folder import keep_evaluation
    from longstride.run.recipe import Recipe

    folder = free_folder(args.out) if args.out else None
    experiment = experiment_of(args.target)
    experiment = resolve(type(experiment), experiment, overrides_of(args, isinstance(experiment, ControlRecipe)))
    if not isinstance(experiment, Recipe | ControlRecipe):
        raise ConfigError(f"{args.target} is of a {experiment.type_name()}: its metrics rows have all that it measures")
    with bars() as watch:
        if isinstance(experiment, ControlRecipe):
            given = {"--strategy": args.strategy, "--guide": args.guide, "--out": folder, "--inspect": args.inspect}
            if option := next(filter(given.get, given), None):
                raise ConfigError(f"{option} is for language agents, and {args.target} is of control")
            rows = evaluate_run(experiment, Path(args.target), watch)
            tasks = len(rows[0]["summary"]["by_source"])
        else:
            asked = strategies(args.strategy, args.guide, experiment.evaluation.strategies)
            experiment = experiment.replace(evaluation={"strategies": tuple(asked)})
            logs = _logs(args.inspect, [s.name for s in asked]) if args.inspect else {}
            held_out = experiment.held_out()
            agent = agent_of(args.target, experiment)
            results = _results(agent, experiment, held_out, asked, watch)
            _check_played(results)
            rows, tasks = _rows(experiment, results), len(held_out)
            if folder:
                iteration = counted(Path(args.target), "iteration") if isinstance(agent, Policy) else 0
                keep_evaluation(agent, experiment, folder, results, iteration)
                write_report(folder)
            _write_logs(logs, agent, experiment, held_out, results)
    if args.json:
        found = {"target": args.target, "tasks": tasks, "seed": experiment.seed, "rows": rows}
        print_json(found | {"differences": _differences(rows)})
    else:
        _print_table(rows, tasks)
        if isinstance(experiment, Recipe):
            _print_advice(rows[0]["summary"], experiment)
        if folder:
            say(f"kept:   {folder}\nreport: {folder / 'report.html'}")
    return 0


def _logs(path: Path, strategies: Sequence[str]) -> dict[str, Path]:
    """The log of each strategy, where one can be written."""
    from longstride.report.inspect_log import check_target

    ends = [re.sub(r"[^\w.-]", "_", f"-{name}") for name in strategies] if len(strategies) > 1 else [""]
    logs = {name: path.with_stem(path.stem + end) for name, end in zip(strategies, ends, strict=True)}
    for target in logs.values():
        check_target(target)
    return logs


def _write_logs(
    logs: Mapping[str, Path],
    agent: "Policy | ChatAPI",
    recipe: "Recipe",
    tasks: "Sequence[Task]",
    results: "Sequence[tuple[str, str, Result]]",
) -> None:
    """Writes a log of inspect for each strategy of the agent that has one."""
    from longstride.report.inspect_log import write_inspect_log
    from longstride.report.protocol import protocol_of, strategy_named, template_of

    for policy, strategy, result in results:
        if policy == "agent" and strategy in logs:
            protocol = protocol_of(recipe, tasks, strategy_named(recipe, strategy), template_of(agent))
            write_inspect_log(result, logs[strategy], recipe.name, str(getattr(agent, "name", agent)), protocol)


def overrides_of(args: argparse.Namespace, control: bool = False) -> list[str]:
    """What the options say, as settings of a recipe (of control or not)."""
    found = [f"evaluation.tasks={t}" if t.lstrip("-").isdecimal() else f"tasks.type={t}" for t in args.tasks]
    if args.browser:
        found.append(f"tasks.browser={args.browser}")
    if args.horizon is not None:
        n = args.horizon
        found.append(f"test_horizon={{type='fixed', limit={n}}}" if control else f"test_budget.turns={n}")
    return [*found, *args.overrides]


def strategies(
    asked: Sequence[Sequence[str]], guides: Sequence[Sequence[str]] = (), default: "Sequence[Strategy]" = ()
) -> "list[Strategy]":
    """The strategies that were asked for, each by its name and its settings, under every guide that was.

    Args:
        asked: names and settings.
        guides: names or run folders, and settings.
        default: where no strategy is asked for; `Direct` if empty.

    Raises:
        ConfigError: there is none of that name, or a setting that it has not or that does not fit.
    """
    from longstride.strategies import Direct

    found = [_strategy(*words) for words in asked] or list(default) or [Direct()]
    return guided(found, [guide(*words) for words in guides])


def _strategy(name: str, *words: str) -> "Strategy":
    from longstride.core.config import resolve
    from longstride.run.recipe import Recipe
    from longstride.strategies import Strategy

    base = _base(name)
    settings = placed(base, words, ("search",)) if name in SEARCHES else words
    of_recipe = Recipe.model_fields.keys() - type(base).model_fields.keys()
    if stray := next((s for s in settings if s.partition("=")[0].partition(".")[0] in of_recipe), None):
        raise ConfigError(f"--strategy {name}: {stray} is a setting of the recipe; it stands before --strategy")
    try:
        return resolve(Strategy, base, settings)
    except ConfigError as e:
        raise ConfigError("\n".join(f"--strategy {name}: {line}" for line in str(e).splitlines())) from None


def _base(name: str) -> "Strategy":
    """A strategy by its name, not yet whole, or as a TOML file has it; modules beside the file are importable, or those
    in the folder of the command."""
    from longstride.core.component import member_of
    from longstride.core.config import load_toml, unset
    from longstride.core.modules import add_folder
    from longstride.strategies import Strategy

    add_folder(Path(name).parent)
    if name in SEARCHES:
        return search(name)
    if name not in NAMES and ":" not in name and not name.endswith(".toml"):
        raise ConfigError(unknown("type", name, NAMES))
    return load_toml(Strategy, Path(name)) if name.endswith(".toml") else unset(member_of(Strategy, name))


def _described(name: str, *settings: str) -> str:
    """What a strategy does, and its settings; those of a part whose type is among `settings` too."""
    from longstride.core.config import parse_override
    from longstride.strategies.searched import Searched

    base = _base(name)
    shown = argparse.ArgumentParser(
        usage=f"longstride eval TARGET --strategy {name} [KEY=VALUE ...]",
        description=_as_help((base.search if isinstance(base, Searched) and name in SEARCHES else base).__doc__),
        add_help=False,
    )
    group = shown.add_argument_group("settings")
    types = dict(map(parse_override, settings))
    rows = [*_settings(type(base), types)]
    if isinstance(base, Searched) and name in SEARCHES:
        rows = [*_settings(type(base.search), types, of=base.search), *(r for r in rows if r[0] != "search.type")]
    for key, default, meaning in rows:
        group.add_argument(key, metavar=f"{key}={default}", help=_as_help(meaning))
    return shown.format_help()


def _settings(
    cls: "type[Component]", types: Mapping[str, Any], before: str = "", of: "Component | None" = None
) -> Iterator[tuple[str, str, str]]:
    """Key, default and meaning of each field of a component; in place of the defaults what `of` has."""
    from longstride.core.component import component_in, member_of
    from longstride.core.hints import member_names

    for name, field in cls.model_fields.items():
        key, part = f"{before}{name}", component_in(field.annotation)
        default, meaning = field.get_default(call_default_factory=True), cls.meanings().get(name, "")
        if of is not None:
            default = getattr(of, name)
        elif field.is_required() or default is None:
            default = ""
        if part is None:
            yield key, str(default), meaning
            continue
        members = ", ".join(sorted(member_names(part)))
        yield f"{key}.type", default and default.type_name(), f"{meaning} One of {members}."
        if chosen := types.get(f"{key}.type"):
            yield from _settings(member_of(part, chosen, key), types, f"{key}.")


def _as_help(text: str | None) -> str:
    return " ".join((text or "").split()).replace("%", "%%")


@contextmanager
def bars() -> Iterator[Watch]:
    """Progress bars on stderr, one for each name that is asked for."""
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:

        def watch(name: str) -> Callable[[int, int], None]:
            bar = shown.add_task(name, total=None)
            return lambda done, total: shown.update(bar, completed=done, total=total)

        yield watch


def experiment_of(target: str) -> "Experiment":
    """What a run is of, or a recipe; for a model, the recipe that gives tasks, horizon and context."""
    from longstride.papers.naming import find_experiment, names_experiment
    from longstride.run.experiment import load_run_experiment

    path = Path(target)
    for run in (path, *([path.parent.parent] if path.parent.name == "checkpoints" else [])):
        if (run / RUN_FILE).is_file():
            return load_run_experiment(run)
    return find_experiment(target) if names_experiment(target) else papers.load(MODEL_RECIPES.get(target, "tti"))


def agent_of(target: str, recipe: "Recipe") -> "Policy | ChatAPI":
    """The model of a recipe, where that is the target or behind a chat API; else the policy of a run's last checkpoint,
    or a model, under a recipe's settings."""
    from longstride.papers.naming import names_experiment
    from longstride.run.policies import load

    if not isinstance(recipe.model, str):
        return recipe.model
    is_run = (Path(target) / RUN_FILE).is_file()  # it may have the name of a recipe
    return load(target if is_run or not names_experiment(target) else recipe.model, recipe.chat, recipe.device)


def _results(
    agent: "Policy | ChatAPI", recipe: "Recipe", tasks: "Sequence[Task]", strategies: "Sequence[Strategy]", watch: Watch
) -> "list[tuple[str, str, Result]]":
    """Policy, strategy and what came of it."""
    from longstride.models.load import Policy, load_policy
    from longstride.run.evaluation import evaluate_baselines, evaluate_policy
    from longstride.run.policies import load

    once = lru_cache(1)(load)  # strategies that take the same other model share it
    results = [("agent", s.name, evaluate_policy(agent, recipe, tasks, s, watch(s.name), once)) for s in strategies]
    if isinstance(agent, Policy) and agent.name != recipe.model:
        start = load_policy(recipe.start, recipe.chat, agent.device)
        results.append(("warm_start", "direct", evaluate_policy(start, recipe, tasks, None, watch("warm start"))))
    baselines = evaluate_baselines(recipe, tasks, watch("baselines")) if recipe.evaluation.baselines else {}
    return results + [(name, "direct", result) for name, result in baselines.items()]


def _check_played(results: "Sequence[tuple[str, str, Result]]") -> None:
    """Raises: RunError where every episode of the agent failed. A strategy whose scorer got no verdict keeps no
    reason in its episodes; what the model said was logged."""
    played = [result for policy, _, result in results if policy == "agent"]
    if any(result.summary["episodes"] for result in played):
        return
    reasons = (t.evidence["failure"] for result in played for t in result.trajectories if "failure" in t.evidence)
    why = next(reasons, "a scorer got no verdict (what its model said stands above): that model is no judge")
    raise RunError(f"nothing was measured, for every episode failed for reasons of infrastructure; the first: {why}")


def _rows(recipe: "Recipe", results: "Sequence[tuple[str, str, Result]]") -> list[dict[str, Any]]:
    """Rows with the keys of an evaluation in `metrics.jsonl`."""
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


def _differences(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What each further strategy of the agent came to, less its first: success, paired by task."""
    from longstride.stats import paired_difference

    played = [row for row in rows if row["policy"] == "agent"]
    found = []
    for first, row in ((played[0], row) for row in played[1:]):
        both = zip(row["measures"]["success"], first["measures"]["success"], strict=True)
        pairs = [pair for pair in both if None not in pair]
        if len(pairs) > 1:
            e = paired_difference(*zip(*pairs, strict=True), seed=0)
            names = {"strategy": row["strategy"], "against": first["strategy"]}
            found.append(names | {"mean": e.mean, "lo": e.lo, "hi": e.hi, "tasks": len(pairs)})
    return found


def _mean(row: Mapping[str, Any], measure: str) -> float | None:
    """Of a row, over its tasks."""
    values = [n for n in row.get("measures", {}).get(measure, ()) if n is not None]
    return fmean(values) if values else None


def _print_table(rows: list[dict[str, Any]], tasks: int) -> None:
    horizon = turns = rows[0]["horizon"]
    parts, parted = tuple(rows[0]["summary"].get("by_source", ())), "by_source"
    if isinstance(horizon, dict):
        parts, parted = tuple(horizon), "by_difficulty"
        turns = " / ".join(map(str, horizon.values())) if len(set(horizon.values())) > 1 else horizon["easy"]
    lines = [["policy", "strategy", "success", *parts, "length", "timeouts", "invalid"]]
    counted = [name for name in COUNTED if any(_mean(row, name) is not None for row in rows)]
    if not any(_mean(row, "scored_tokens") for row in rows):
        counted = counted[:1]
    lines[0] += [COUNTED[name] for name in counted]
    returned = any(_mean(row, "return") is not None for row in rows)
    lines[0] += ["return"] if returned else []
    for row in rows:
        tokens = ["-" if (n := _mean(row, name)) is None else f"{n:.0f}" for name in counted]
        tokens += ["-" if (n := _mean(row, "return")) is None else f"{n:.4g}"] if returned else []
        s, (low, high) = row["summary"], row["interval"]
        by_part = (f"{s[parted][p]['success']:.2f}" if p in s[parted] else "-" for p in parts)
        invalid = f"{s['invalid']:.2f}" if "invalid" in s else "-"
        success = f"{s['success']:.2f} [{low:.2f}, {high:.2f}]" if s["episodes"] else "-"
        numbers = [f"{s['length']:.1f}", f"{s['timeouts']:.2f}", invalid, *tokens]
        lines.append([row["policy"], row["strategy"], success, *by_part, *numbers])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    say(f"{tasks} held-out tasks, horizon {turns}, 95 % intervals")
    for line in lines:
        say("  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip())
    for d in _differences(rows):
        ends = f"95 % {d['lo']:+.3f} to {d['hi']:+.3f}, on the same {d['tasks']} tasks"
        say(f"{d['strategy']} - {d['against']}: success {d['mean']:+.3f}, {ends}")
    for row in rows:
        for name, means in (
            ("anytime", "1 - normalised regret"),
            ("exploitability", "what a best response wins over 1/2"),
        ):
            if values := [v for v in row.get("measures", {}).get(name, ()) if v is not None]:
                say(f"{row['policy']} {row['strategy']}: {name} {fmean(values):.3f} ({means})")
    for row in rows:
        for of, name in (("usage", ""), ("judge_usage", ", its judge")):
            if usage := row["summary"].get(of):
                say(f"{row['policy']} {row['strategy']}{name}: {_spent(usage, tasks)}")
    if failed := sum(row["summary"]["failed"] for row in rows):
        say(f"{failed} episodes failed for reasons of infrastructure; they are in no figure above")


def _spent(usage: Mapping[str, Any], tasks: int) -> str:
    """What an API took, in words."""
    cached = f" ({usage['cached']:,} of them cached)" if usage["cached"] else ""
    tokens = f"{usage['read']:,} tokens read{cached}, {usage['sampled'] + usage['beside']:,} sampled"
    counted = tokens if usage["read"] else "the server counts no tokens"
    cost = f"; cost {usage['cost']:.4g}, {usage['cost'] / tasks:.3g} a task" if usage["cost"] else ""
    return f"{usage['requests']:,} requests, {counted}{cost}"


def _print_advice(summary: Mapping[str, Any], recipe: "Recipe") -> None:
    """What probably was not meant, where most turns did nothing."""
    if summary["cut"] > 0.5:
        say(f"most turns were cut at test_budget.turn_tokens ({recipe.test_budget.limits('turn_tokens', 1)}): raise it")
    elif summary["invalid"] > 0.5 and recipe.actions == "text":
        say("most turns had no action: actions=explained says what can be done, actions=tool_calls gives tools")
