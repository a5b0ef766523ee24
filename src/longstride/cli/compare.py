"""`longstride compare`: runs side by side: what they came to, differences paired by task, other settings."""

import argparse
import sys
from pathlib import Path
from typing import Any

from longstride.cli.common import print_json


def add(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser("compare", help="compare runs", description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "runs", nargs="+", type=Path, metavar="RUN", help="run folders; the others are compared with the first"
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with curves besides")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints tables."""
    from longstride.report.compare import as_text, compare, write_comparison

    found = compare(args.runs)
    if args.json:
        print_json(found)
    else:
        print(as_text(found))
    if args.html:
        print(f"\npage: {write_comparison(args.runs, found, args.html)}", file=sys.stderr if args.json else sys.stdout)
    return 0
