"""`longstride list`: the recipes and their claims."""

import argparse
from itertools import groupby
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
    """Prints a line for each recipe, family by family."""
    recipes = catalogue()
    if args.json:
        fields = ("family", "summary", "claim")
        print_json({
            "recipes": [{"name": name} | {f: getattr(listed, f) for f in fields} for name, listed in recipes.items()]
        })  # fmt: skip
        return 0
    width = max(map(len, recipes), default=0)
    for family, members in groupby(recipes.items(), lambda item: item[1].family):
        print(f"{family}:")
        for name, listed in members:
            print(f"  {name:{width}}  {'claim' if listed.claim else '     '}  {listed.summary}")
    return 0
