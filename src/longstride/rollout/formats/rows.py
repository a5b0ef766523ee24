"""Rows of JSON lines and tables: `messages` (one an episode), and `sft` (one for what was read in one go).

What always holds: each column has one type in all rows, as data sets of Hugging Face need it, so what varies is JSON
text in the column `longstride`.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from longstride.core.errors import RunError, short
from longstride.core.sealed import dumps
from longstride.core.trajectory import Trajectory, Turn
from longstride.rollout.formats.conversation import foreign, inline, messages_of, of_inline, restored, unseen
from longstride.rollout.formats.fields import EXTRA, Data, data_of, parse, tools_of, trajectory_of

COLUMNS: dict[str, Any] = {
    "ordinal": 0, "iteration": 0, "group": 0, "reward": 0.0, "success": False, "stop": "", "answer": None,
}  # fmt: skip
"""Fields of an episode that are columns, with what they are where nothing else is said."""
IDS = {
    "prompt_ids": "prompt_ids",
    "completion_ids": "sampled_ids",
    "logprobs": "behaviour_logprobs",
    "versions": "versions",
}
"""Columns with a list for each turn, and the fields of a turn that they are."""


def messages_row(t: Trajectory) -> Data:
    """The row of an episode."""
    data = data_of(t)
    row = {"messages": messages_of(t, data, inline), **_columns(t, data)}
    row |= {name: [turn.pop(field) for turn in data["turns"]] for name, field in IDS.items()}
    if beyond := list(unseen(t)):
        data["media"] = [inline(media) for media in beyond]
    return {**row, EXTRA: dumps(data)}


def messages_episode(row: Data, name: str, ordinal: int) -> Trajectory:
    """The episode of a row, ours or anybody's with `messages`, or with `prompt` and `completion`.

    Args:
        row: its columns.
        name: of the task of a row of others.
        ordinal: its number.

    Raises:
        RunError: it is none; the message is the end of a sentence.
    """
    if row.get(EXTRA) is None:
        spoken, before = _spoken(row)
        data = foreign(spoken, name, ordinal, of_inline)
        return trajectory_of({**data, "history": before, "tools": tools_of(row.get("tools"))}, [])
    data = _own(row[EXTRA])
    turns = data.get("turns")
    if not isinstance(turns, list) or not all(isinstance(turn, dict) for turn in turns):
        raise RunError("turns: expected a list of objects")
    for column, field in IDS.items():
        lists = row.get(column)
        if not isinstance(lists, list) or len(lists) != len(turns):
            raise RunError(f"{column}: expected a list for each of the {len(turns)} turns, got {short(lists, 40)}")
        for turn, values in zip(turns, lists, strict=True):
            turn[field] = values
    parts = data.pop("media", [])
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise RunError("media: expected a list of parts")
    _take_columns(row, data)
    return trajectory_of(restored(row.get("messages"), data, of_inline), [*map(of_inline, parts)])


def _columns(t: Trajectory, data: Data) -> Data:
    for name in COLUMNS:
        data.pop(name, None)
    columns = {name: getattr(t, name) for name in COLUMNS} | {"stop": t.stop.value}
    columns["tools"] = dumps(data.pop("tools")) if t.tools else None
    return {"task": data["task"].pop("id"), "source": data["task"].pop("source"), **columns}


def _take_columns(row: Data, data: Data) -> None:
    data |= {name: row.get(name, plain) for name, plain in COLUMNS.items()} | {"tools": tools_of(row.get("tools"))}
    task = data.get("task")
    data["task"] = {**(task if isinstance(task, dict) else {}), "id": row.get("task"), "source": row.get("source")}


def _own(text: Any) -> Data:
    data = parse(text) if isinstance(text, str) else text
    if not isinstance(data, dict):
        raise RunError(f"{EXTRA}: expected a JSON object, got {short(data)}")
    return data


def _spoken(row: Data) -> tuple[Any, int]:
    """The messages of a row of others, and how many turns stand before what it teaches."""
    if "messages" in row:
        return row["messages"], 0
    sides = [_side(row.get(name), role) for name, role in (("prompt", "user"), ("completion", "assistant"))]
    before = sum(isinstance(message, dict) and message.get("role") == "assistant" for message in sides[0])
    return [*sides[0], *sides[1]], before


def _side(found: Any, role: str) -> list[Any]:
    return [{"role": role, "content": found}] if isinstance(found, str) else found if isinstance(found, list) else []


def sft_rows(t: Trajectory) -> Iterator[Data]:
    """The rows of an episode: a row is a prompt and all turns whose prompts continue it, token by token.

    Raises:
        RunError: a turn has no ids, or its prompt has an image or data.
    """
    data = data_of(t)
    columns = _columns(t, data)
    if t.media:
        raise RunError(f"episode {t.ordinal} has images or data, which sft holds none of; take atif or messages")
    for k, turn in enumerate(t.turns, 1):
        if not turn.prompt_ids:
            raise RunError(f"episode {t.ordinal}, turn {k} has words and no ids (of a chat API); take messages")
    for turn in data["turns"]:
        for field in IDS.values():
            del turn[field]
    data["turns_of_rows"] = [[len(turn.prompt_ids) for turn in chain] for chain in _chains(t.turns)]
    extra: str | None = dumps(data)
    for chain in _chains(t.turns) or [[]]:
        ids: list[int] = []
        mask: list[int] = []
        for turn in chain:
            mask += [0] * (len(turn.prompt_ids) - len(ids)) + [1] * len(turn.sampled_ids)
            ids = turn.prompt_ids + turn.sampled_ids
        sampled = {name: [x for turn in chain for x in getattr(turn, IDS[name])] for name in ("logprobs", "versions")}
        yield {"input_ids": ids, "assistant_masks": mask, **sampled, **columns, EXTRA: extra}
        extra = None


def _chains(turns: Sequence[Turn]) -> list[list[Turn]]:
    """Turns that continue one another."""
    chains: list[list[Turn]] = []
    read: list[int] = []
    for turn in turns:
        if not chains or turn.prompt_ids[: len(read)] != read:
            chains.append([])
        chains[-1].append(turn)
        read = turn.prompt_ids + turn.sampled_ids
    return chains


def rows_of_episode(row: Data) -> int:
    """How many rows the episode has that begins in this one of `sft`.

    Raises:
        RunError: none does.
    """
    if row.get(EXTRA) is None:
        raise RunError(f"ids alone cannot be read: expected the column {EXTRA}, which has the texts of an episode")
    lengths = _own(row[EXTRA]).get("turns_of_rows")
    return max(1, len(lengths)) if isinstance(lengths, list) else 1


def sft_episode(rows: Sequence[Data]) -> Trajectory:
    """The episode of its rows.

    Raises:
        RunError: they do not fit; the message is the end of a sentence.
    """
    data, k = _own(rows[0][EXTRA]), 0
    starts: Any = data.pop("turns_of_rows", None)
    turns: Any = data.get("turns")
    known = isinstance(turns, list) and all(isinstance(turn, dict) for turn in turns)
    known = known and isinstance(starts, list) and all(isinstance(of, list) for of in starts)
    if not known or sum(map(len, starts)) != len(turns):
        raise RunError("turns: expected a list of them, and where they begin in rows")
    for row, chain in zip(rows, starts, strict=False):
        k = _take_row(row, chain, turns, k)
    if k != len(turns):
        raise RunError(f"expected {len(starts)} rows of the episode, got {len(rows)}")
    _take_columns(rows[0], data)
    return trajectory_of(data, [])


def _take_row(row: Data, starts: Any, turns: list[Data], k: int) -> int:
    columns: list[Any] = [row.get(name) for name in ("input_ids", "assistant_masks", "logprobs", "versions")]
    ids, mask, logprobs, versions = columns
    if not all(isinstance(column, list) for column in columns) or len(ids) != len(mask):
        raise RunError("expected input_ids, and assistant_masks, logprobs and versions that fit them")
    used = 0
    for start, following in zip(starts, [*starts[1:], len(ids)], strict=True):
        if not isinstance(start, int) or not isinstance(following, int) or not 0 <= start <= following <= len(ids):
            raise RunError(f"a turn cannot begin at {start} of {len(ids)} ids")
        end = start
        while end < following and mask[end]:
            end += 1
        turns[k] |= {"prompt_ids": ids[:start], "sampled_ids": ids[start:end]}
        n = end - start
        turns[k] |= {"behaviour_logprobs": logprobs[used : used + n], "versions": versions[used : used + n]}
        used, k = used + n, k + 1
    return k
