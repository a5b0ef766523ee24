"""`longstride sweep`: a recipe under every combination of some settings, with several seeds; what was run stays."""

import argparse
import sys
from pathlib import Path
from typing import Any

from longstride.cli.common import experiment_from, print_json, say
from longstride.core.errors import ConfigError


def add(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "sweep",
        help="run a recipe under many settings",
        description=__doc__,
        epilog="example: longstride sweep isocompute runs/iso --grid method.rollouts=8,32,256 --seeds 3",
        allow_abbrev=False,
    )
    parser.add_argument("recipe", metavar="RECIPE", help="as for `longstride train`")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder of the run folders; a sweep in it goes on")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="replaces a field of the recipe in all runs")
    parser.add_argument(
        "--grid", action="append", required=True, metavar="KEY=V1,V2", help="an axis; may be given more than once"
    )
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="seeds 0 to N-1 of each (default: 1)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at a time (default: 1)")
    parser.add_argument("--measure", default="success", metavar="NAME", help="what the table shows (default: success)")
    parser.add_argument("--json", action="store_true", help="one JSON object; progress goes to stderr")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs what has not been run yet and prints a table; 130 when interrupted."""
    from longstride.core.config import resolve
    from longstride.run.sweep import combinations, parse_axis

    if min(args.seeds, args.jobs) < 1:
        raise ConfigError(f"--seeds and --jobs are at least 1; got {args.seeds} and {args.jobs}")
    base = experiment_from(args.recipe)
    base = resolve(type(base), base, args.overrides)
    axes = dict(parsed := [parse_axis(text) for text in args.grid])
    if len(axes) < len(parsed):
        raise ConfigError("--grid names one setting twice; give all of its values at once: KEY=VALUE,VALUE")
    runs = combinations(base, axes, range(args.seeds), args.out)

    from rich.console import Console

    from longstride.report.live import Live
    from longstride.report.sweeps import as_text, summary
    from longstride.run.many import train_all

    def watch(folder: Path) -> Live:
        return Live(f"{base.name}: {folder.name}:", base.iterations, Console(stderr=True, force_terminal=False))

    try:
        train_all(runs, watch, args.jobs)
    except KeyboardInterrupt:
        say(f"\nstopped; {args.out} keeps what was finished, and the same command goes on", file=sys.stderr)
        return 130
    found = summary(list(runs), list(axes), args.measure)
    print_json(found) if args.json else say(as_text(found))
    return 0
