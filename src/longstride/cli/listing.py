"""`longstride list`: the recipes and their claims."""

import argparse
from typing import Any

from longstride.cli.common import print_json
from longstride.recipes import catalogue


def add(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "list", help="what can be trained and claimed", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints a line a recipe."""
    pages = catalogue()
    if args.json:
        print_json({"recipes": [{"name": n, "summary": p.summary, "claim": p.claim} for n, p in pages.items()]})
        return 0
    width = max(map(len, pages), default=0)
    for name, page in pages.items():
        print(f"{name:{width}}  {'claim' if page.claim else '     '}  {page.summary}")
    return 0
