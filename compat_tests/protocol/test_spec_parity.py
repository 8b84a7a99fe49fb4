"""Every spec says, field by field, what the definitions in Kafka's jars say.

Both sides are brought to the same plain shape: ranges cut to what the enclosing field and the message have,
defaults as values. Not compared: words, `entityType`, `zeroCopy`, listeners.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compat_tests.protocol.kafka_messages import definitions
from protocol_specs import generate
from protocol_specs.notation import (
    FieldSpec,
    MessageSpec,
    Range,
    SpecFile,
    intersect,
    parse_range,
    read_specs,
)

SPECS = read_specs(Path(generate.__file__).parent)
MESSAGES = [(spec, message) for spec in SPECS for message in spec.messages]

# name, type, versions, nullable, tag, tagged, map key, ignorable, default, fields of the struct
Facts = tuple[Any, ...]
IGNORABLE = 7


@pytest.mark.parametrize(("spec", "message"), MESSAGES, ids=lambda value: value.name)
def test_spec_equals_kafkas_definition(spec: SpecFile, message: MessageSpec) -> None:
    of_releases = definitions_once()[message.name]
    ranges = [parse_range(definition["validVersions"]) for definition in of_releases]
    assert message.versions[0] in {oldest for oldest, _ in ranges}
    assert message.versions[1] == ranges[-1][1]
    for definition, has in zip(of_releases, ranges, strict=True):
        versions = intersect(has, message.versions)
        if versions is None:
            continue
        flexible = definition["flexibleVersions"]
        assert (None if flexible == "none" else parse_range(flexible)) == (
            None if message.flexible_from == 32767 else (message.flexible_from, 32767)
        )
        assert definition.get("apiKey") == spec.api_key
        ours, kafkas = our_facts(message, versions), kafka_facts(definition, versions)
        if definition is of_releases[-1]:
            assert ours == kafkas
        else:
            assert without_ignorable(ours) == without_ignorable(kafkas)


def test_every_stable_api_between_clients_and_brokers_has_a_spec() -> None:
    """What Kafka 3.9 serves in ZooKeeper mode."""
    served = {
        definition["apiKey"]
        for definition, *_ in definitions_once().values()
        if "zkBroker" in definition.get("listeners", [])
    }
    assert served <= {spec.api_key for spec in SPECS}


_definitions: dict[str, list[dict[str, Any]]] = {}


def definitions_once() -> dict[str, list[dict[str, Any]]]:
    if not _definitions:
        _definitions.update(definitions())
    return _definitions


def without_ignorable(fields: list[Facts]) -> list[Facts]:
    """What a writer of an older version may drop is a matter of the newest definition."""
    return [(*field[:IGNORABLE], *field[IGNORABLE + 1 : -1], without_ignorable(field[-1])) for field in fields]


def our_facts(message: MessageSpec, versions: Range) -> list[Facts]:
    structs = {struct.name: struct.fields for struct in message.structs}

    def facts(field: FieldSpec, enclosing: Range) -> Facts | None:
        versions = intersect(field.versions, enclosing)
        if versions is None:
            return None
        children = structs[field.type] if field.is_struct else ()
        return (
            field.kafka_name,
            f"[]{field.type}" if field.array else field.type,
            versions,
            field.nullable and intersect(field.nullable, versions),
            field.tag,
            field.tagged and intersect(field.tagged, versions),
            field.map_key,
            field.ignorable,
            "null" if field.default_null else field.default,
            [child for child in (facts(child, versions) for child in children) if child],
        )

    return [field for field in (facts(field, versions) for field in message.fields) if field]


def kafka_facts(definition: dict[str, Any], versions: Range) -> list[Facts]:
    common = {struct["name"]: struct["fields"] for struct in definition.get("commonStructs", [])}

    def facts(field: dict[str, Any], enclosing: Range) -> Facts | None:
        # a field that is tagged in all its versions may leave them out
        versions = intersect(parse_range(field.get("versions") or field["taggedVersions"]), enclosing)
        if versions is None:
            return None
        type_name = field["type"].removeprefix("[]")
        children = field.get("fields") or common.get(type_name, [])
        return (
            field["name"],
            field["type"],
            versions,
            _cut(field, "nullableVersions", versions),
            field.get("tag"),
            _cut(field, "taggedVersions", versions),
            field.get("mapKey", False),
            str(field.get("ignorable", False)).lower() == "true",
            _default(field, type_name, bool(children)),
            [child for child in (facts(child, versions) for child in children) if child],
        )

    return [field for field in (facts(field, versions) for field in definition["fields"]) if field]


def _cut(field: dict[str, Any], key: str, versions: Range) -> Range | None:
    return intersect(parse_range(field[key]), versions) if key in field else None


def _default(field: dict[str, Any], type_name: str, is_struct: bool) -> Any:
    text = str(field.get("default", ""))
    if text == "null":
        return "null"
    if field["type"].startswith("[]") or is_struct or type_name in ("uuid", "bytes", "records"):
        return None
    if type_name == "bool":
        return text.lower() == "true"
    if type_name == "string":
        return text
    return float(text or 0) if type_name == "float64" else int(text or "0", 0)
