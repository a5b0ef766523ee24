"""`longstride list`: the recipes by family, and what came of their claims."""

import argparse
import json
from itertools import groupby
from typing import Any

from longstride.cli.claim import FOLDER
from longstride.cli.common import print_json
from longstride.core.errors import RunError
from longstride.recipes import Listed, catalogue

CLAIMED = "claim"
"""State of a claim that no result is kept of."""


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
    states = {name: _state(name, listed) for name, listed in recipes.items()}
    if args.json:
        fields = ("family", "summary", "claim")
        print_json({
            "recipes": [
                {"name": name} | {f: getattr(listed, f) for f in fields} | {"state": states[name]}
                for name, listed in recipes.items()
            ]
        })  # fmt: skip
        return 0
    width, wide = (max(map(len, column), default=0) for column in (states, states.values()))
    for family, members in groupby(recipes.items(), lambda item: item[1].family):
        print(f"{family}:")
        for name, listed in members:
            print(f"  {name:{width}}  {states[name]:{wide}}  {listed.summary}")
    return 0


def _state(name: str, listed: Listed) -> str:
    """The verdict that is kept in `claims/` of the working folder, `claim` if none is, empty without a claim."""
    if not listed.claim:
        return ""
    try:
        return str(json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))["verdict"])
    except FileNotFoundError:
        return CLAIMED
    except (ValueError, KeyError, TypeError) as e:
        raise RunError(f"{FOLDER / name}.json cannot be read: {type(e).__name__}: {e}; remove it") from e
