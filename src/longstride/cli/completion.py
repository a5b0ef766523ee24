"""`longstride completion`: a script that completes commands, options, recipes and settings in a shell. Once for all:

bash:  longstride completion bash > ~/.local/share/bash-completion/completions/longstride
zsh:   longstride completion zsh > a folder of $fpath, as _longstride
fish:  longstride completion fish > ~/.config/fish/completions/longstride.fish
"""

import argparse
from collections.abc import Callable, Iterable
from typing import Any, Literal, get_args, get_origin

from argcomplete.completers import BaseCompleter, FilesCompleter
from argcomplete.finders import CompletionFinder
from argcomplete.shell_integration import shellcode

from longstride.cli.evaluate import NAMES as STRATEGIES
from longstride.cli.searches import GUIDES
from longstride.papers import catalogue
from longstride.papers.card import TOPICS

SHELLS = ("bash", "zsh", "fish")
_files = FilesCompleter()


def add(commands: Any) -> None:
    """Adds the command."""
    parser = commands.add_parser(
        "completion",
        help="completion for a shell",
        description=__doc__,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=SHELLS, help="which script")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the script of a shell."""
    print(shellcode(["longstride"], shell=args.shell), end="")
    return 0


def answer(parser: argparse.ArgumentParser) -> None:
    """Where the script of a shell calls the program, tells it what fits, and ends the process; else does nothing."""
    _Finder()(parser, always_complete_options=False, default_completer=_Names())


class _Finder(CompletionFinder):
    """Offers settings also behind an option: argparse gives such words to no argument, and `main` to the settings."""

    def collect_completions(
        self, active_parsers: list[argparse.ArgumentParser], parsed_args: argparse.Namespace, cword_prefix: str
    ) -> list[str]:
        found = super().collect_completions(active_parsers, parsed_args, cword_prefix)
        if "overrides" in parsed_args and not getattr(active_parsers[-1], "active_actions", True):
            found += [word for word in _settings(cword_prefix, parsed_args) if word.startswith(cword_prefix)]
        return found


class _Names(BaseCompleter):
    """What may stand for an argument that has no choices; a mapping says what each is."""

    def __call__(
        self, *, prefix: str, action: argparse.Action, parser: argparse.ArgumentParser, parsed_args: argparse.Namespace
    ) -> Iterable[str]:
        names = NAMES.get(action.dest)
        return names(prefix, parsed_args) if names else _files(prefix)


def _recipes(prefix: str, args: argparse.Namespace) -> Iterable[str]:
    return {name: listed.summary for name, listed in catalogue().items()} | dict.fromkeys(_files(prefix), "")


def _claims(prefix: str, args: argparse.Namespace) -> Iterable[str]:
    return {name: listed.summary for name, listed in catalogue().items() if listed.claim}


def _settings(prefix: str, args: argparse.Namespace) -> Iterable[str]:
    """`KEY=` for every field of the recipe that was named; behind a key `KEY=VALUE`, where there are few values."""
    if (name := getattr(args, "recipe", None)) not in catalogue():
        return []
    from longstride import papers
    from longstride.core.component import component_in
    from longstride.core.hints import fields_below, member_names

    fields = dict(fields_below(type(papers.load(name)), component_in))
    parts = {f"{key}.type": part for key, field in fields.items() if (part := component_in(field.annotation))}
    members = {key: names for key, part in parts.items() if len(names := member_names(part)) > 1}
    key, given, _ = prefix.partition("=")
    if not given:
        return [f"{key}=" for key in (*fields, *members)]
    values = members.get(key) or (_values(fields[key].annotation) if key in fields else [])
    return [f"{key}={value}" for value in values]


def _values(annotation: Any) -> list[str]:
    """The values of a field that has few."""
    if annotation is bool:
        return ["false", "true"]
    inside = get_args(annotation)
    return list(map(str, inside)) if get_origin(annotation) is Literal else [v for a in inside for v in _values(a)]


def _trackers(prefix: str, args: argparse.Namespace) -> Iterable[str]:
    from longstride.report.trackers import TRACKERS

    return TRACKERS


NAMES: dict[str, Callable[[str, argparse.Namespace], Iterable[str]]] = {
    "recipe": _recipes,
    "name": _claims,
    "overrides": _settings,
    "strategy": lambda prefix, args: STRATEGIES,
    "guide": lambda prefix, args: GUIDES | dict.fromkeys(_files(prefix), ""),
    "track": _trackers,
    "topic": lambda prefix, args: TOPICS,
}
"""What fits, by the name under which an argument is kept, given what is typed of it and the arguments before."""
