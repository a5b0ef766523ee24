"""`longstride make-base`: trains a base model anew from scripted demonstrations, as the shipped ones were made."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longstride.cli.common import free_folder

if TYPE_CHECKING:
    from longstride.starts.warmstart import WarmStart


def add(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser("make-base", help="make the base model anew", description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "overrides",
        nargs="*",
        metavar="NAME|KEY=VALUE",
        help="which shipped model, first: judge makes base-judge (default: base); then settings to replace, such as "
        "tokens=1000000",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="model folder (default: its name, here)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Trains and saves."""
    from longstride.core.lock import held
    from longstride.starts.warmstart import make_base

    name, config = settings(args.overrides)
    folder = free_folder(args.out or Path(name))
    with held(folder):
        make_base(folder, config, _report)
    print(f"{folder}: {sum(p.stat().st_size for p in folder.iterdir()) / 1e6:.1f} MB")
    return 0


def settings(words: Sequence[str]) -> "tuple[str, WarmStart]":
    """The name of a model and how it is made, by what follows the command.

    Raises:
        ConfigError: no shipped model has that name, or a setting does not fit.
    """
    from longstride.core.config import resolve
    from longstride.core.errors import ConfigError, unknown
    from longstride.starts.made import MADE
    from longstride.starts.warmstart import WarmStart

    name = words[0] if words and "=" not in words[0] else ""
    if name and name not in MADE:
        raise ConfigError(unknown("shipped model", name, MADE))
    overrides = [*MADE.get(name, ()), *words[bool(name) :]]
    return f"base-{name}" if name else "base", resolve(WarmStart, WarmStart(), overrides)


def _report(now: dict[str, float]) -> None:
    words = f"{now['tokens'] / 1e6:.2f}M tokens  loss {now['loss']:.3f}  {now['tokens_per_second']:,.0f} tokens/s"
    if now["share"] == 0:
        print(f"recites  {words}", file=sys.stderr)
    else:
        left = now["seconds"] * (1 / now["share"] - 1)
        print(f"{now['share']:4.0%}  {words}  {left / 60:.0f} min left", file=sys.stderr)
