"""`longstride`: reads the command line, runs one command, and turns errors into one message.

What always holds: a user's mistake or a known trouble ends with `error: ...` on stderr and exit code 2, never with a
traceback, and so does an error in a file of the user's own, with its line; a bug keeps its traceback; Ctrl-C ends with
130, SIGTERM and SIGHUP with 143 and 129, in the same order as Ctrl-C and with the processes that were begun. Nothing
heavy is imported before a command runs.
"""

import argparse
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import active_children
from pathlib import Path
from types import FrameType
from typing import Any, cast

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
    gateway,
    listing,
    make_base,
    make_data,
    plan,
    playback,
    referee,
    serve,
    sweep,
    train,
    view,
)
from longstride.cli.common import say
from longstride.core.errors import ChangedWarning, LongstrideError, LongstrideWarning
from longstride.core.files import explain, trouble_of
from longstride.core.modules import message_of, own_frames

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
    referee,
    plan,
    playback,
    export,
    serve,
    gateway,
    bench,
    doctor,
    make_base,
    make_data,
    completion,
)
"""In the order in which `--help` shows them."""

ENDS = (signal.SIGTERM, signal.SIGHUP)
"""What a supervisor and a terminal that is closed send."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `longstride ARGV`; returns the exit code.

    Raises:
        SystemExit: `--help`, `--version`, or a command line that cannot be read (code 2).
    """
    parser = _parser()
    completion.answer(parser)
    words = sys.argv[1:] if argv is None else list(argv)
    if odd := next(filter(_unreadable, words), None):
        parser.error(f"{odd!r} has a NUL byte or half a character; no file and no setting is called so")
    args, rest = parser.parse_known_args(words)
    if not hasattr(args, "run"):
        parser.print_help()
        return 2
    # argparse returns positional words after an option (`train tti --seed 1 lr=2`) as unknown
    if not hasattr(args, "overrides") or any(word.startswith("-") for word in rest):
        if rest:
            parser.error(f"unknown arguments: {' '.join(rest)}; see `longstride {args.command} --help`")
    else:
        args.overrides += rest
    with _ended_like_an_interrupt() as ended:
        code = _run(args)
    return 128 + ended[0] if ended else code


def _run(args: argparse.Namespace) -> int:
    """Runs the command; errors become messages."""
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
        if trouble_of(e) is None and not _names(e, args):
            raise
        return _fail(e, f"{explain(e)}; see to it and try again")
    except Exception as e:
        if not (frames := own_frames(e)):
            raise
        *calls, place = [f"{f.filename}, line {f.lineno}, in {f.name}" for f in frames]
        return _fail(e, f"{place}: {message_of(e)}", *(f"  called by {call}" for call in reversed(calls)))


def _unreadable(word: str) -> bool:
    """Whether no system call takes a word."""
    try:
        return b"\0" in os.fsencode(word)
    except UnicodeEncodeError:
        return True


def _names(error: OSError, args: argparse.Namespace) -> bool:
    """Whether an error is about a path that was given with the command."""
    given = [os.path.abspath(path) for path in vars(args).values() if isinstance(path, Path)]
    return error.filename is not None and os.path.abspath(os.fsdecode(error.filename)) in given


@contextmanager
def _ended_like_an_interrupt() -> Iterator[list[int]]:
    """Within it SIGTERM and SIGHUP do what Ctrl-C does, once; yields the number of the one that came. Who ignores them
    (`nohup`) goes on, and a process that is forked from this one has none of it."""
    came: list[int] = []
    me = os.getpid()

    def end(number: int, frame: FrameType | None) -> None:
        if os.getpid() != me:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        elif not came:
            came.append(number)
            with suppress(OSError):  # the terminal is gone
                say(f"ended by {signal.Signals(number).name}", file=sys.stderr)
            for child in active_children():  # Ctrl-C reaches them too
                with suppress(ProcessLookupError):
                    os.kill(cast(int, child.pid), signal.SIGINT)
            raise KeyboardInterrupt

    main_thread = threading.current_thread() is threading.main_thread()
    numbers = [n for n in ENDS if main_thread and signal.getsignal(n) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, end)
    try:
        yield came
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Within it each of our warnings is one line `warning: ...` on stderr, and of a file that has changed since several
    runs one for the first of them and a count at the end; those of libraries stay as they are."""
    show, shown = warnings.showwarning, set()
    changed: dict[str, set[str]] = {}

    def line(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if not issubclass(category, LongstrideWarning):
            show(message, category, *place, **more)
        elif isinstance(message, ChangedWarning) and changed.get(message.file):
            changed[message.file].add(message.run)
        elif str(message) not in shown:
            shown.add(str(message))
            if isinstance(message, ChangedWarning):
                changed[message.file] = {message.run}
            say(f"warning: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", LongstrideWarning)
        warnings.showwarning = line
        try:
            yield
        finally:
            for file, runs in changed.items():
                if len(runs) > 1:
                    say(f"warning: {file} has changed since {len(runs)} runs were made with it", file=sys.stderr)


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
