"""`longstride compare`: runs side by side: differences paired by task, methods over seeds, and what differs."""

import argparse
import sys
from pathlib import Path
from typing import Any

from longstride.cli.common import print_json, say


def add(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser("compare", help="compare runs", description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "runs",
        nargs="+",
        type=Path,
        metavar="RUN",
        help="run folders, folders of them, or exported episodes; the others are compared with the first",
    )
    parser.add_argument(
        "--measure",
        default="",
        metavar="NAME",
        help="by which it is compared (default: success, or the return where nothing is ever a success)",
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with curves besides")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints tables."""
    from longstride.report.compare import as_text, comparable, compare, write_comparison

    runs = comparable(args.runs)
    found = compare(runs, args.measure)
    if args.json:
        print_json(found)
    else:
        say(as_text(found))
    if args.html:
        say(f"\npage: {write_comparison(runs, found, args.html)}", file=sys.stderr if args.json else sys.stdout)
    return 0
