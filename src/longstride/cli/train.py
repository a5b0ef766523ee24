"""`longstride train`: runs a recipe in a run folder, or goes on with a run."""

import argparse
import os
import re
import shlex
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longstride.cli.common import RUN_FILE, experiment_from, free_folder, program, resume_command, say
from longstride.core.errors import ConfigError, LongstrideError, OwnCodeError
from longstride.core.files import make_folder, trouble_of

if TYPE_CHECKING:
    from longstride.run.experiment import Experiment
    from longstride.run.placement import Placement


def add(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "train",
        help="run a recipe",
        description=__doc__,
        epilog="example: longstride train tti iterations=5 budget.turns=24",
        allow_abbrev=False,
    )
    parser.add_argument(
        "recipe",
        nargs="?",
        metavar="RECIPE",
        help="a name from `longstride list`, a file (.py, .toml), or module:RECIPE",
    )
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="replaces a field of the recipe")
    parser.add_argument("--out", type=Path, metavar="DIR", help="run folder (default: runs/RECIPE-N)")
    parser.add_argument("--resume", type=Path, metavar="DIR", help="go on with the run in DIR, with its own recipe")
    parser.add_argument(
        "--cluster",
        metavar="ray|FILE",
        help="spread the run over a Ray cluster: `ray` for one on this machine, or a TOML file of ClusterConfig",
    )
    parser.add_argument(
        "--track",
        action="append",
        default=[],
        metavar="TRACKER",
        help="pass the numbers on to tensorboard, wandb, trackio or mlflow too; may be given more than once",
    )
    parser.add_argument("--dry-run", action="store_true", help="print the resolved recipe as TOML and stop")
    parser.add_argument("--seed", type=int, metavar="N", help="short for seed=N")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Trains; 130 when interrupted."""
    recipe = _experiment(args)
    if args.dry_run:
        from longstride.core.config import dump_toml

        print(dump_toml(recipe), end="")
        _print_cloning(recipe)
        _print_memory(recipe)
        return 0

    from longstride.report.html import write_report
    from longstride.report.live import Live
    from longstride.report.rows import read_record
    from longstride.report.trackers import Tracked
    from longstride.run.recipe import Recipe

    placement = _placement(args.cluster)
    if isinstance(recipe, Recipe):
        recipe = recipe.settled(placement)
    if args.out and os.environ.get("RANK", "0") == "0":  # the first process of torchrun may have begun to write there
        free_folder(args.out)
    folder = args.resume or args.out or _next_folder(recipe.name)
    say(f"run folder: {folder}")
    if isinstance(recipe, Recipe):
        from longstride.models.device import described

        say(f"device: {described(recipe.device)}; weights in {recipe.weights}")
    try:
        with Live(recipe.name, recipe.iterations) as live, Tracked(args.track, recipe, folder, live) as listener:
            if args.resume and args.resume.is_dir():
                live.goes_on(read_record(args.resume).rows)
            recipe.train(folder, listener, resume=args.resume is not None, placement=placement)
        report = write_report(folder)
    except KeyboardInterrupt:
        say(
            f"\nstopped; {folder} keeps all finished iterations. Its report so far:\n"
            f"  {program()} view {shlex.quote(str(folder))}\nGo on with:\n  {resume_command(folder)}",
            file=sys.stderr,
        )
        return 130
    except Exception as e:
        goes_on = trouble_of(e) or isinstance(e, OwnCodeError) or not isinstance(e, LongstrideError)
        if goes_on and (folder / RUN_FILE).exists():
            e.add_note(f"{folder} keeps all finished iterations; go on with:\n  {resume_command(folder)}")
        elif (folder / "metrics.jsonl").exists():
            with suppress(LongstrideError):  # a second error would hide the first
                e.add_note(f"report: {write_report(folder)}")
        raise
    finally:
        with suppress(OSError):  # a folder with nothing in it was made for nothing
            folder.rmdir()
    say(f"report: {report}")
    if isinstance(recipe, Recipe):
        # answers are held back where they are given to pages; any episode can be played several times
        other = "check_again" if "browser" in type(recipe.tasks).model_fields else "best_of attempts=4"
        say(f"more:   {program()} eval {shlex.quote(str(folder))} --strategy direct --strategy {other}")
    return 0


def _experiment(args: argparse.Namespace) -> "Experiment":
    from longstride.core.config import resolve
    from longstride.run.experiment import load_run_experiment

    overrides = list(args.overrides)
    if args.resume is not None:
        if args.out is not None:
            raise ConfigError("--resume goes on in the run's own folder; leave out --out")
        if args.recipe is not None and "=" not in args.recipe:
            raise ConfigError(f"--resume reads the recipe from {args.resume / RUN_FILE}; leave out {args.recipe!r}")
        overrides[:0] = [args.recipe] if args.recipe else []
        base = load_run_experiment(args.resume)
    elif args.recipe is None:
        raise ConfigError(
            "which recipe? Give a name from `longstride list`, a file or module:RECIPE, such as `longstride train tti`"
        )
    else:
        base = experiment_from(args.recipe)
    return resolve(type(base), base, overrides + ([f"seed={args.seed}"] if args.seed is not None else []))


def _print_cloning(experiment: "Experiment") -> None:
    """What cloning comes to, as a comment of TOML."""
    from longstride.run.recipe import Recipe

    if isinstance(experiment, Recipe) and experiment.cloning:
        print(f"# cloning: {experiment.cloning}")


def _print_memory(experiment: "Experiment") -> None:
    """The memory plan, as comments of TOML; shipped models, which fit everywhere, have none."""
    from longstride.run.recipe import Recipe

    model = experiment.model if isinstance(experiment, Recipe) else None
    if isinstance(experiment, Recipe) and isinstance(model, str) and ("/" in model or Path(model).is_dir()):
        from longstride.run.memory import plan, suggestion

        try:
            found = plan(experiment)
            lines = [f"memory of {model}:", *str(found).splitlines()]
            lines += [] if found.fits else [f"it does not fit; {suggestion(experiment)}"]
        except LongstrideError as e:
            lines = f"memory: not known: {e}".splitlines()
        print("".join(f"# {line}\n" for line in lines), end="")


def _placement(cluster: str | None) -> "Placement | None":
    from longstride.cluster.config import ClusterConfig
    from longstride.core.config import load_toml

    if cluster is None:
        return None
    return ClusterConfig() if cluster == "ray" else load_toml(ClusterConfig, Path(cluster))


def _next_folder(name: str) -> Path:
    """The next one of this name: it is made at once, so that each of several commands that start together has its own;
    the processes of torchrun have one together."""
    stem, home = re.sub(r"[^\w-]", "-", name), Path("runs")
    taken = [int(m[1]) for p in home.glob("*") if (m := re.fullmatch(re.escape(stem) + r"-(\d+)", p.name))]
    for n in count(max(taken, default=0) + 1):
        folder = home / f"{stem}-{n}"
        with suppress(FileExistsError):
            if "WORLD_SIZE" not in os.environ:
                make_folder(home)
                folder.mkdir()
            return folder
    raise AssertionError
