"""`longstride make-data`: trains an agent online and writes what it does at several stages as offline data sets."""

import argparse
import re
from pathlib import Path
from typing import Any

from longstride.cli.common import experiment_from, say
from longstride.core.errors import ConfigError


def add(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "make-data",
        help="make offline data sets",
        description=__doc__,
        epilog="example: longstride make-data sac tasks.id=Pendulum-v1 --out pendulum",
        allow_abbrev=False,
    )
    parser.add_argument("recipe", metavar="RECIPE", help="of control, online, such as sac")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="replaces a field of the recipe")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the sets go (default: data-RECIPE)")
    parser.add_argument(
        "--format", choices=("hdf5", "npz", "minari"), default="hdf5", help="how they are written (default: hdf5)"
    )
    parser.add_argument(
        "--episodes", type=int, default=100, metavar="N", help="of random, medium and expert (default: 100)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Makes them; 130 when interrupted."""
    from longstride.control.making import make_data
    from longstride.control.recipe import ControlRecipe
    from longstride.core.config import resolve
    from longstride.report.live import Live

    base = experiment_from(args.recipe)
    recipe = resolve(type(base), base, args.overrides)
    if not isinstance(recipe, ControlRecipe):
        raise ConfigError(
            f"{args.recipe} is of a {recipe.type_name()}; data are made by a recipe of control, such as sac"
        )
    if args.episodes < 1:
        raise ConfigError(f"--episodes is at least 1, not {args.episodes}")
    folder = args.out or Path(f"data-{re.sub(r'[^A-Za-z0-9_-]', '-', recipe.name)}")
    with Live(recipe.name, recipe.iterations) as live:
        card = make_data(recipe, folder, args.format, args.episodes, live)
    for name, of in card["sets"].items():
        say(f"{name:14} {of['written']}  return {of['return']:.1f} ± {of['return_std']:.1f}, {of['steps']} steps")
    say(f"card: {folder / 'README.md'}")
    return 0
