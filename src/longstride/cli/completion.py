"""`longstride completion`: a script that completes commands, options, recipes and settings in a shell. Once for all:

bash:  longstride completion bash > ~/.local/share/bash-completion/completions/longstride
zsh:   longstride completion zsh > a folder of $fpath, as _longstride
fish:  longstride completion fish > ~/.config/fish/completions/longstride.fish
"""

import argparse
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Literal, get_args, get_origin

from longstride.papers import catalogue

SCRIPTS = {
    "bash": r"""_longstride() {
  local IFS=$' \t\n' line=${COMP_LINE:0:COMP_POINT} words last
  read -ra words <<< "$line"
  [[ $line == *' ' ]] && words+=("")
  last=${words[${#words[@]}-1]}
  IFS=$'\n'
  COMPREPLY=($(longstride completion words "${words[@]:1}" 2>/dev/null))
  [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace
  # readline takes what stands behind a "=" for a word of its own
  [[ $last == *=* && $COMP_WORDBREAKS == *=* ]] && COMPREPLY=("${COMPREPLY[@]#"${last%%=*}="}")
}
complete -o default -F _longstride longstride
""",
    "zsh": """#compdef longstride
local -a found keys rest
found=("${(@f)$(longstride completion words "${(@)words[2,CURRENT]}" 2>/dev/null)}")
keys=(${(M)found:#*=}) rest=(${found:#*=})
compadd -S '' -a keys
compadd -a rest
_files
""",
    "fish": """function __longstride_words
  longstride completion words (commandline -opc)[2..] (commandline -ct) 2>/dev/null
end
complete -c longstride -a '(__longstride_words)'
""",
}
"""By shell. Each asks for the words that fit, and the shell adds files."""


def add(commands: Any) -> None:
    """Adds the command; it completes all commands that are added, before it or after."""
    parser = commands.add_parser(
        "completion", help="completion for a shell", description=__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("shell", choices=(*SCRIPTS, "words"), help="which script; `words` is what the scripts ask")
    parser.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.set_defaults(run=partial(run, commands.choices))


def run(commands: dict[str, argparse.ArgumentParser], args: argparse.Namespace) -> int:
    """Prints a script, or what fits in place of the last word."""
    if args.shell in SCRIPTS:
        print(SCRIPTS[args.shell], end="")
    else:
        print("\n".join(fitting(commands, args.words)))
    return 0


def fitting(commands: dict[str, argparse.ArgumentParser], words: Sequence[str]) -> list[str]:
    """What may stand in place of the last word, which is unfinished.

    Args:
        commands: the parser of each command.
        words: what was typed behind `longstride`, the last one maybe empty.
    """
    *before, last = words or [""]
    if not before:
        return _that_begin(last, commands)
    if before[0] not in commands:
        return []
    actions = commands[before[0]]._actions
    options = {name: action for action in actions for name in action.option_strings}
    if last.startswith("-"):
        return _that_begin(last, options)
    if (asked := options.get(before[-1])) is not None and asked.nargs != 0:
        names = NAMES.get(str(asked.metavar))
        return _that_begin(last, names(before, last) if names else map(str, asked.choices or ()))
    metavars = {str(action.metavar): action for action in actions if not action.option_strings}
    found: list[str] = [str(choice) for action in metavars.values() for choice in action.choices or ()]
    for metavar, names in NAMES.items():
        if metavar in metavars:
            found += names(before, last)
    return _that_begin(last, found)


def _that_begin(start: str, names: Iterable[str]) -> list[str]:
    return sorted({name for name in names if name.startswith(start)})


def _recipes(before: Sequence[str], last: str) -> list[str]:
    return [] if _recipe(before) else list(catalogue())


def _claims(before: Sequence[str], last: str) -> list[str]:
    return [name for name, listed in catalogue().items() if listed.claim]


def _settings(before: Sequence[str], last: str) -> list[str]:
    """`KEY=` for every field of the recipe that was named; behind a key `KEY=VALUE`, where there are few values."""
    name = _recipe(before)
    if name is None:
        return []
    from longstride import papers
    from longstride.core.component import component_in
    from longstride.core.hints import fields_below, member_names

    fields = dict(fields_below(type(papers.load(name)), component_in))
    parts = {f"{key}.type": part for key, field in fields.items() if (part := component_in(field.annotation))}
    members = {key: names for key, part in parts.items() if len(names := member_names(part)) > 1}
    key, given, _ = last.partition("=")
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


def _trackers(before: Sequence[str], last: str) -> list[str]:
    from longstride.report.trackers import TRACKERS

    return list(TRACKERS)


def _recipe(words: Sequence[str]) -> str | None:
    """The first word that names a recipe."""
    known = catalogue()
    return next((word for word in words[1:] if word in known), None)


NAMES: dict[str, Callable[[Sequence[str], str], list[str]]] = {
    "RECIPE": _recipes, "NAME": _claims, "KEY=VALUE": _settings, "TRACKER": _trackers,
}  # fmt: skip
"""What fits where a command's help has one of these; the words before it and what is typed of it are given."""
