"""`longstride make-base`: trains the base model anew from scripted demonstrations, as the shipped one was made."""

import argparse
import sys
from pathlib import Path
from typing import Any

from longstride.cli.common import free_folder


def add(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser("make-base", help="make the base model anew", description=__doc__, allow_abbrev=False)
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="replaces a setting, such as tokens=1000000")
    parser.add_argument(
        "--out", type=Path, default=Path("base"), metavar="DIR", help="model folder (default: ./%(default)s)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Trains and saves."""
    from longstride.core.config import resolve
    from longstride.core.lock import held
    from longstride.starts.warmstart import WarmStart, make_base

    config = resolve(WarmStart, WarmStart(), args.overrides)
    folder = free_folder(args.out)
    with held(folder):
        make_base(folder, config, _report)
    print(f"{folder}: {sum(p.stat().st_size for p in folder.iterdir()) / 1e6:.1f} MB")
    return 0


def _report(now: dict[str, float]) -> None:
    words = f"{now['tokens'] / 1e6:.2f}M tokens  loss {now['loss']:.3f}  {now['tokens_per_second']:,.0f} tokens/s"
    if now["share"] == 0:
        print(f"recites  {words}", file=sys.stderr)
    else:
        left = now["seconds"] * (1 / now["share"] - 1)
        print(f"{now['share']:4.0%}  {words}  {left / 60:.0f} min left", file=sys.stderr)
