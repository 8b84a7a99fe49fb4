"""Which parts of schemas say the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kpybroker.registry.compatibility.check import Earlier, check
from kpybroker.registry.compatibility.json_places import Places
from kpybroker.registry.schemas import json_schema


def read(text: str) -> Any:
    return json.loads(text)


def test_equal_texts_within_one_base_are_one_place() -> None:
    document = read('{"a": {"x": [1, {}], "y": "z"}, "b": {"y": "z", "x": [1, {}]}, "c": {"x": [1, []]}}')
    places = Places([document])
    assert places.of(document["a"]) == places.of(document["b"])
    assert places.of(document["a"]) != places.of(document["c"])


@pytest.mark.parametrize(("one", "other"), [("1", "true"), ("1", "1.0"), ('"1"', "1"), ("[]", "{}"), ("null", "0")])
def test_values_that_only_python_takes_for_equal_are_different(one: str, other: str) -> None:
    document = read(f'{{"a": {{"x": {one}}}, "b": {{"x": {other}}}}}')
    places = Places([document])
    assert places.of(document["a"]) != places.of(document["b"])


def test_equal_texts_within_different_bases_are_different() -> None:
    text = '{"a": {"$ref": "#"}, "b": {"$id": "x", "c": {"$ref": "#"}}, "properties": {"id": {}}, "d": {"$ref": "#"}}'
    one, other = read(text), read(text)
    places = Places([one, other])
    assert places.of(one["a"]) == places.of(one["d"])
    assert places.of(one["a"]) != places.of(one["b"]["c"])
    assert places.of(one["a"]) != places.of(other["a"])


def test_what_is_in_no_document_is_itself_only() -> None:
    places = Places([])
    one, other = {"a": 1}, {"a": 1}
    assert places.of(one) == places.of(one)
    assert places.of(one) != places.of(other)


def test_a_whole_is_not_taken_for_what_it_is_part_of() -> None:
    """`type` next to `allOf` is all of two shapes, of which one is all of some too."""

    def schema(kind: str) -> json_schema.JsonSchema:
        inner = {"properties": {"a": {"type": kind}}}
        return json_schema.parse(json.dumps({"type": "object", "allOf": [inner, {"minProperties": 1}]}), {})

    assert check("BACKWARD", schema("string"), [Earlier(1, schema("string"))]) == []
    assert check("BACKWARD", schema("string"), [Earlier(1, schema("integer"))]) != []
