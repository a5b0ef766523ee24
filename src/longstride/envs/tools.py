"""What an environment says of itself, and calls of its tools: described to the agent, read from its words, checked
against a JSON schema (`envs.schemas`).

A call is said in two ways: in the words of the environment's own grammar (`Action: click [3]`), and as the model's chat
template asks for it (`<tool_call>{"name": "click", "arguments": {"element": 3}}</tool_call>`).

What always holds: a call that does not fit is one sentence for the agent and never raises, whatever was said; nothing
is executed here.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from longstride.core import foreign
from longstride.core.errors import short, unknown
from longstride.core.foreign import UnreadableError, bounded
from longstride.envs.schemas import misfit
from longstride.envs.text import MARK, said

MAX_ARGUMENTS = 20_000
"""Characters of a call that are read."""
MAX_SIGNATURE = 4000
"""Characters of its arguments in short."""
MAX_DESCRIPTION = 300
"""Characters of a tool's description that the agent reads."""
ALL = "{...}"
"""In the form of a tool: all arguments, in JSON."""
_CALL = re.compile(r"([^\s{]+)\s*(.*)", re.DOTALL)
_ARGUMENT = re.compile(r"\{(\w+)\}")
_OPENING = re.compile(r"[\[{]")
TRIES = 50
"""Brackets, counted from the end, at which a call may begin."""
_TAGGED = re.compile(r"<tool_call>(.*?)(?:</tool_call>|$)", re.DOTALL)


class Call(NamedTuple):
    """A tool and its arguments, which fit its schema."""

    tool: str
    arguments: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.tool} {json.dumps(self.arguments)}"


@dataclass(frozen=True)
class Tool:
    """What can be called."""

    name: str
    schema: Mapping[str, Any]
    """JSON schema of its arguments."""
    description: str = ""
    form: str = ""
    """How a call is said in words: arguments stand in braces (`click [{element}]`), all of them as `{...}`. Left out,
    the name and all of them."""

    @property
    def line(self) -> str:
        """Form, arguments (`?` behind those that may be left out) and description, in one line."""
        shown = _ARGUMENT.sub(lambda found: found[1].upper(), self.form or f"{self.name} {ALL}")
        line = shown.replace(ALL, signature(self.schema))
        words = " ".join(self.description.split())[:MAX_DESCRIPTION]
        return f"{line}: {words}" if words else line

    @property
    def function(self) -> dict[str, Any]:
        """As chat templates take it."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.schema)}
        return {"type": "function", "function": function}

    def spelled(self, arguments: Mapping[str, Any]) -> str:
        """A call in words."""
        text = _ARGUMENT.sub(lambda found: _words(arguments.get(found[1], "")), self.form or f"{self.name} {ALL}")
        return text.replace(ALL, json.dumps(arguments))


def arguments(**kinds: str | list[str]) -> dict[str, Any]:
    """The schema of arguments that must all be given: by name a type of JSON, or the texts to choose from."""
    properties = {
        k: {"type": "string", "enum": kind} if isinstance(kind, list) else {"type": kind} for k, kind in kinds.items()
    }
    return {"type": "object", "properties": properties, "required": [*kinds], "additionalProperties": False}


@dataclass(frozen=True)
class Manual:
    """What an environment says of itself."""

    tools: tuple[Tool, ...]
    """What can be done in it."""
    about: str = ""
    """What it is, in a sentence or two."""
    words: str = ""
    """How to act in words; left out, a line for each tool."""
    needed: bool = True
    """Whether every agent reads it. One that was trained in an environment knows it without."""

    def __str__(self) -> str:
        lines = "\n".join(tool.line for tool in self.tools)
        how = self.words or (f"End each turn with {MARK} and one of these.\n{lines}" if lines else "")
        return "\n".join(filter(None, (self.about, how)))


def parse(text: str, tools: Mapping[str, Tool]) -> Call | str:
    """The call in a policy's text, `NAME {"argument": value}` after the last `Action:`, or what is wrong with it."""
    found = _CALL.fullmatch(said(text))
    if found is None:
        return "no action was given"
    name, rest = found.groups()
    return _fitting(name, read_object(rest or "{}"), tools)


def parse_calls(text: str, tools: Mapping[str, Tool]) -> Call | str:
    """The call in a policy's text, in the form of its chat template, or what is wrong with it.

    Read are `<tool_call>{"name": ..., "arguments": {...}}</tool_call>` (Qwen, Hermes), and where there are no tags the
    JSON that the text ends with: an object with `arguments` or `parameters` (Llama), or a list of one (Mistral).
    """
    tagged = _TAGGED.findall(text)
    if not tagged and not _OPENING.search(text):
        return f"no tool was called; call one of {', '.join(tools)}"
    found = read_json(tagged[0]) if tagged else _at_the_end(text)[1]
    calls = [*(found if isinstance(found, list) else [found]), *tagged[1:]]
    if isinstance(found, str):
        return found
    if len(calls) != 1:
        return f"{len(calls)} calls were made; make one in each turn"
    call = calls[0]
    name = call.get("name") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(name, str):
        return f'{short(call, 40)} is no call; expected {{"name": ..., "arguments": {{...}}}}'
    arguments = call.get("arguments", call.get("parameters", {}))
    if isinstance(arguments, str):
        arguments = read_object(arguments)
    elif not isinstance(arguments, dict):
        arguments = f"{short(arguments, 40)} is not a JSON object"
    return _fitting(name, arguments, tools)


def _at_the_end(text: str) -> tuple[str, Any]:
    """The words before the call or the list that a text ends with, and that JSON. Where it ends with none, the words
    before its first bracket, and what comes then, or what is wrong with it."""
    starts = [found.start() for found in _OPENING.finditer(text)]
    for start in starts[:1] + starts[1:][-TRIES:]:
        value = read_json(text[start:])
        if isinstance(value, list) or isinstance(value, dict) and "name" in value:
            return text[:start], value
    first = starts[0] if starts else len(text)
    return text[:first], read_json(text[first:])


def read_calls(text: str) -> tuple[str, list[tuple[str, Any]]]:
    """The words before the first call in a policy's text, and its calls: name and arguments, as they were said; the
    whole text where none of it is a call. The forms are those of `parse_calls`, and any number of them is read."""
    tagged = _TAGGED.findall(text)
    if tagged:
        found, words = [read_json(call) for call in tagged], text.partition("<tool_call>")[0]
    else:
        words, whole = _at_the_end(text)
        found = whole if isinstance(whole, list) else [whole]
    calls: list[tuple[str, Any]] = []
    for call in found:
        name = call.get("name") if isinstance(call, dict) else None
        if not isinstance(call, dict) or not isinstance(name, str):
            return text, []
        calls.append((name, call.get("arguments", call.get("parameters", {}))))
    return words.strip() if calls else text, calls


def read_words(text: str, tools: Mapping[str, Tool]) -> tuple[str, list[tuple[str, Any]]]:
    """As `read_calls`, of a call in words after the last `Action:`: arguments are a JSON object, or stand in the order
    of the schema, one word each and the last of them all that is left (`type [3] red lamp`); words before a number
    are passed over (`click red lamp [3]`)."""
    found = _CALL.fullmatch(said(text))
    if found is None or found[1] not in tools:
        return text, []
    name, rest = found.groups()
    given = read_object(rest) if rest.startswith("{") else _in_order(rest, tools[name].schema)
    return text.rpartition(MARK)[0].strip(), [(name, rest if isinstance(given, str) else given)]


def _in_order(rest: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    named = list(properties.items()) if isinstance(properties, Mapping) else []
    found: dict[str, Any] = {}
    for k, (name, kind) in enumerate(named, 1):
        word, _, after = rest.partition(" ")
        if k == len(named) and isinstance(kind, Mapping) and kind.get("type", "string") == "string":
            word, after = rest, ""
        if not word:
            break
        if isinstance(kind, Mapping) and kind.get("type", "string") != "string":
            words = rest.split(" ")
            at = next((n for n, each in enumerate(words) if not isinstance(_value(each, kind), str)), 0)
            word, after = words[at], " ".join(words[at + 1 :])
        found[name], rest = _value(word.strip(), kind), after.strip()
    return found


def _value(word: str, kind: Any) -> Any:
    """A word as its type says; a text where it is none of that type."""
    if not isinstance(kind, Mapping) or kind.get("type", "string") == "string":
        return word
    value = _plain_value(word.strip("[]()\"'"))
    return word if value is None else value


def _plain_value(word: str) -> Any:
    """A number, true or false; None for anything else."""
    try:
        found = foreign.read_json(word, finite=True)
    except UnreadableError:
        return None
    return found if isinstance(found, int | float) else None


def _fitting(name: str, arguments: dict[str, Any] | str, tools: Mapping[str, Tool]) -> Call | str:
    if name not in tools:
        return unknown("tool", name[:40], tools)
    if isinstance(arguments, str):
        return f"{name} takes {signature(tools[name].schema)}; {arguments}"
    problem = misfit(arguments, tools[name].schema, f"tool {name!r}")
    return f"{name}: {problem}" if problem else Call(name, arguments)


def read_object(text: str) -> dict[str, Any] | str:
    """A JSON object, or what is wrong with it."""
    found = read_json(text)
    return found if isinstance(found, dict | str) else f"{short(text, 40)} is not a JSON object"


def read_json(text: str) -> dict[str, Any] | list[Any] | str:
    """A JSON object or list, or what is wrong with it."""
    if len(text) > MAX_ARGUMENTS:
        return f"{len(text)} characters are too many, {MAX_ARGUMENTS} are read"
    try:
        found = foreign.read_json(text, finite=True)
    except UnreadableError as e:
        return f"{short(text, 40)} {e}"
    return found if isinstance(found, dict | list) else f"{short(text, 40)} is not a JSON object"


def signature(schema: Mapping[str, Any]) -> str:
    """The arguments in short: `{"query": string, "limit": integer?}`."""
    required, properties = schema.get("required"), schema.get("properties")
    needed = required if isinstance(required, list | tuple) else ()
    named = properties.items() if isinstance(properties, Mapping) else ()
    fields = (f'"{name}": {_kind(kind)}{"" if name in needed else "?"}' for name, kind in named)
    return bounded("{" + ", ".join(fields) + "}", MAX_SIGNATURE)


def _words(value: Any) -> str:
    """An argument as it is said."""
    if isinstance(value, list):
        return " ".join(map(_words, value))
    return value if isinstance(value, str) else json.dumps(value)


def _kind(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return "any"
    if isinstance(choices := schema.get("enum"), list):
        return "|".join(json.dumps(choice) for choice in choices[:10])
    kind = schema.get("type", "any")
    return "|".join(map(str, kind)) if isinstance(kind, list) else str(kind)
