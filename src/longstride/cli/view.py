"""`longstride view`: writes a run's report.html again and prints where it is."""

import argparse
from pathlib import Path
from typing import Any

from longstride.cli.common import say


def add(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser("view", help="write a run's report again", description=__doc__, allow_abbrev=False)
    parser.add_argument("folder", type=Path, metavar="RUN", help="a run folder, finished or not")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Writes the report."""
    from longstride.report.html import write_report
    from longstride.run.experiment import check_run_folder

    if args.folder.is_dir() and not (args.folder / "metrics.jsonl").exists():
        check_run_folder(args.folder)  # else a page about nothing would be left in any folder
    say(write_report(args.folder))
    return 0
