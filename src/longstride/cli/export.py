"""`longstride export`: a run's policy as a Hugging Face folder with a model card (of control: as TorchScript), or its
episodes in a format of others (ATIF, chat messages, token ids with masks, a Hugging Face data set)."""

import argparse
from pathlib import Path
from typing import Any

from longstride.cli.common import say
from longstride.core.errors import ConfigError

FORMATS = ("atif", "messages", "sft", "parquet")
EPISODES = ("training", "before", "after")


def add(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "export", help="write a run's policy or episodes", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("folder", type=Path, metavar="RUN", help="a run folder, finished or not")
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--out", type=Path, metavar="DIR", help="where the policy goes")
    target.add_argument("--trajectories", type=Path, metavar="DIR", help="where the episodes go")
    parser.add_argument("--adapter", action="store_true", help="LoRA adapters alone, for peft, not merged weights")
    parser.add_argument("--format", choices=FORMATS, help="of the episodes (default: atif)")
    parser.add_argument(
        "--episodes",
        choices=EPISODES,
        help="those that were trained on (default), or those kept of the evaluations before and after training",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Writes the folder and prints where it is."""
    from longstride.control.recipe import ControlRecipe
    from longstride.report.export import export, export_trajectories
    from longstride.run.experiment import load_run_experiment

    if args.trajectories is None:
        if args.format or args.episodes:
            raise ConfigError("--format and --episodes are of --trajectories DIR; --out DIR writes the policy")
        recipe = load_run_experiment(args.folder)
        if isinstance(recipe, ControlRecipe) and not args.adapter:
            from longstride.control.exporting import export_policy

            say(export_policy(args.folder, recipe, args.out))
        else:
            say(export(args.folder, args.out, args.adapter))
        return 0
    if args.adapter:
        raise ConfigError("--adapter is of --out DIR; --trajectories DIR writes episodes")
    n = export_trajectories(args.folder, args.trajectories, args.format or "atif", args.episodes or "training")
    say(f"{args.trajectories}: {n} episodes")
    return 0
