"""Actions of BrowserGym's grammar, such as `click('a12')`, and ours, such as `click [3]`.

| ours | BrowserGym's |
|---|---|
| `click [3]`, `hover [3]` | `click('a12')`, `hover('a12')` |
| `fill [3] words` | `fill('a12', 'words')` |
| `type [3] words` | `fill('a12', 'words')`, then `press('a12', 'Enter')` |
| `select [3] red` | `select_option('a12', 'red')` |
| `scroll down`, `scroll up` | `scroll(0, 600)`, `scroll(0, -600)` |
| `goto address`, `back` | `goto('address')`, `go_back()` |
| `tab new`, `tab 2` | `new_tab()`, `tab_focus(1)` |
| `answer words` | `send_msg_to_user('words')` |
| `infeasible words`, `answer n/a` | `report_infeasible('words')` |
| `wait` | `noop()` |

What always holds: nothing is evaluated (a call is read as a syntax tree, its arguments as literals);
`from_browsergym` never raises; `actions.parse` reads what it returns as the same action, so white space is that of one
line. `home` is the only action of ours that BrowserGym does not have.
"""

import ast
from collections.abc import Mapping
from typing import Any

from longstride.envs.sites.actions import INFEASIBLE, WebAction, parse

PIXELS = 600
"""What one `scroll` moves the page by."""
MAX_TEXT = 20_000
"""Characters of a text that are read."""
ARGUMENTS = {
    "click": ("bid",),
    "hover": ("bid",),
    "fill": ("bid", "value", "enable_autocomplete_menu"),
    "press": ("bid", "key_comb"),
    "select_option": ("bid", "options"),
    "scroll": ("delta_x", "delta_y"),
    "goto": ("url",),
    "go_back": (),
    "new_tab": (),
    "tab_focus": ("index",),
    "send_msg_to_user": ("text",),
    "report_infeasible": ("reason",),
    "noop": ("wait_ms",),
}
"""The calls that have a counterpart and the names of their arguments (BrowserGym 0.14, `core/action/functions.py`)."""
OPTIONAL = ("enable_autocomplete_menu", "wait_ms")


def to_browsergym(action: WebAction, bids: Mapping[int, str]) -> str:
    """BrowserGym's code for an action; `bids` names the elements of the observation that the action is about.

    Raises:
        KeyError: the action's element is not in `bids`.
        ValueError: the action is `home`: BrowserGym knows no first address; go to it instead.
    """
    match action:
        case WebAction("click" | "hover" as verb, int(number)):
            return f"{verb}({bids[number]!r})"
        case WebAction("fill", int(number), words):
            return f"fill({bids[number]!r}, {words!r})"
        case WebAction("type", int(number), words):
            return f"fill({bids[number]!r}, {words!r})\npress({bids[number]!r}, 'Enter')"
        case WebAction("select", int(number), option):
            return f"select_option({bids[number]!r}, {option!r})"
        case WebAction("scroll"):
            return f"scroll(0, {PIXELS if action.text == 'down' else -PIXELS})"
        case WebAction("goto"):
            return f"goto({action.text!r})"
        case WebAction("back"):
            return "go_back()"
        case WebAction("tab"):
            return "new_tab()" if action.text == "new" else f"tab_focus({int(action.text) - 1})"
        case WebAction("answer") if action.text.lower() != INFEASIBLE:
            return f"send_msg_to_user({action.text!r})"
        case WebAction("answer" | "infeasible"):
            return f"report_infeasible({action.text!r})"
        case WebAction("wait"):
            return "noop()"
    raise ValueError(f"BrowserGym has no counterpart of {action.verb!r}")


def from_browsergym(text: str, numbers: Mapping[str, int]) -> WebAction | str:
    """The action that BrowserGym's code means, or one sentence that says what is wrong with it.

    Args:
        text: one call, or `fill` and `press` of Enter on the same element.
        numbers: the elements' numbers by `bid`.
    """
    calls = _calls(text)
    if isinstance(calls, str):
        return calls
    action = _action(calls, numbers)
    if isinstance(action, str):
        return action
    understood = parse(str(action))
    return action if understood == action else f"{calls[0][0]} with these arguments cannot be said as an action"


def _calls(text: str) -> list[tuple[str, dict[str, Any]]] | str:
    """Names and arguments of the calls in a text."""
    if len(text) > MAX_TEXT:
        return f"the code has {len(text)} characters; at most {MAX_TEXT} are read"
    calls = []
    try:
        for statement in ast.parse(text.strip()).body:
            node = statement.value if isinstance(statement, ast.Expr) else None
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                return "a call is needed, such as click('a12')"
            if (names := ARGUMENTS.get(node.func.id)) is None:
                return f"{node.func.id[:40]!r} has no counterpart; use one of {', '.join(ARGUMENTS)}"
            given = dict(zip(names, map(ast.literal_eval, node.args), strict=False))
            given |= {str(k.arg): ast.literal_eval(k.value) for k in node.keywords}
            needed = [n for n in names if n not in OPTIONAL]
            if len(node.args) > len(names) or not set(needed) <= set(given) <= set(names):
                return f"{node.func.id} takes ({', '.join(names)}) and nothing else here"
            calls.append((node.func.id, given))
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):  # what Python's parser has for bad text
        return "this is not a call with literal arguments, such as click('a12')"
    return calls or "no action was given"


def _action(calls: list[tuple[str, dict[str, Any]]], numbers: Mapping[str, int]) -> WebAction | str:
    (name, given), *rest = calls
    number = None
    if "bid" in given:
        bid = given["bid"]
        number = numbers.get(bid) if isinstance(bid, str) else None
        if number is None:
            return f"there is no element with the bid {str(bid)[:40]!r}"
    if rest:
        enter = ("press", {"bid": given.get("bid"), "key_comb": "Enter"})
        if name != "fill" or rest != [enter]:
            return "one action at a time; only fill and press of Enter on the same element go together"
        name = "type"
    match name, given:
        case "click" | "hover", _:
            return WebAction(name, number)
        case "fill" | "type", {"value": str(words)}:
            return WebAction(name, number, _line(words))
        case "select_option", {"options": str(option) | [str(option)]}:
            return WebAction("select", number, _line(option))
        case "scroll", {"delta_x": 0 | 0.0, "delta_y": int(down) | float(down)} if down:
            return WebAction("scroll", text="down" if down > 0 else "up")
        case "goto", {"url": str(url)}:
            return WebAction("goto", text=_line(url))
        case "go_back", _:
            return WebAction("back")
        case "new_tab", _:
            return WebAction("tab", text="new")
        case "tab_focus", {"index": int(index)} if 0 <= index < MAX_TEXT:
            return WebAction("tab", text=str(index + 1))
        case "send_msg_to_user", {"text": str(words)}:
            return WebAction("answer", text=_line(words))
        case "report_infeasible", {"reason": str(words)}:
            return WebAction("infeasible", text=_line(words))
        case "noop", _:
            return WebAction("wait")
    return f"{name} with these arguments has no counterpart"


def _line(words: str) -> str:
    return " ".join(words.split())
