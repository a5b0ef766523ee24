"""`longstride`: reads the command line, runs one command, and turns errors into one message.

What always holds: a user's mistake or a known trouble ends with `error: ...` on stderr and exit code 2, never with a
traceback, and so does an error in a file of the user's own, with its line; a bug keeps its traceback; Ctrl-C ends with
130. Nothing heavy is imported before a command runs.
"""

import argparse
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from longstride import __version__
from longstride.cli import (
    advise,
    allocate,
    bench,
    card,
    claim,
    compare,
    completion,
    doctor,
    evaluate,
    export,
    fit,
    listing,
    make_base,
    playback,
    serve,
    sweep,
    train,
    view,
)
from longstride.cli.common import say
from longstride.core.errors import LongstrideError, LongstrideWarning
from longstride.core.files import explain, trouble_of
from longstride.core.modules import own_frames

COMMANDS = (
    listing,
    train,
    evaluate,
    advise,
    card,
    claim,
    sweep,
    fit,
    allocate,
    view,
    compare,
    playback,
    export,
    serve,
    bench,
    doctor,
    make_base,
    completion,
)
"""In the order in which `--help` shows them."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `longstride ARGV`; returns the exit code.

    Raises:
        SystemExit: `--help`, `--version`, or a command line that cannot be read (code 2).
    """
    parser = _parser()
    completion.answer(parser)
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
        with _warnings_as_lines():
            return args.run(args)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `longstride list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except LongstrideError as e:
        return _fail(e, str(e))
    except OSError as e:
        if trouble_of(e) is None:
            raise
        return _fail(e, f"{explain(e)}; see to it and try again")
    except Exception as e:
        if not (frames := own_frames(e)):
            raise
        *calls, place = [f"{f.filename}, line {f.lineno}, in {f.name}" for f in frames]
        return _fail(e, f"{place}: {type(e).__name__}: {e}", *(f"  called by {call}" for call in reversed(calls)))


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Within it each of our warnings is one line `warning: ...` on stderr; those of libraries stay as they are."""
    show, shown = warnings.showwarning, set()

    def line(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if not issubclass(category, LongstrideWarning):
            show(message, category, *place, **more)
        elif str(message) not in shown:
            shown.add(str(message))
            say(f"warning: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", LongstrideWarning)
        warnings.showwarning = line
        yield


def _fail(error: Exception, message: str, *more: str) -> int:
    say(f"error: {message}", *more, *getattr(error, "__notes__", ()), file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="longstride",
        description="Train, test and study agents whose interaction horizon scales.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"longstride {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands)
    return parser
