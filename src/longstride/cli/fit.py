"""`longstride fit`: a scaling law fitted to runs, with intervals, and held to points that it did not see."""

import argparse
import math
from pathlib import Path
from typing import Any

from longstride.cli.common import print_json, say

LAWS = ("sigmoid", "power", "rising_power", "geometric", "mixed_geometric", "sized_power", "log_sigmoid")


def add(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser("fit", help="fit a scaling law to runs", description=__doc__, allow_abbrev=False)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run folders, or folders of them")
    parser.add_argument("--law", choices=LAWS, default="sigmoid", help="of the measure by what was spent")
    parser.add_argument(
        "--x",
        default="iteration",
        metavar="NAME",
        help="iteration (default), episodes, env_steps, tokens, seconds, or a measure of the run; goal_distance with "
        "one of these as --y: what half of the tasks at a distance cost; attempts: coverage by attempts at a task; or "
        "a setting that is a number, such as tasks.environments: where each run ended",
    )
    parser.add_argument("--y", default="success", metavar="NAME", help="a measure (default: success), or error")
    parser.add_argument("--by", default="", metavar="KEY", help="a setting; runs of each value have a fit of their own")
    parser.add_argument(
        "--until", type=float, default=math.inf, metavar="X", help="hold out the points beyond, and compare"
    )
    parser.add_argument(
        "--since", type=float, default=0.0, metavar="X", help="leave out the points before: first steps follow no law"
    )
    parser.add_argument(
        "--sizes-until",
        type=float,
        default=math.inf,
        metavar="N",
        help="hold out the runs of models of more parameters, and compare",
    )
    parser.add_argument(
        "--rival", action="append", choices=LAWS, default=[], help="another law, held to the same; may be given again"
    )
    parser.add_argument(
        "--gain", type=float, default=0.0, metavar="SHARE", help="of coverage: say when one more attempt adds less"
    )
    parser.add_argument(
        "--reach",
        default="",
        metavar="NAME=LEVEL",
        help="fit what was spent (--y env_steps) until a measure came to a level, by a setting (--x phases.0.utd)",
    )
    parser.add_argument(
        "--best",
        action="append",
        default=[],
        metavar="KEY",
        help="with --reach: a setting, whose value counts that costs least; as --y too: that value; may be given again",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="keep it as JSON, with a figure beside it")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints parameters with intervals, and what the points do not settle as warnings."""
    import warnings

    from longstride.core.component import build
    from longstride.core.errors import LongstrideWarning
    from longstride.report.fits import fit_runs, fits_as_text, keep
    from longstride.scaling import Law

    law, *rivals = (build(Law, {"type": name}) for name in (args.law, *args.rival))
    found = fit_runs(
        args.runs, law, args.x, args.y, args.by, args.until, args.since, rivals, args.gain, args.sizes_until,
        _level(args.reach), args.best,
    )  # fmt: skip
    for group in found["groups"]:
        for doubt in group["fit"]["doubts"]:
            warnings.warn(f"{group['setting']}: {doubt}", LongstrideWarning, stacklevel=2)
    shown = keep(found, args.out) if args.out else None
    if args.json:
        print_json(found)
    else:
        say(fits_as_text(found) + (f"\n\nkept: {shown}" if shown else ""))
    return 0


def _level(text: str) -> tuple[str, float] | None:
    """`return=-300` -> ("return", -300.0); empty: None."""
    from longstride.core.errors import ConfigError

    name, _, level = text.partition("=")
    try:
        return (name.strip(), float(level)) if text else None
    except ValueError:
        raise ConfigError(f"--reach {text}: expected a measure and a level, such as return=-300") from None
