"""What others say: plain texts, bounded data, numbers, and exceptions in one line."""

import asyncio
import json
import math
import os
import re
from typing import Any

import numpy as np
import pytest

from longstride.core.content import Media, joined, text_in
from longstride.core.errors import EngineFailure, EnvFailure, short
from longstride.core.foreign import (
    MAX_DEPTH,
    MAX_TEXT,
    MAX_VALUES,
    UnreadableError,
    bounded,
    bounded_content,
    flag,
    guarded,
    json_object,
    left_behind,
    number,
    read_json,
)
from longstride.core.plain import plain

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Rude:
    """Raises at whatever is asked of it."""

    def __bool__(self) -> bool:
        raise RuntimeError("no")

    def __float__(self) -> float:
        raise RuntimeError("no")

    def __repr__(self) -> str:
        raise RuntimeError("no")


class UnsaidError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;a title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP1$r\x1b\\data", "data"),
        ("\x1bcreset", "reset"),
        ("\x1b(0line", "line"),
        ("\x9b31mred", "31mred"),
        ("\x9d0;title\x9c", "0;title"),
        ("\x1b]0;never ended\nnext line", "0;never ended\nnext line"),
        ("bell\x07 back\x08 null\x00 delete\x7f", "bell back null delete"),
        ("a\r\nb\rc\td", "a\nb\nc\td"),
        ("half \ud800 a character", "half ? a character"),
        ("naïve 日本 \U0001f600", "naïve 日本 \U0001f600"),
    ],
)
def test_plain_text_has_nothing_that_a_terminal_obeys(said: str, left: str) -> None:
    assert plain(said) == left and not OBEYED.search(left)


def test_every_typed_error_can_be_printed_whatever_it_repeats() -> None:
    message = str(EngineFailure("it said \x1b]0;owned\x07 and \ud800"))
    assert message == "it said  and ?"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is not JSON"),
        ("[" * 5 + "]" * 5 + "x", "is not JSON: Extra data at character 11"),
        ("[" * 60_000, "more than 64 brackets"),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "more than 64 brackets"),
        ("1" * 5000, "a number of thousands of digits"),
        ('{"a": -' + "1" * 6000 + "}", "a number of thousands of digits"),
        (json.dumps([0] * (MAX_VALUES + 1)), "more than 100000 values"),
        (json.dumps([[0] * 1000] * 101), "more than 100000 values"),
    ],
)
def test_json_is_bounded_in_depth_digits_and_values(text: str, why: str) -> None:
    with pytest.raises(UnreadableError, match=why):
        read_json(text)
    assert json_object(text) == {} == json_object(text.encode())


def test_all_texts_of_json_are_plain() -> None:
    data = b'{"half \\ud800 \xed\xa0\x80": ["\\u001b[31mred", {"\\u009b": "\\ud83d\\ude00"}], "n": 1.5, "big": 1e999}'
    found = read_json(data)
    assert found == {"half ? \ufffd\ufffd\ufffd": ["red", {"": "\U0001f600"}], "n": 1.5, "big": math.inf}
    assert read_json("[" * MAX_DEPTH + "]" * MAX_DEPTH) and json_object("[1]") == {}


@pytest.mark.parametrize("value", [1, 0.5, True, np.float32(2), np.array([3.0]), np.array(4), "", b"1", "1.0", None])
def test_a_number_is_a_number_or_an_array_of_one(value: Any) -> None:
    if isinstance(value, str | bytes) or value is None:
        with pytest.raises(EnvFailure, match="its reward: expected a finite number, got"):
            number(value, "its reward")
    else:
        assert math.isfinite(number(value, "its reward"))


@pytest.mark.parametrize(
    "value",
    [10**401, -(10**401), 1.7e308, 1e16, math.nan, math.inf, "nan", [1], np.array([1, 2]), 1j, {}, object(), Rude()],
)
def test_what_is_no_number_that_can_be_added_up_is_refused(value: Any) -> None:
    with pytest.raises(EnvFailure, match="its reward: expected a finite number"):
        number(value, "its reward")


@pytest.mark.parametrize("value", [True, False, 1, 0, 0.0, np.bool_(True), np.array([False]), np.array(1)])
def test_a_flag_is_true_or_false(value: Any) -> None:
    assert flag(value, "done") is bool(np.asarray(value).item())


@pytest.mark.parametrize("value", [np.array([True, False]), np.array([]), None, "False", "", 2, -1, [], [True], Rude()])
def test_what_is_neither_true_nor_false_is_refused(value: Any) -> None:
    with pytest.raises(EnvFailure, match="done: expected True or False, got"):
        flag(value, "done")


def test_what_cannot_be_shown_is_named_by_its_type() -> None:
    assert short(Rude()) == "(Rude, which cannot be shown)"


@pytest.mark.parametrize("error", [ValueError("bad \x1b[1mmove"), SystemExit(3), UnsaidError(), RecursionError()])
def test_whatever_somebody_elses_code_raises_is_one_line(error: BaseException) -> None:
    said = rf"the game raised {type(error).__name__}.*\(test_foreign.py, line \d+\)"
    with pytest.raises(EnvFailure, match=said), guarded("the game"):
        raise error


@pytest.mark.parametrize("kind", [KeyboardInterrupt, asyncio.CancelledError, EngineFailure])
def test_what_is_not_its_own_passes(kind: type[BaseException]) -> None:
    with pytest.raises(kind), guarded("the game"):
        raise kind


def test_of_what_a_program_left_a_file_is_read_and_no_link_pipe_or_folder(tmp_path) -> None:
    (tmp_path / "file").write_text("words")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    assert left_behind(tmp_path / "file", 3) == b"wor"
    for name, why in {
        "link": "it is a link",
        "pipe": "it is no regular file",
        "folder": "Is a directory",
        "nothing": "No such file",
    }.items():
        with pytest.raises(OSError, match=why):
            left_behind(tmp_path / name, 3)


def test_content_is_bounded_as_a_whole() -> None:
    image = Media(b"x")
    kept = bounded_content((image, "\x1b[1ma", image, "b" * MAX_TEXT, image, "c"))
    assert isinstance(kept, tuple) and kept[:3] == (image, "a", image) and len(text_in(kept)) < MAX_TEXT + 50
    assert kept[-1].endswith("characters left out)")  # type: ignore[union-attr]
    assert len(bounded_content((image,) * 5000)) == MAX_TEXT // 200
    assert bounded_content("a\x07") == "a" == bounded("a\x07")


def test_many_texts_are_joined_in_time_that_grows_with_their_size() -> None:
    assert joined(["ab"] * 200_000) == "ab" * 200_000
    assert joined(["a", "", "b", Media(b"x"), "", Media(b"y"), "c", "d"]) == ("ab", Media(b"x"), Media(b"y"), "cd")
    with pytest.raises(TypeError, match="content is of texts and Media, got None"):
        joined(["a", None])  # type: ignore[list-item]
