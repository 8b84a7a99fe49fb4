"""Avro: the canonical text is Java's, and what is not a schema is refused.

`confluent_8_1_0_avro.jsonl` has what a registry of Confluent 8.1.0 stores for a thousand texts, without and with
`normalize=true`; null where it refuses one. Two rules in it are those of 8.2: names are ASCII, and defaults are checked
without `normalize=true` too.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kpybroker.registry.errors import RegistryError
from kpybroker.registry.schemas import avro

TEXTS = [
    json.loads(line)
    for line in (Path(__file__).parent / "confluent_8_1_0_avro.jsonl").read_text(encoding="utf-8").splitlines()
]

CANONICAL = [
    ('"string"', '"string"'),
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


def test_texts_are_those_of_confluent() -> None:
    different = [(text, *found, *stored) for text, *stored in TEXTS if (found := stored_of(text)) != stored]
    assert different == []
    assert len(TEXTS) > 1000


def stored_of(text: str) -> list[str | None]:
    """What is stored for a text, without and with normalization."""
    found: list[str | None] = []
    for is_normalized in (False, True):
        try:
            parsed = avro.parse(text, {}, is_new=True)
            found.append(parsed.normalized if is_normalized else parsed.canonical)
        except RegistryError:
            found.append(None)
    return found


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
        "long",
        '{"type":{"type":"int"}}',
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
        "[" * 900 + "]" * 900,
        '/* " */' + "[" * 900 + "]" * 900,
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
    ('"double"', "1", "true"),
    ('"double"', '"NaN"', "[]"),
    ('["double"]', "1", '"1"'),
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


SAME = [
    ('{"type":"long","name":"when"}', '"long"'),
    ('{"type":"int","p":{"b":1.50,"a":2},"l":1}', '{"l":1,"type":"int","p":{"a":2,"b":1.5}}'),
    (
        '{"type":"fixed","name":"F","size":1,"aliases":["B","A"]}',
        '{"type":"fixed","name":"F","size":1,"aliases":["A","B"]}',
    ),
    (record('{"name":"a","type":"double","default":0.00001}'), record('{"name":"a","type":"double","default":1.0E-5}')),
    ("string", '{"type":"string"}'),
]
DIFFERENT = [
    (record('{"name":"a","type":"double","default":1}'), record('{"name":"a","type":"double","default":1.0}')),
    (record('{"name":"a","type":"int"}'), record('{"name":"a","type":"int","doc":"d"}')),
    ('{"type":"fixed","name":"F","size":1}', '{"type":"fixed","name":"F","size":1,"aliases":["A"]}'),
    ('["int","null"]', '["null","int"]'),
]


@pytest.mark.parametrize(
    ("one", "other", "is_same"), [(*pair, True) for pair in SAME] + [(*pair, False) for pair in DIFFERENT]
)
def test_what_java_finds_equal_has_one_identity(one: str, other: str, is_same: bool) -> None:
    assert avro.parse(one, {}).identity.finds(avro.parse(other, {}).identity) is is_same


def test_a_schema_is_the_same_with_its_types_in_it_and_by_reference() -> None:
    inner = '{"type":"record","name":"n.In","fields":[]}'
    by_name = '{"type":"record","name":"n.R","fields":[{"name":"a","type":"In"}]}'
    whole = f'{{"type":"record","name":"n.R","fields":[{{"name":"a","type":{inner}}}]}}'
    assert avro.parse(by_name, {"n.In": inner}).identity == avro.parse(whole, {}).identity


def test_only_the_types_that_references_are_made_of_are_named_only() -> None:
    """A type within the type of a reference is written where it is used, as by Java."""
    inner = (
        '{"type":"record","name":"n.In","fields":[{"name":"d","type":{"type":"enum","name":"Deep","symbols":["A"]}}]}'
    )
    text = '{"type":"record","name":"n.R","fields":[{"name":"a","type":"In"},{"name":"d","type":"Deep"}]}'
    written = '{"name":"d","type":{"type":"enum","name":"Deep","symbols":["A"]}}'
    assert avro.parse(text, {"n.In": inner}).canonical == text.replace('{"name":"d","type":"Deep"}', written).replace(
        '"name":"n.R"', '"name":"R","namespace":"n"'
    )


@pytest.mark.parametrize("name", ["x-y", "", "1x", "\u00e4"])
def test_names_of_registered_schemas_are_not_checked(name: str) -> None:
    text = f'{{"type":"record","name":"{name}","fields":[{{"name":"{name}","type":"int"}}]}}'
    assert avro.parse(text, {}).canonical == text
    with pytest.raises(RegistryError) as caught:
        avro.parse(text, {}, is_new=True)
    assert "cannot be a name" in caught.value.message


@pytest.mark.parametrize(
    "text", ["/" * 100_000, "/*" * 50_000, '"' * 99_999 + "/", '/* " */' * 20_000, '"\\"' * 33_333 + '/"']
)
def test_comments_are_removed_in_one_pass(text: str) -> None:
    with pytest.raises(RegistryError):
        avro.parse(text, {})


@pytest.mark.parametrize("count", [100, 5000])
def test_a_chain_of_types_that_are_defined_further_down_is_refused(count: int) -> None:
    """Each is written in the field that uses it, so the stored text would be deeper than what was sent."""
    chain: list[object] = [
        {"type": "record", "name": f"R{number}", "fields": [{"name": "next", "type": f"R{number + 1}"}]}
        for number in range(count)
    ]
    chain.append({"type": "record", "name": f"R{count}", "fields": []})
    parsed = avro.parse(json.dumps(chain), {}, is_new=True)
    with pytest.raises(RegistryError) as caught:
        _ = parsed.canonical
    assert "nested deeper" in caught.value.message
    assert avro.parse(json.dumps(chain[::-1]), {}, is_new=True).canonical


def test_types_that_are_defined_many_times_are_compared_without_what_they_refer_to() -> None:
    large = {"type": "record", "name": "L", "fields": [{"name": f"f{at}", "type": "int"} for at in range(5000)]}
    again = {"type": "record", "name": "S", "fields": [{"name": "l", "type": "L"}]}
    fields = [{"name": "l", "type": large}, *({"name": f"s{at}", "type": again} for at in range(5000))]
    text = json.dumps({"type": "record", "name": "R", "fields": fields})
    assert avro.parse(text, {}, is_new=True).canonical.count('"name":"S"') == 1
