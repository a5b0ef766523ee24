"""`longstride list`: papers and what of them can be run, and what came of their claims."""

import argparse
import json
from dataclasses import asdict
from itertools import groupby
from typing import Any

from longstride.claims.standard import word
from longstride.cli.claim import FOLDER
from longstride.cli.common import print_json, say
from longstride.core.errors import ConfigError, RunError, unknown
from longstride.papers import Listed, catalogue
from longstride.papers.card import TOPICS, Paper, Study

CLAIMED = "claim"
"""State of a claim that no result is kept of, as it is today."""


def add(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "list", help="what can be trained and claimed", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("--topic", metavar="TOPIC", help=f"of one topic: {', '.join(TOPICS)}")
    parser.add_argument(
        "--acts",
        action="store_true",
        help="only what acts here on a model or in an environment",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints a line for each recipe."""
    if args.topic is not None and args.topic not in TOPICS:
        raise ConfigError(unknown("topic", args.topic, TOPICS))
    found = {
        name: listed
        for name, listed in catalogue().items()
        if (listed.kind == "acts" or not args.acts)
        and (args.topic is None or listed.card and args.topic in listed.card.topics)
    }
    states = {name: _state(name, listed) for name, listed in found.items()}
    if args.json:
        fields = ("home", "summary", "acts", "claim")
        print_json(
            {
                "recipes": [
                    {"name": name}
                    | {f: getattr(listed, f) for f in fields}
                    | {"state": states[name]}
                    | {"card": asdict(listed.card) if listed.card else None}
                    for name, listed in found.items()
                ]
            }
        )
        return 0
    width, wide = (max(map(len, column), default=0) for column in (states, states.values()))
    for origin, members in groupby(found.items(), lambda item: _origin(item[1])):
        say(f"{origin}:")
        for name, listed in members:
            say(f"  {name:{width}}  {listed.kind:9}  {states[name]:{wide}}  {listed.summary}")
    if any(state.endswith("*") for state in states.values()):
        say("* below the standard: in one world, without tuning, cost, pilot or a hash committed before")
    return 0


def _origin(listed: Listed) -> str:
    """Where a recipe comes from: our papers, our studies, or another package."""
    return {Paper: "papers", Study: "studies"}.get(type(listed.card), listed.home)


def _state(name: str, listed: Listed) -> str:
    """What is kept of a claim in `claims/` of the working folder, else in the paper's folder: `holds`, `shown`, `null`,
    `open`, the verdict with a star where it is below the standard; `claim` if nothing is, or of an earlier form
    only, empty without a claim."""
    if not listed.claim:
        return ""
    own = FOLDER / f"{name}.json"
    path = own if own.exists() else listed.result
    if path is None:
        return CLAIMED
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
        return {"earlier form": CLAIMED, "below standard": f"{result['verdict']}*"}.get(called := word(result), called)
    except (ValueError, KeyError, TypeError) as e:
        raise RunError(f"{path} cannot be read: {type(e).__name__}: {e}; remove it") from e
