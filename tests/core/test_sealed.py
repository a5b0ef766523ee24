"""Seals: every single flipped bit is found, and every line that is lost, doubled, cut or moved."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longstride.core.files import make_folder, system_error, trouble_of, write_atomically
from longstride.core.sealed import (
    DamagedError,
    check_toml,
    cut,
    loads,
    place_of,
    read_object,
    seal,
    seal_lines,
    seal_toml,
    unseal_lines,
    write_object,
)

DATA = {"name": "caf\u00e9 \u2028", "n": -5, "inside": {"list": [1.5, None, True]}}
JSON = st.dictionaries(
    st.text(), st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(), min_size=1
)


def flipped(data: bytes) -> Iterator[bytes]:
    """The data with each one of its bits flipped in turn."""
    for k in range(8 * len(data)):
        yield data[: k // 8] + bytes([data[k // 8] ^ 1 << k % 8]) + data[k // 8 + 1 :]


def is_found(read: Callable[[bytes], object], data: bytes) -> bool:
    try:
        read(data)
    except DamagedError:
        return True
    return False


@given(JSON, st.integers(0, 10**6))
def test_what_was_sealed_is_read_back_as_json_and_only_at_its_place(data: dict, k: int) -> None:
    line = seal(json.dumps(data), place_of(k))
    assert json.loads(line) == data | {"crc": json.loads(line)["crc"]}
    assert loads(line.encode(), place_of(k)) == data
    for other in (place_of(k + 1), place_of(10 * k + 10), ""):
        with pytest.raises(DamagedError):
            loads(line.encode(), other)


def test_every_flipped_bit_of_a_line_is_found() -> None:
    line = seal(json.dumps(DATA), place_of(3)).encode()
    assert loads(line, place_of(3)) == DATA
    assert all(is_found(lambda data: loads(data, place_of(3)), data) for data in flipped(line))


def test_every_flipped_bit_of_a_file_is_found(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    write_object(path, DATA)
    whole = path.read_bytes()
    assert read_object(path) == DATA

    def read(data: bytes) -> object:
        path.write_bytes(data)
        return read_object(path)

    assert all(is_found(read, data) for data in flipped(whole))
    assert all(is_found(read, whole[:n]) for n in range(len(whole)))


def test_every_flipped_bit_of_a_toml_file_is_found() -> None:
    whole = seal_toml('name = "x"\n[budget]\nturns = 3\n').encode()
    check_toml(whole)
    assert all(is_found(check_toml, data) for data in flipped(whole))
    assert all(is_found(check_toml, whole[:n]) for n in range(len(whole)))


def test_every_flipped_bit_of_a_file_of_lines_is_found() -> None:
    texts = [json.dumps({"k": k}) for k in range(3)]
    whole = seal_lines(texts).encode()
    assert list(unseal_lines(whole)) == [text.encode() for text in texts] and list(unseal_lines(b"")) == []
    assert all(None in unseal_lines(data) for data in flipped(whole))
    assert all(None in unseal_lines(whole[:n]) for n in range(1, len(whole)))


@given(st.lists(st.integers(0, 3), max_size=6).filter(lambda order: order != [0, 1, 2, 3]))
def test_a_file_of_lines_in_another_order_or_number_has_one_that_is_damaged(order: list[int]) -> None:
    lines = seal_lines([json.dumps({"k": k}) for k in range(4)]).splitlines(keepends=True)
    found = list(unseal_lines("".join(lines[k] for k in order).encode()))
    assert None in found or not order


@given(st.lists(st.integers(0, 3), max_size=6))
def test_a_growing_file_is_read_up_to_the_first_line_that_is_not_in_its_place(order: list[int]) -> None:
    lines = [seal(json.dumps({"k": k}), place_of(k)) + "\n" for k in range(4)]
    good = 0
    for k, line in enumerate(cut("".join(lines[k] for k in order).encode())):
        if is_found(lambda data, k=k: loads(data, place_of(k)), line):
            break
        good += 1
    assert good == next((k for k, line in enumerate(order) if line != k), len(order))


def test_data_nested_without_end_is_damage() -> None:
    with pytest.raises(DamagedError, match="nested too deeply"):
        loads(seal('{"a":' + "[" * 100_000 + "]" * 100_000 + "}").encode())


def test_files_are_replaced_whole_and_folders_made_once(tmp_path: Path) -> None:
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    for text in ("one", "two"):
        write_atomically(tmp_path / "a" / "b" / "file", text)
        assert (tmp_path / "a" / "b" / "file").read_text() == text
    assert [p.name for p in (tmp_path / "a" / "b").iterdir()] == ["file"]


def test_an_error_of_the_system_is_read_from_the_words_of_a_library() -> None:
    found = system_error(RuntimeError("I/O error: No space left on device (os error 28)"))
    assert found is not None and trouble_of(found) is found and system_error(ValueError("odd")) is None
