"""Programs of WebArena: what has to be read from which page before a `program_html` evaluator can judge.

What always holds: a program is data; only a browser runs it, inside its page. WebArena's Python helpers (`func:...`)
are probes known by name and never evaluated; an unknown one is refused.

The environment reads what `programs_of` lists, in its order, and puts the contents into its final state as `programs`:
a text, or None where the page or the element is not there.
"""

import re
from dataclasses import dataclass
from typing import Any, Literal

from longstride.core.component import unknown
from longstride.core.errors import TaskError, short
from longstride.core.task import Task
from longstride.web.benchmarks.records import is_address, is_texts

LAST = "last"
"""The page that was open when the episode ended."""

PROBES: dict[str, dict[str, bool]] = {
    "url": {"shopping_get_latest_order_url": False, "reddit_get_post_url": True},
    "locator": {
        "shopping_get_sku_latest_review_author": True,
        "shopping_get_sku_latest_review_rating": True,
        "gitlab_get_project_memeber_role": True,  # spelt like this in WebArena's files
    },
}
"""Probes by where they may stand; True where they take an argument."""

_CALL = re.compile(r"""func:\s*+(\w+)\(\s*+(?:__page__\s*+,?)?\s*+(?:'([^']*)'|"([^"]*)")?\s*+\)\s*+""")
"""Possessive, since a task file may have any number of spaces."""
_RULES = ("exact_match", "must_include", "fuzzy_match")


@dataclass(frozen=True, slots=True)
class Helper:
    """A helper of WebArena, by name (`evaluation_harness/helper_functions.py` there).

    | name | argument | what it reads |
    |---|---|---|
    | `shopping_get_latest_order_url` | | address of the newest order |
    | `reddit_get_post_url` | an address, or `last` | address of the post that the address lies below; else itself |
    | `shopping_get_sku_latest_review_author` | stock-keeping unit | nickname of the newest review |
    | `shopping_get_sku_latest_review_rating` | stock-keeping unit | its rating in per cent |
    | `gitlab_get_project_memeber_role` | account | the account's role in the table of members that is open |
    """

    name: str
    argument: str = ""


@dataclass(frozen=True, slots=True)
class Program:
    """One reading, and what it has to hold."""

    url: str | Helper
    """The page: `last`, an address, or a probe that gives one."""
    locator: str | Helper
    """A JavaScript expression whose value is read; empty for the HTML of the page; or a probe."""
    prep_actions: tuple[str, ...]
    """JavaScript expressions that are run before; what they raise is ignored."""
    rule: Literal["exact_match", "must_include", "fuzzy_match"]
    contents: tuple[str, ...]
    """What the rule requires: one text for `exact_match`, else one or more, each with ` |OR| ` between alternatives."""


def programs_of(task: Task) -> list[Program]:
    """The programs of a task's evaluator, in order; empty where it has none.

    Raises:
        TaskError: a program is malformed or its probe unknown, or there is more than one `program_html` evaluator.
    """
    try:
        found = list(_specs(task.evaluator))
    except RecursionError:
        raise TaskError(f"task {task.id!r}: its evaluator is nested too deeply; use fewer levels") from None
    if len(found) > 1:
        raise TaskError(f"task {task.id!r}: {len(found)} evaluators 'program_html'; put all programs into one")
    return read_programs(found[0].get("programs"), f"task {task.id!r}") if found else []


def read_programs(items: Any, where: str) -> list[Program]:
    """Programs from WebArena's own items (`url`, `locator`, `required_contents`, and `prep_actions` if there are any).

    Raises:
        TaskError: malformed; `where` names the task.
    """
    if not isinstance(items, list) or not items:
        raise TaskError(f"{where}: `program_html` needs a list of programs, got {short(items)}")
    return [_program(item, f"{where}: program {i}") for i, item in enumerate(items, 1)]


def _specs(spec: Any) -> Any:
    if isinstance(spec, dict) and spec.get("type") == "program_html":
        yield spec
    elif isinstance(spec, dict) and isinstance(spec.get("of"), list):
        for part in spec["of"]:
            yield from _specs(part)


def _program(item: Any, where: str) -> Program:
    if not isinstance(item, dict) or not item.keys() <= {"url", "locator", "prep_actions", "required_contents"}:
        raise TaskError(
            f"{where}: expected `url`, `locator`, `required_contents` and perhaps `prep_actions`, got {short(item)}"
        )
    url, locator, actions = item.get("url"), item.get("locator"), item.get("prep_actions", [])
    if not isinstance(url, str) or not isinstance(locator, str):
        raise TaskError(f"{where}: `url` and `locator` are texts; got {short(url)} and {short(locator)}")
    if actions != [] and not is_texts(actions):
        raise TaskError(f"{where}: `prep_actions` is a list of JavaScript expressions, got {short(actions)}")
    page = _probe(url, "url", where) if url.startswith("func:") else url
    if isinstance(page, str) and page != LAST and not is_address(page):
        raise TaskError(f"{where}: `url` is {LAST!r}, an address or func:..., got {short(url)}")
    place = _probe(locator, "locator", where) if locator.startswith("func:") else locator.strip()
    if isinstance(place, str) and place and not place.startswith(("document.", "[...document.")):
        raise TaskError(f"{where}: `locator` begins with document. or func:, or is empty; got {short(locator)}")
    return Program(page, place, tuple(actions), *_required(item.get("required_contents"), where))


def _required(value: Any, where: str) -> Any:
    rule, wanted = next(iter(value.items())) if isinstance(value, dict) and len(value) == 1 else (None, None)
    if rule == "exact_match" and isinstance(wanted, str):  # it may be empty: a field that has to be cleared
        return rule, (wanted,)
    if rule in _RULES[1:] and is_texts(wanted):
        return rule, tuple(wanted)
    raise TaskError(
        f"{where}: `required_contents` is exact_match with a text, or must_include or fuzzy_match with a list of texts;"
        f" got {short(value)}"
    )


def _probe(text: str, place: str, where: str) -> Helper:
    call = _CALL.fullmatch(text)
    if call is None:
        raise TaskError(f"{where}: `{place}` is no probe with at most one quoted argument: {short(text)}")
    name, argument = call[1], call[2] if call[2] is not None else call[3]
    if name not in PROBES[place]:
        raise TaskError(f"{where}: {unknown(f'probe for a {place}', name, PROBES[place])}")
    if PROBES[place][name] != bool(argument):
        raise TaskError(
            f"{where}: {name} takes {'one argument' if PROBES[place][name] else 'no argument'}: {short(text)}"
        )
    if name == "reddit_get_post_url" and argument != "__last_url__" and not is_address(argument):
        raise TaskError(f"{where}: {name} takes __last_url__ or an address, got {short(argument)}")
    return Helper(name, LAST if argument == "__last_url__" else argument or "")
