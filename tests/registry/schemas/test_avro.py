"""Avro: the canonical text is Java's, and what is not a schema is refused."""

from __future__ import annotations

import json

import pytest

from kpybroker.registry.errors import RegistryError
from kpybroker.registry.schemas import avro

CANONICAL = [
    ("string", '"string"'),
    ('{"type": "string"}', '"string"'),
    ('{"logicalType": "date", "type": "int"}', '{"type":"int","logicalType":"date"}'),
    ('["null", {"type": "int"}]', '["null","int"]'),
    ('{"items": "int", "type": "array", "x": 1}', '{"type":"array","items":"int","x":1}'),
    ('{"values": "int", "type": "map"}', '{"type":"map","values":"int"}'),
    (
        '{"symbols": ["A"], "name": "n.E", "type": "enum", "default": "A", "doc": "d", "aliases": ["F", "m.G"]}',
        '{"type":"enum","name":"E","namespace":"n","doc":"d","symbols":["A"],"default":"A","aliases":["F","m.G"]}',
    ),
    (
        '{"size": 4, "name": "F", "namespace": "n", "type": "fixed"}',
        '{"type":"fixed","name":"F","namespace":"n","size":4}',
    ),
    (
        '{"fields": [{"type": "int", "name": "a", "order": "ignore", "default": 1, "aliases": ["b"], "p": 1, "doc": ""'
        "}],"
        '"name": "R", "type": "record"}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int","doc":"","default":1,"order":"ignore",'
        '"aliases":["b"],"p":1}]}',
    ),
    (
        '{"type": "record", "name": "n.R", "fields": [{"name": "next", "type": ["null", "n.R"]},'
        '{"name": "other", "type": {"type": "record", "name": "m.S", "fields": [{"name": "up", "type": "n.R"}]}},'
        '{"name": "same", "type": {"type": "fixed", "name": "F", "size": 1}}, {"name": "twice", "type": "F"}]}',
        '{"type":"record","name":"R","namespace":"n","fields":[{"name":"next","type":["null","R"]},'
        '{"name":"other","type":{"type":"record","name":"S","namespace":"m","fields":[{"name":"up","type":"n.R"}]}},'
        '{"name":"same","type":{"type":"fixed","name":"F","size":1}},{"name":"twice","type":"F"}]}',
    ),
    (
        '{"type": "record", "name": "R", "fields": [{"name": "\\u00e4", "type": "null", "default": null}]}',
        None,
    ),
]


@pytest.mark.parametrize(("text", "expected"), [pair for pair in CANONICAL if pair[1]], ids=lambda text: str(text)[:40])
def test_the_canonical_text_is_that_of_java(text: str, expected: str) -> None:
    parsed = avro.parse(text, {}, is_new=True)
    assert parsed.canonical == expected
    assert avro.parse(parsed.canonical, {}).canonical == expected
    assert avro.parse(parsed.normalized, {}).normalized == parsed.normalized


def record(field: str) -> str:
    return f'{{"type":"record","name":"R","fields":[{field}]}}'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "1",
        "null and void",
        "[]x",
        '"unknown"',
        '{"type":"unknown"}',
        '{"name":"x"}',
        '{"type":"record","fields":[]}',
        '{"type":"record","name":"1x","fields":[]}',
        '{"type":"record","name":"R"}',
        record('{"name":"a"}'),
        record('{"name":"a","type":"int"},{"name":"a","type":"int"}'),
        '{"type":"enum","name":"E","symbols":["A","A"]}',
        '{"type":"enum","name":"E","symbols":["A-B"]}',
        '{"type":"enum","name":"E","symbols":["A"],"default":"B"}',
        '{"type":"fixed","name":"F"}',
        '{"type":"fixed","name":"F","size":-1}',
        '{"type":"array"}',
        '["int","int"]',
        '[["int"]]',
        record('{"name":"a","type":{"type":"fixed","name":"F","size":1}},{"name":"b","type":'
               '{"type":"fixed","name":"F","size":2}}'),
        "[" * 100_000,
        '{"type":' * 100_000,
        '"' + "x" * 100,
    ],
    ids=lambda text: text[:40],
)  # fmt: skip
def test_what_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(RegistryError) as caught:
        avro.parse(text, {}, is_new=True)
    assert caught.value.code == 42201
    assert len(caught.value.message) < 500


DEFAULTS = [
    ('"null"', "null", "0"),
    ('"boolean"', "true", "1"),
    ('"int"', "-2147483648", "2147483648"),
    ('"long"', "2147483648", "1.5"),
    ('"double"', "1", '"1"'),
    ('"string"', '"x"', "1"),
    ('"bytes"', '"\\u00ff"', "[1]"),
    ('["null","int"]', "null", '"x"'),
    ('["null","int"]', "1", "true"),
    ('{"type":"array","items":"int"}', "[1]", '["x"]'),
    ('{"type":"map","values":"int"}', '{"a":1}', "[]"),
    ('{"type":"enum","name":"E","symbols":["A"]}', '"A"', "0"),
    ('{"type":"record","name":"S","fields":[{"name":"x","type":"int"}]}', '{"x":1}', "{}"),
]


@pytest.mark.parametrize(("schema", "good", "bad"), DEFAULTS)
def test_defaults_are_values_of_their_field(schema: str, good: str, bad: str) -> None:
    avro.parse(record(f'{{"name":"a","type":{schema},"default":{good}}}'), {}, is_new=True)
    wrong = record(f'{{"name":"a","type":{schema},"default":{bad}}}')
    with pytest.raises(RegistryError):
        avro.parse(wrong, {}, is_new=True)


def test_a_type_of_a_reference_is_named_only() -> None:
    other = '{"type":"record","name":"n.Other","fields":[]}'
    text = '{"type":"record","name":"n.R","fields":[{"name":"o","type":"Other"}]}'
    parsed = avro.parse(text, {"n.Other": other})
    assert json.loads(parsed.canonical)["fields"][0]["type"] == "Other"
    assert json.loads(parsed.formatted("resolved"))["fields"][0]["type"]["name"] == "Other"
    with pytest.raises(RegistryError):
        avro.parse(text, {})
