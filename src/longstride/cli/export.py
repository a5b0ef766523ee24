"""`longstride export`: a run's policy as a Hugging Face folder with a model card."""

import argparse
from pathlib import Path
from typing import Any

from longstride.cli.common import say


def add(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser("export", help="write a run's policy", description=__doc__, allow_abbrev=False)
    parser.add_argument("folder", type=Path, metavar="RUN", help="a run folder, finished or not")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where to")
    parser.add_argument("--adapter", action="store_true", help="LoRA adapters alone, for peft, not merged weights")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Writes the folder and prints where it is."""
    from longstride.report.export import export

    say(export(args.folder, args.out, args.adapter))
    return 0
