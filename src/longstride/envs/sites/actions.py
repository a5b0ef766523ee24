"""The grammar of web actions: what a policy's text means.

A policy writes `Thought: free words Action: click [3]`. The thought may be missing; the last `Action:` counts. Words
between a verb and its number are a label for the reader (`click amber lantern [3]`) and have no effect. What always
holds: `parse` never raises and never executes anything; `str(parse(str(action)))` is `str(action)`; an action has no
lone surrogates.

| action | effect |
|---|---|
| `click [3]` | follow the link, press the button, toggle the box |
| `type [2] words` | put the words into the field and press Enter |
| `fill [2] words` | put the words into the field |
| `select [4] option` | choose the option |
| `scroll down`, `scroll up` | move the window over a long page |
| `hover [3]` | put the mouse over the element |
| `back` | the page before, like the browser's button |
| `home` | the task's first address |
| `goto address` | another address that the task allows |
| `tab new`, `tab 2` | open the first address in a new tab; bring a tab to the front |
| `wait` | nothing |
| `answer words` | end with this answer; `answer n/a` says that the task cannot be done |
| `infeasible words` | the same as `answer n/a`, with a reason |

`hover` and `tab` need a browser with a screen; elsewhere they are an error.
"""

import re
from dataclasses import dataclass

from longstride.envs.sites.cleaning import well_formed
from longstride.envs.text import MARK
from longstride.envs.tools import Manual, Tool, arguments

NEEDS_ELEMENT = {"click": False, "hover": False, "type": True, "fill": True, "select": True}
"""Verbs that take an element number; True where words must follow it."""
BARE = ("back", "home", "wait")
VERBS = (*NEEDS_ELEMENT, "scroll", *BARE, "goto", "tab", "answer", "infeasible")
INFEASIBLE = "n/a"
"""The answer that the task cannot be done."""
_ELEMENT = re.compile(r"\[(\d{1,6})\]")


@dataclass(frozen=True, slots=True)
class WebAction:
    """A parsed action."""

    verb: str
    element: int | None = None
    text: str = ""

    def __str__(self) -> str:
        parts = [self.verb]
        if self.element is not None:
            parts.append(f"[{self.element}]")
        if self.text:
            parts.append(self.text)
        return " ".join(parts)


MANUAL = Manual(
    (
        Tool(
            "click",
            arguments(element="integer"),
            "follows a link, presses a button or toggles a box",
            "click [{element}]",
        ),
        Tool(
            "type",
            arguments(element="integer", text="string"),
            "puts words into a field and presses Enter",
            "type [{element}] {text}",
        ),
        Tool("fill", arguments(element="integer", text="string"), "puts words into a field", "fill [{element}] {text}"),
        Tool(
            "select", arguments(element="integer", option="string"), "chooses an option", "select [{element}] {option}"
        ),
        Tool("scroll", arguments(direction=["up", "down"]), "moves over a long page", "scroll {direction}"),
        Tool("back", arguments(), "goes to the page before", "back"),
        Tool("home", arguments(), "goes to the first page", "home"),
        Tool("goto", arguments(address="string"), "opens an address", "goto {address}"),
        Tool("wait", arguments(), "does nothing", "wait"),
        Tool(
            "answer",
            arguments(text="string"),
            f"ends the task with an answer; {INFEASIBLE} says that it cannot be done",
            "answer {text}",
        ),
    ),
    about="You act on a web site, which you see as text; what can be acted on has a number in brackets.",
    needed=False,
)
"""What an agent reads that does not know the grammar. `hover` and `tab`, which need a browser with a screen, are left
out."""


def parse(text: str) -> WebAction | str:
    """The action in a policy's text, or one sentence that explains what is wrong with it."""
    line = well_formed(" ".join(text.rpartition(MARK)[2].split()))
    verb, _, rest = line.partition(" ")
    verb = verb.lower()
    if verb in NEEDS_ELEMENT:
        number = _ELEMENT.search(rest)
        if number is None:
            return f"{verb} needs the number of an element, such as {verb} [1]"
        words = rest[number.end() :].strip()
        if NEEDS_ELEMENT[verb] and not words:
            return f"{verb} needs words after the number"
        return WebAction(verb, int(number[1]), words if NEEDS_ELEMENT[verb] else "")
    if verb in BARE:
        return WebAction(verb)
    if verb == "scroll":
        return WebAction(verb, text=rest) if rest in ("up", "down") else "scroll goes up or down"
    if verb == "tab":
        return WebAction(verb, text=rest) if re.fullmatch(r"new|[0-9]{1,3}", rest) else "tab needs a number, or new"
    if verb in ("answer", "goto"):
        return WebAction(verb, text=rest) if rest else f"{verb} needs {'words' if verb == 'answer' else 'an address'}"
    if verb == "infeasible":
        return WebAction(verb, text=rest)
    return f"unknown action {verb[:20]!r}; use one of {', '.join(VERBS)}" if verb else "no action was given"
