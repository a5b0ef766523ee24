"""`longstride bench`: Longstride and a peer, measured in turn on the same work; kept under benchmarks/. For developers:
benchmarks come with the repository, and are left out of the package that is installed."""

import argparse
import importlib.util
import sys
from pathlib import Path
from typing import Any

from longstride.cli.common import print_json
from longstride.core.errors import ConfigError, MissingExtra

FOLDER = Path("benchmarks")
NAMES = (
    "browser",
    "control",
    "curves",
    "gateway",
    "generation",
    "gpu",
    "maze",
    "plan",
    "scheduler",
    "search",
    "step",
    "store",
    "train",
    "turns",
)


def add(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser("bench", help="measure against a peer", description=__doc__, allow_abbrev=False)
    parser.add_argument("name", choices=NAMES, help="the benchmark")
    parser.add_argument("--peer", metavar="PYTHON", help="Python of an environment with the peer; left out, ours alone")
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds of all sides (default: 5; gpu 2)")
    parser.add_argument("--short", action="store_true", help="its short form, where it has one: curves")
    parser.add_argument("--json", action="store_true", help="one JSON object; progress goes to stderr")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measures, prints the table and keeps it; whether goals are met or not, the exit code is 0.

    Raises:
        MissingExtra: benchmarks are not installed.
        ConfigError: fewer than two rounds, which say nothing about scatter; or it has no short form.
    """
    if importlib.util.find_spec("longstride.bench") is None:
        raise MissingExtra(
            "benchmarks come with the repository and not with the installed package: clone it, `make setup`, and run "
            "this there"
        )
    from longstride.bench.base import run_benchmark, table

    benchmark = importlib.import_module(f"longstride.bench.{args.name}").BENCHMARK
    if args.short:
        if benchmark.short is None:
            raise ConfigError(f"{args.name} has no short form: leave out --short, and take fewer --rounds")
        benchmark = benchmark.short
    rounds = benchmark.rounds if args.rounds is None else args.rounds
    if rounds < 2:
        raise ConfigError(f"--rounds is at least 2, for one says nothing about scatter; got {rounds}")
    if args.peer is None and benchmark.how_to_make_peer:
        print(f"ours alone; to compare, make the peer's environment:\n{benchmark.how_to_make_peer}", file=sys.stderr)
    result = run_benchmark(benchmark, FOLDER, args.peer, rounds, lambda words: print(words, file=sys.stderr))
    if args.json:
        print_json(result)
    else:
        print(table(result) + f"\nkept in {FOLDER / benchmark.name}.md")
    return 0
