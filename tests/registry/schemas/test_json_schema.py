"""JSON Schema: which texts are schemas, where references lead, and that nothing is fetched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kpybroker.registry.compatibility import json_schema as compatibility
from kpybroker.registry.compatibility.differ import differences
from kpybroker.registry.errors import RegistryError
from kpybroker.registry.schemas import json_schema

TEXTS = [
    json.loads(line)
    for line in (Path(__file__).parent / "confluent_8_1_0_json.jsonl").read_text(encoding="utf-8").splitlines()
]
"""A text, and what a registry of Confluent 8.1.0 stores for it without and with `normalize=true`; null for none."""


def test_texts_are_those_of_confluent() -> None:
    different = [(text, *found, *stored) for text, *stored in TEXTS if (found := stored_of(text)) != stored]
    assert different == []
    assert len(TEXTS) > 200


def stored_of(text: str) -> list[str | None]:
    try:
        parsed = json_schema.parse(text, {}, is_new=True)
    except RegistryError:
        return [None, None]
    return [parsed.canonical, parsed.normalized]


@pytest.mark.parametrize(
    ("stored", "sent", "is_same"),
    [
        ('{"maximum":99.90}', '{ "maximum": 99.90 }', True),
        ('{"maximum":99.9}', '{"maximum":99.90}', True),
        ('{"a":1e-05,"b":1}', '{"b":1,"a":0.00001}', True),
        ('{"maximum":99.90}', '{"maximum":99.9}', False),
        ('{"type":"string","title":"x"}', '{"title":"x","type":"string"}', False),
        ('{"maximum":1}', '{"maximum":1.0}', False),
    ],
)
def test_numbers_count_as_they_are_written_but_for_texts_of_earlier_versions(
    stored: str, sent: str, is_same: bool
) -> None:
    assert json_schema.parse(sent, {}).identity.finds(json_schema.parse(stored, {}).identity) is is_same


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "1",
        '{"type": "strnig"}',
        '{"type": 1}',
        '{"maxLength": -1}',
        '{"maxLength": NaN}',
        '{"maximum": 1e99999999999999999999}',
        '{"required": "a"}',
        '{"$ref": "#/nowhere"}',
        '{"properties": {"a": {"$ref": "other.json"}}}',
        '{"$ref": "https://example.com/never-fetched.json"}',
        '{"items": {"$ref": "#/items/0/x"}}',
        "[" * 100_000,
        json.dumps({"$schema": "http://json-schema.org/draft-04/schema#", "enum": [*range(20_000), "x", {}]}),
        json.dumps({"type": [{}] * 20_000}),
        '{"not":' * 100_000,
    ],
    ids=lambda text: text[:40],
)
def test_what_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(RegistryError) as caught:
        json_schema.parse(text, {}, is_new=True)
    assert caught.value.code == 42201
    assert len(caught.value.message) < 600


def test_the_canonical_text_has_no_white_space_and_the_normalized_one_an_order() -> None:
    parsed = json_schema.parse('{ "type": "object",\n "properties": {"b": true, "a": {}}, "title": "\u00e4" }', {})
    assert parsed.canonical == '{"type":"object","properties":{"b":true,"a":{}},"title":"\u00e4"}'
    assert parsed.normalized == '{"properties":{"a":{},"b":true},"title":"\u00e4","type":"object"}'


@pytest.mark.parametrize(
    ("name", "other", "text"),
    [
        ("other.json", '{"type":"integer"}', '{"$ref":"other.json"}'),
        ("other.json", '{"definitions":{"x":{"type":"integer"}}}', '{"$ref":"other.json#/definitions/x"}'),
        (
            "http://shop/other.json",
            '{"$id":"http://shop/other.json","type":"integer"}',
            '{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"http://shop/main.json","$ref":"other.json"}',
        ),
        (
            "http://shop/other.json",
            '{"type":"integer"}',
            '{"$id":"http://shop/main.json","properties":{"a":{"$ref":"other.json"}}}',
        ),
        ("x", "true", '{"$ref":"http://json-schema.org/draft-07/schema#"}'),
        ("x", "true", '{"$id":"http://shop/main.json","definitions":{"a":{"$id":"#a"}},"$ref":"#a"}'),
    ],
)
def test_references_are_found_by_their_name(name: str, other: str, text: str) -> None:
    json_schema.parse(text, {name: other}, is_new=True)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"minLength":-1}', "-1 at /minLength is not what its draft allows, whose minimum is 0"),
        ('{"properties":{"a":null}}', 'null at /properties/a is not what its draft allows, whose type is ["object",'),
    ],
)
def test_why_a_schema_is_none_is_said_in_json(text: str, why: str) -> None:
    with pytest.raises(RegistryError) as caught:
        json_schema.parse(text, {})
    assert why in caught.value.message


def test_what_a_reference_leads_to_is_compared() -> None:
    text = '{"properties":{"a":{"$ref":"other.json"}}}'
    old = json_schema.parse(text, {"other.json": '{"type":"integer"}'})
    new = json_schema.parse(text, {"other.json": '{"type":"string"}'})
    assert [reason.kind for reason in differences(new, old)] == ["TYPE_CHANGED"]
    assert differences(old, old) == []


def test_two_recursive_schemas_that_differ_deep_inside_are_not_equal() -> None:
    def text(kind: str) -> str:
        inner = {"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#/definitions/leaf"}}}
        leaf = {"anyOf": [{"$ref": "#/definitions/tree"}, {"type": kind}]}
        return json.dumps({"definitions": {"tree": inner, "leaf": leaf}, "$ref": "#/definitions/tree"})

    one, other = (json_schema.parse(text(kind), {}, is_new=True) for kind in ("integer", "string"))
    assert differences(one, one) == []
    assert differences(one, other) != []
    assert differences(other, one) != []


def test_entangled_schemas_end(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"n{number}" for number in range(12)]
    union = [{"$ref": f"#/definitions/{one}"} for one in names]
    definitions = {name: {"title": name, "anyOf": union} for name in names}
    text = json.dumps({"definitions": definitions, "$ref": "#/definitions/n0"})
    schema = json_schema.parse(text, {}, is_new=True)
    assert differences(schema, schema) == []
    monkeypatch.setattr(compatibility, "COMPARISONS_MAX", 10)
    with pytest.raises(RegistryError) as caught:
        differences(schema, schema)
    assert "entangled" in caught.value.message


PATTERNS = {  # and whether it is found in many times `a`, and `b`
    "(a+)+$": False,
    "^(a+)+b$": True,
    "(a|aa)*$": True,
    "a*a*a*a*a*$": True,
    "(x+x+)+y": False,
    "^(?!a*c)": True,
    "^(?=a*c)": False,
    "^(a)\\1": False,
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_takes_no_longer_than_its_name(pattern: str) -> None:
    others = {"patternProperties": {pattern: {"type": "string"}}, "additionalProperties": False}
    added = {f"{number}{'a' * 200}b": {"type": "integer"} for number in range(100)}
    if pattern.startswith("^"):
        added = {"a" * 200 + "b": {"type": "integer"}}
    old = json_schema.parse(json.dumps(others), {})
    new = json_schema.parse(json.dumps({**others, "properties": added}), {})
    found = [reason for reason in differences(new, old) if reason.kind == "TYPE_CHANGED"]
    assert len(found) == (len(added) if PATTERNS[pattern] else 0)
