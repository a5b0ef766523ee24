"""A trajectory as fields of plain data, and back: what all formats share.

What always holds: fields that have their default are left out; what is read is checked as a whole (types, lengths,
ranges of ids), so a trajectory from a file is as sound as one that was played.
"""

import dataclasses
import json
import math
from collections.abc import Callable
from typing import Any

from pydantic import TypeAdapter, ValidationError

from longstride.core.content import Content, Media, by_placeholder, chunks_of, joined, placed
from longstride.core.errors import RunError, short
from longstride.core.trajectory import Trajectory, Turn

EXTRA = "longstride"
"""Name of the fields that a format has no place of its own for."""
MOST = 1 << 26
"""Bytes of a document, of a row, and of a group of rows of a table, at most."""
LARGEST_ID = 1 << 31
"""No vocabulary has as many tokens."""
LOWEST_ID = -(1 << 60)
"""The lowest placeholder of an image or of data (`core.content`)."""
_READ = TypeAdapter(Trajectory)
Data = dict[str, Any]


def data_of(t: Trajectory) -> Data:
    """All fields of an episode but the media of its turns, which its prompts name; contents stay what they are."""
    data = _told(t) | {
        "turns": [_told(turn, "media", "estimates", "token_values") for turn in t.turns],
        "stop": t.stop.value,
    }
    data |= {name: getattr(t, name).model_dump(exclude_defaults=True) for name in ("task", "budget")}
    return data | {name: list(told) for name in ("after", "tools") if (told := getattr(t, name))}


def _told(of: Trajectory | Turn, *but: str) -> Data:
    found = {}
    for field in dataclasses.fields(of):
        value = getattr(of, field.name)
        plain = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
        if field.name not in but and value != plain:
            found[field.name] = value
    return found


def trajectory_of(data: Data, media: list[Media]) -> Trajectory:
    """The episode of fields; `media` are those of its prompts that were not seen in it.

    Raises:
        RunError: they are of none; the message says what was expected, as the end of a sentence.
    """
    try:
        t = _READ.validate_python(data)
        known = by_placeholder(dict.fromkeys([*media, *t.media]))
        for k, turn in enumerate(t.turns, 1):
            _check(turn, f"turn {k}")
            turn.media = placed(turn.prompt_ids, known)
    except ValidationError as e:
        found = e.errors(include_url=False)[0]
        where = ".".join(map(str, found["loc"])) or "the episode"
        raise RunError(f"{where}: {found['msg']} (got {short(found['input'], 60)})") from None
    except ValueError as e:
        raise RunError(str(e)) from None
    if not 0 <= t.history <= t.length:
        raise RunError(f"history: expected at most its {t.length} turns, got {t.history}")
    return t


def _check(turn: Turn, place: str) -> None:
    ids = turn.sampled_ids
    if not len(ids) == len(turn.behaviour_logprobs) == len(turn.versions):
        lengths = f"{len(ids)}, {len(turn.behaviour_logprobs)} and {len(turn.versions)}"
        raise RunError(f"{place}: expected as many ids, log-probabilities and versions, got {lengths}")
    if odd := next((i for i in ids if not 0 <= i < LARGEST_ID), None):
        raise RunError(f"{place}: {odd} is the id of no token")
    if odd := next((i for i in turn.prompt_ids if not LOWEST_ID <= i < LARGEST_ID), None):
        raise RunError(f"{place}: {odd} is the id of no token")
    if not all(map(math.isfinite, [*turn.behaviour_logprobs, turn.reward, turn.seconds])):
        raise RunError(f"{place}: expected finite numbers")
    if not 0 <= turn.given <= len(turn.prompt_ids):
        raise RunError(f"{place}: {turn.given} of {len(turn.prompt_ids)} ids of its prompt cannot be given")


def written(content: Content, part: Callable[[Media], Data]) -> str | list[Data]:
    """Content as chat APIs have it: a text, or a list of parts; `part` makes one of what is no text."""
    if isinstance(content, str):
        return content
    return [{"type": "text", "text": chunk} if isinstance(chunk, str) else part(chunk) for chunk in content]


def content_of(found: object, media: Callable[[Data], Media]) -> Content:
    """The content of a text, a list of parts or nothing; `media` reads a part that is no text.

    Raises:
        RunError: it is something else.
    """
    if found is None or isinstance(found, str):
        return found or ""
    if not isinstance(found, list) or not all(isinstance(part, dict) for part in found):
        raise RunError(f"content: expected a text or a list of parts, got {short(found)}")
    chunks = []
    for part in found:
        if part.get("type") != "text":
            chunks.append(media(part))
        elif isinstance(part.get("text"), str):
            chunks.append(part["text"])
        else:
            raise RunError(f"content: expected a text, got {short(part)}")
    return joined(chunks)


def tools_of(found: object) -> list[Data]:
    """The tools that a file names, as chat templates take them; a list, or JSON text of one.

    Raises:
        RunError: they are none; the message is the end of a sentence.
    """
    tools = parse(found) if isinstance(found, str) else found or []
    if not isinstance(tools, list) or not all(map(_is_tool, tools)):
        named = '{"type": "function", "function": {"name": ...}}'
        raise RunError(f"tools: expected a list of {named}, got {short(tools)}")
    return tools


def _is_tool(found: object) -> bool:
    function = found.get("function") if isinstance(found, dict) else None
    return isinstance(function, dict) and isinstance(function.get("name"), str)


def without_prefix(content: Content, prefix: str) -> Content | None:
    """Content without the text that it begins with; None where it does not."""
    first, *rest = chunks_of(content) or ("",)
    if not isinstance(first, str) or not first.startswith(prefix):
        return None
    return joined((first[len(prefix) :], *rest))


def parse(text: str | bytes) -> Any:
    """The data of JSON text, with whole characters and finite numbers.

    Raises:
        RunError: it is no such JSON; the message is the end of a sentence.
    """
    try:
        return _sound(json.loads(text, parse_constant=_refuse))
    except json.JSONDecodeError as e:
        raise RunError(f"not JSON: {e.msg} at character {e.pos + 1}") from None
    except RecursionError:
        raise RunError("nested too deeply") from None
    except ValueError as e:  # not UTF-8, a number of thousands of digits
        raise RunError(f"cannot be read: {str(e)[:100]}") from None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a number of JSON")


def _sound(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else value.encode(errors="replace").decode()
    if isinstance(value, list):
        return value if value and isinstance(value[0], int | float) and _numbers(value) else [*map(_sound, value)]
    if isinstance(value, dict):
        return {_sound(key): _sound(part) for key, part in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number is too large")
    return value


def _numbers(values: list[Any]) -> bool:
    """Whether a list, such as one of ids, is of finite numbers alone."""
    return all(isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)) for value in values)
