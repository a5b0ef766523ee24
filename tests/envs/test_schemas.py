"""Schemas that strangers wrote: whatever they are, checking against them ends soon and is nobody's traceback."""

import json
from typing import Any

import pytest

from longstride.core.errors import EnvFailure
from longstride.envs import schemas
from longstride.envs.schemas import MAX_SCHEMA, MAX_SCHEMAS, check_schemas, misfit
from longstride.envs.tools import Tool, parse

pytest.importorskip("jsonschema", reason="needs pip install 'longstride[mcp]'")

OBJECT = {"type": "object", "properties": {"x": {}}}


def doubled(keyword: str, depth: int = 40) -> dict[str, Any]:
    """Each definition is twice the one before."""
    parts = {f"a{k}": {keyword: [{"$ref": f"#/$defs/a{k - 1}"}] * 2} for k in range(1, depth)}
    return {**OBJECT, "$defs": {"a0": {}, **parts}, "$ref": f"#/$defs/a{depth - 1}"}


ALL = doubled("allOf")
SLOW = {
    "allOf": ALL,
    "anyOf": {**doubled("anyOf"), "$defs": {**doubled("anyOf")["$defs"], "a0": False}},
    "oneOf": doubled("oneOf"),
    "items": {"$defs": ALL["$defs"], "properties": {"x": {"items": {"$ref": ALL["$ref"]}}}},
    "if": {"$defs": ALL["$defs"], "if": {"$ref": ALL["$ref"]}},
}


@pytest.mark.parametrize("kind", SLOW)
def test_a_small_schema_that_takes_for_ever_is_given_up_after_a_quarter_of_a_second(kind: str) -> None:
    assert len(json.dumps(SLOW[kind])) < 5000
    with pytest.raises(EnvFailure, match=rf"the schema of tool 't' takes more than {schemas.SECONDS} s to check"):
        misfit({"x": [1]}, SLOW[kind], "tool 't'")  # 2 to the 39th steps without that bound


@pytest.mark.parametrize(
    "dialect", ["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"]
)
def test_a_part_that_names_its_dialect_is_under_the_same_bounds(dialect: str) -> None:
    slow = {"$schema": dialect, "allOf": [{"$ref": "#/$defs/a39"}]}
    with pytest.raises(EnvFailure, match="to check"):
        misfit({"x": 1}, {"$defs": ALL["$defs"], "properties": {"x": slow}}, "t")
    assert misfit({"x": [1, 1]}, {"properties": {"x": {"$schema": dialect, "uniqueItems": True}}}, "t") == ""


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(60_000)}},
        {"type": "object", "oneOf": [{"properties": {"x": {"const": i}}} for i in range(30_000)]},
        {"type": "object", "description": "x" * (MAX_SCHEMA + 1)},
    ],
)
def test_a_schema_is_read_up_to_a_size(schema: dict[str, Any]) -> None:
    with pytest.raises(EnvFailure, match=rf"the schema of tool 't' has \d+ characters; expected at most {MAX_SCHEMA}"):
        misfit({"x": 1}, schema, "tool 't'")


def test_items_that_must_differ_are_left_to_the_server() -> None:
    """They are compared pair by pair in one step, which no clock ends."""
    assert misfit({"x": [1, 1]}, {"properties": {"x": {"uniqueItems": True}}}, "t") == ""
    assert misfit({}, {**OBJECT, "required": ["x", "x"]}, "t") == "'x' is a required property"
    with pytest.raises(EnvFailure, match="is not a JSON schema"):
        misfit({}, {"required": ["x", ["x"]]}, "t")


@pytest.mark.parametrize(
    "schema",
    [
        {**OBJECT, "required": None},
        {**OBJECT, "required": 5},
        {**OBJECT, "required": "x"},
        {**OBJECT, "properties": None},
        {**OBJECT, "properties": ["x"]},
        {**OBJECT, "properties": {"x": "string"}},
        {**OBJECT, "properties": {"x": {"type": "text"}}},
        {**OBJECT, "properties": {"x": {"enum": 5}}},
        {**OBJECT, "properties": {"x": {"multipleOf": 0}}},
        {**OBJECT, "$id": "http://[", "properties": {"x": {"$ref": "y"}}},
        {**OBJECT, "allOf": [{}], "properties": {"x": {"$ref": "#/allOf/x"}}},
        {**OBJECT, "maxProperties": 5, "properties": {"x": {"$ref": "#/maxProperties/y"}}},
        {**OBJECT, "$ref": "#/properties/no"},
        {**OBJECT, "$dynamicRef": "#no"},
        {"not": {"$ref": "#"}},
        {"x": {1, 2}},
        {"x": 10**5000},
    ],
)
def test_what_is_wrong_with_a_schema_is_said_and_no_traceback(schema: dict[str, Any]) -> None:
    assert Tool("t", schema).line.startswith("t ")
    with pytest.raises(EnvFailure, match=r"the schema of tool 't' (is not a JSON schema|cannot be followed)"):
        misfit({"x": 1}, schema, "tool 't'")


def test_schemas_of_a_server_are_bounded_together() -> None:
    schema = {"type": "object", "description": "x" * (MAX_SCHEMA - 100)}
    check_schemas({f"tool {k}": schema for k in range(4)})
    with pytest.raises(EnvFailure, match=rf"up to that of tool 4 have more than {MAX_SCHEMAS} characters"):
        check_schemas({f"tool {k}": schema for k in range(9)})
    with pytest.raises(EnvFailure, match="the schema of tool 1 is not a JSON schema"):
        check_schemas({"tool 0": schema, "tool 1": {"type": 7}})


def test_a_schema_is_checked_once_for_all_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = {"type": "object", "properties": {"once": {"type": "integer"}}}
    assert misfit({"once": 1}, schema, "t") == ""
    seen = schemas._checked.cache_info()
    assert "'a' is not of type 'integer'" in misfit({"once": "a"}, dict(schema), "t")
    assert schemas._checked.cache_info().misses == seen.misses


def test_what_is_said_of_arguments_is_plain_text() -> None:
    said = parse(
        'Action: t {"half \\ud800 \\u001b]0;x\\u0007": 1}',
        {"t": Tool("t", {"additionalProperties": {"type": "string"}})},
    )
    assert isinstance(said, str) and "\x1b" not in said
    said.encode()
