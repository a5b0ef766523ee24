"""`longstride`: reads the command line, runs one command, and turns errors into one message.

What always holds: a user's mistake or a known trouble ends with `error: ...` on stderr and exit code 2, never with a
traceback; a bug keeps its traceback; Ctrl-C ends with 130. Nothing heavy is imported before a command runs.
"""

import argparse
import errno
import os
import sys
from collections.abc import Sequence

from longstride import __version__
from longstride.cli import bench, claim, doctor, evaluate, listing, make_base, replay, serve, train, view
from longstride.core.errors import LongstrideError


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `longstride ARGV`; returns the exit code.

    Raises:
        SystemExit: `--help`, `--version`, or a command line that cannot be read (code 2).
    """
    parser = _parser()
    args, rest = parser.parse_known_args(argv)
    if not hasattr(args, "run"):
        parser.print_help()
        return 2
    # argparse returns positional words after an option (`train tti --seed 1 lr=2`) as unknown
    if not hasattr(args, "overrides") or any(word.startswith("-") for word in rest):
        if rest:
            parser.error(f"unknown arguments: {' '.join(rest)}; see `longstride {args.command} --help`")
    else:
        args.overrides += rest
    try:
        return args.run(args)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `longstride list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except LongstrideError as e:
        return _fail(e, str(e))
    except OSError as e:
        if e.errno != errno.ENOSPC:
            raise
        return _fail(e, f"the disk is full: {e.filename or 'a file'} could not be written; make room and try again")


def _fail(error: Exception, message: str) -> int:
    print(f"error: {message}", *getattr(error, "__notes__", ()), sep="\n", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="longstride",
        description="Train, test and study agents whose interaction horizon scales.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"longstride {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for command in (listing, train, evaluate, claim, view, replay, serve, bench, doctor, make_base):
        command.add(commands)
    return parser
