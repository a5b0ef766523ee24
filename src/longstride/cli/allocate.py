"""`longstride allocate`: what a budget is best spent on, by kept fits of several settings."""

import argparse
from pathlib import Path
from typing import Any

from longstride.cli.common import print_json, say


def add(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser("allocate", help="spend a budget by fits", description=__doc__, allow_abbrev=False)
    parser.add_argument("fits", type=Path, metavar="FILE", help="what `longstride fit --by KEY --out FILE` kept")
    parser.add_argument(
        "--budget", type=float, required=True, metavar="N", help="in the units of the fits' x; attempts for coverage"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints what each setting would come to, the best first; or attempts for each kind of task."""
    from longstride.report.fits import allocate, choices_as_text, load_fits

    found = allocate(load_fits(args.fits), args.budget)
    print_json(found) if args.json else say(choices_as_text(found))
    return 0
