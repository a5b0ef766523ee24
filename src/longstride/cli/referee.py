"""`longstride referee`: whether two results were measured under one protocol, and only then which is better. It takes
run folders, exported evaluation episodes and logs of inspect_ai; 0 where they can be compared, 1 where they cannot."""

import argparse
from pathlib import Path
from typing import Any

from longstride.cli.common import print_json, say


def add(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "referee",
        help="whether two results can be compared, and which is better",
        description=__doc__,
        allow_abbrev=False,
    )
    parser.add_argument("ours", type=Path, metavar="OURS", help="a run folder, a folder of episodes, or a FILE.eval")
    parser.add_argument("theirs", type=Path, metavar="THEIRS", help="the other one")
    parser.add_argument(
        "--accept",
        action="append",
        default=[],
        metavar="SETTING",
        help="compare although it differs or is not said: `seed`, or `limits` for all that begins so",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints what differs, or the difference."""
    from longstride.report.referee import as_text, referee

    found = referee(args.ours, args.theirs, args.accept)
    if args.json:
        print_json(found)
    else:
        say(as_text(found))
    return int(not found["comparable"])
