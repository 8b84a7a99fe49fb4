"""The bytes of `_schemas` are those of Confluent's registry, and records of it and of Karapace are read."""

from __future__ import annotations

import json

from kpybroker.registry.schemas.model import Definition, Reference
from kpybroker.registry.store import records
from kpybroker.registry.store.records import Version
from kpybroker.registry.store.state import State

CONFLUENT = (
    (b'{"keytype":"NOOP","magic":0}', None),
    (
        b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}',
        b'{"subject":"a","version":1,"id":1,"schema":"\\"string\\"","deleted":false}',
    ),
    (
        b'{"keytype":"SCHEMA","subject":"b","version":1,"magic":1}',
        b'{"subject":"b","version":1,"id":2,"md5":"q83vASNFZ4mrze8BI0VniQ==","schemaType":"JSON","references":'
        b'[{"name":"a.json","subject":"a","version":1}],"schema":"{}","deleted":false}',
    ),
    (
        b'{"keytype":"CONFIG","subject":null,"magic":0}',
        b'{"subject":null,"compatibilityLevel":"FULL","validateFields":false}',
    ),
    (b'{"keytype":"CONFIG","subject":"a","magic":0}', b'{"compatibilityLevel":"NONE"}'),
    (b'{"keytype":"MODE","subject":"a","magic":0}', b'{"subject":"a","mode":"READONLY"}'),
    (b'{"keytype":"CONTEXT","tenant":"default","context":".x","magic":0}', b'{"tenant":"default","context":".x"}'),
    (b'{"keytype":"DELETE_SUBJECT","subject":"a","magic":0}', b'{"subject":"a","version":1}'),
)
"""As its documentation and the topics that it wrote show them, older and newer releases mixed."""

KARAPACE = (
    (b'{"keytype":"CONFIG","subject":null,"magic":0}', b'{"compatibilityLevel":"BACKWARD"}'),
    (
        b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}',
        b'{"subject":"a","version":1,"id":1,"schema":"{\\"type\\":\\"record\\",\\"name\\":\\"A\\",\\"fields\\":[]}",'
        b'"deleted":false,"references":[]}',
    ),
    (
        b'{"keytype":"SCHEMA","subject":"p","version":1,"magic":1}',
        b'{"subject":"p","version":1,"id":2,"schema":"syntax = \\"proto3\\";","deleted":true,"schemaType":"PROTOBUF"}',
    ),
    (b'{"keytype":"DELETE_SUBJECT","subject":"q","magic":0}', b'{"subject":"q","version":4}'),
)


def state_of(written: tuple[tuple[bytes, bytes | None], ...]) -> State:
    state = State()
    for key, value in written:
        state.apply(key, value)
    return state


def test_a_topic_of_confluents_registry_is_read() -> None:
    state = state_of(CONFLUENT)
    assert state.subjects() == ["b"]
    assert state.subjects(deleted=True) == ["a", "b"]
    assert state.definition(1) == Definition("AVRO", '"string"')
    assert state.definition(2) == Definition("JSON", "{}", (Reference("a.json", "a", 1),))
    assert [one.subject for one in state.referrers("a", 1)] == ["b"]
    assert state.config(None) == {"compatibilityLevel": "FULL", "validateFields": False}
    assert state.config("a") == {"compatibilityLevel": "NONE"}
    assert state.mode("a") == "READONLY"
    assert state.context_names() == [".", ".x"]
    assert state.skipped == 0


def test_a_topic_of_karapace_is_read() -> None:
    state = state_of(KARAPACE)
    assert state.subjects(deleted=True) == ["a", "p"]
    assert state.definition(2) == Definition("PROTOBUF", 'syntax = "proto3";')
    assert state.skipped == 0


def test_what_is_written_is_what_confluents_registry_writes() -> None:
    plain = Version("a", 1, 1, Definition("AVRO", '"string"'))
    assert records.schema(plain) == CONFLUENT[1]
    assert records.schema_removed("a", 1) == (CONFLUENT[1][0], None)
    assert records.subject_deleted("a", 1) == CONFLUENT[-1]
    assert records.mode("a", "READONLY") == CONFLUENT[5]
    assert records.noop() == CONFLUENT[0]
    assert records.config(None, {"compatibilityLevel": "FULL"}).key == b'{"keytype":"CONFIG","magic":0}'
    assert records.config("\u00e4", None).key == '{"keytype":"CONFIG","subject":"\u00e4","magic":0}'.encode()


def test_a_schema_with_everything_survives() -> None:
    definition = Definition(
        "PROTOBUF",
        'syntax = "proto3";',
        (Reference("x.proto", "x", 3),),
        records.attached({"properties": {"owner": "shop"}}),
        records.attached({"domainRules": [{"name": "r"}]}),
    )
    version = Version("s", 2, 9, definition, is_deleted=True)
    written = records.schema(version)
    assert written.value is not None
    assert records.parsed_version(json.loads(written.value)) == version
