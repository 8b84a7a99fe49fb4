"""Schemas that others wrote are found and registered again as the same, and removed for good."""

from __future__ import annotations

import pytest

from kpybroker.registry.schemas.model import Definition
from kpybroker.registry.store import records
from kpybroker.registry.store.records import Record, Version
from kpybroker.registry.store.state import State
from tests.registry.conftest import Registry

INT = Version("a", 1, 7, Definition("AVRO", '"int"'))
TAKEN_OVER = [
    ("AVRO", '{"fields":[{"name":"x","type":"int"}],"name":"S","type":"record"}',
     '{"type":"record","name":"S","fields":[{"name":"x","type":"int"}]}'),
    ("AVRO", '{"type": "record", "name": "S", "fields": []}', '{"type":"record","name":"S","fields":[]}'),
    ("AVRO", '{"type":"record","name":"S","fields":[{"name":"x","type":"double","default":0.00001}]}',
     '{"type":"record","name":"S","fields":[{"name":"x","type":"double","default":1.0E-5}]}'),
    ("AVRO", '{"type":"long","name":"when"}', '"long"'),
    ("JSON", '{"type":"number","multipleOf":0.00001}', '{"type": "number", "multipleOf": 0.00001}'),
    ("JSON", '{"type":"number","multipleOf":1e-05}', '{"type": "number", "multipleOf": 0.00001}'),
    ("JSON", '{"type":"number","maximum":99.90}', '{"type": "number", "maximum": 99.90}'),
    ("JSON", '{"type": "number", "maximum": 99.9}', '{"type":"number","maximum":99.9}'),
    ("PROTOBUF", 'syntax = "proto3";\npackage a;\n\nmessage M {\n  N n = 1;\n\n  message N {}\n}\n',
     'syntax = "proto3"; package a; message M { N n = 1; message N {} } // c'),
    ("PROTOBUF", 'syntax = "proto3";\n\npackage a;\n\n// c\nmessage M {\n  .a.M.N n = 1;\n  message N {\n  }\n}\n',
     'syntax = "proto3"; package a; message M { N n = 1; message N {} }'),
    ("AVRO", '{"type":"record","name":"x-y","fields":[]}', '{"name":"x-y","type":"record","fields":[]}'),
]  # fmt: skip
"""A type, a text that another registry or an earlier version stored, and another text of the same schema."""


@pytest.mark.parametrize(("kind", "stored", "sent"), TAKEN_OVER)
def test_a_schema_is_found_however_it_is_stored(registry: Registry, kind: str, stored: str, sent: str) -> None:
    written = Version("a", 1, 7, Definition(kind, stored))
    registry.service.apply(*records.schema(written))
    for text in (stored, sent):
        assert registry.call("POST", "/subjects/a", {"schema": text, "schemaType": kind})["id"] == 7
    assert registry.call("GET", "/subjects/a/versions/1")["schema"] == stored, "it is given as it is stored"
    assert registry.register("a", sent, schemaType=kind) == 7
    assert registry.log.records == []


def test_a_version_under_an_old_key_is_gone_after_compaction(registry: Registry) -> None:
    old = Record(b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":0}', records.schema(INT).value)
    registry.service.apply(*old)
    registry.call("DELETE", "/subjects/a/versions/1")
    registry.call("DELETE", "/subjects/a/versions/1?permanent=true")
    compacted = {record.key: record for record in (old, *registry.log.records)}
    state = State()
    for record in compacted.values():
        state.apply(*record)
    assert state.subjects(deleted=True) == []


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("AVRO", '{"type":"record","name":"x-y","fields":[]}'),
        ("AVRO", '{"type":"record","name":"R","fields":[{"name":"","type":"int"}]}'),
        ("AVRO", "long"),
        ("JSON", '{"$ref":"nowhere.json"}'),
        ("PROTOBUF", 'syntax = "proto3"; message M { Nothing a = 1; }'),
    ],
)
def test_a_name_that_no_new_schema_can_have_is_refused_where_it_is_not_found(
    registry: Registry, kind: str, text: str
) -> None:
    registry.register("a", '"int"')
    body = {"schema": text, "schemaType": kind}
    assert registry.refused("POST", "/subjects/a", body) == 42201
    assert registry.refused("POST", "/subjects/a/versions", body) == 42201
    assert registry.refused("POST", "/compatibility/subjects/a/versions/latest", body) == 42201


def test_references_are_sorted_where_schemas_are_normalized(registry: Registry) -> None:
    for name in ("x", "y"):
        registry.register(name, f'{{"type":"record","name":"{name.upper()}","fields":[]}}')
    references = [{"name": name.upper(), "subject": name, "version": 1} for name in ("y", "x")]
    body = {"schema": '["X","Y"]', "references": references}
    made = registry.call("POST", "/subjects/a/versions?normalize=true", body)
    assert registry.call("GET", "/subjects/a/versions/1")["references"] == references[::-1]
    twisted = {**body, "references": [*references[::-1], references[0]]}
    assert registry.call("POST", "/subjects/a?normalize=true", twisted)["id"] == made["id"]
    whole = '[{"type":"record","name":"X","fields":[]},{"type":"record","name":"Y","fields":[]}]'
    assert registry.call("POST", "/subjects/a", {"schema": whole})["id"] == made["id"], "its types are in it"


@pytest.mark.parametrize(
    ("kind", "stored", "sent"),
    [
        ("AVRO", '{"type":"int","b":1,"a":2}', '{"type":"int","a":2,"b":1}'),
        ("JSON", '{"type":"string","title":"x"}', '{"title":"x","type":"string"}'),
        (
            "PROTOBUF",
            'syntax = "proto3"; option b = 1; option a = 2; message M { M m = 2; int32 a = 1; }',
            'syntax = "proto3"; option a = 2; option b = 1; message M { int32 a = 1; .M m = 2; }',
        ),
    ],
)
def test_with_normalize_normalized_texts_of_both_are_compared(
    registry: Registry, kind: str, stored: str, sent: str
) -> None:
    first = registry.register("a", stored, schemaType=kind)
    body = {"schema": sent, "schemaType": kind}
    for text in (stored, sent):
        asked = registry.call("POST", "/subjects/a?normalize=true", {**body, "schema": text})
        assert (asked["id"], asked["version"]) == (first, 1)
        assert registry.call("POST", "/subjects/a/versions?normalize=true", {**body, "schema": text})["id"] == first
    if kind != "AVRO":
        assert registry.refused("POST", "/subjects/a", body) == 40403, "without it the order counts"


def test_a_text_that_cannot_be_read_any_more_is_found_as_it_was_sent(registry: Registry) -> None:
    text = 'edition = "2023"; message M { int32 a = 1; }'
    registry.service.apply(*records.schema(Version("a", 1, 7, Definition("PROTOBUF", text))))
    body = {"schema": text, "schemaType": "PROTOBUF"}
    assert registry.call("POST", "/subjects/a", body)["id"] == 7
    assert registry.register("a", text, schemaType="PROTOBUF") == 7
    assert registry.refused("POST", "/subjects/b/versions", body) == 42201
    assert registry.log.records == []
