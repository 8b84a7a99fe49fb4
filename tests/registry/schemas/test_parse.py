"""A topic that Confluent's registry wrote: each text is the schema that was sent, and is stored the same again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kpybroker.registry.schemas.parse import parse

HERE = Path(__file__).parent
TABLES = [
    ("AVRO", HERE / "confluent_8_1_0_avro.jsonl"),
    ("JSON", HERE / "confluent_8_1_0_json.jsonl"),
    ("PROTOBUF", HERE / "proto" / "confluent_8_1_0_protobuf.jsonl"),
    ("PROTOBUF", HERE / "proto" / "confluent_8_1_0_descriptors.jsonl"),
]
TWICE = "oneof o { group H=3"
"""A oneof of groups only is left out there with its line, which is not there when the text is read again."""


@pytest.mark.parametrize(("kind", "table"), TABLES, ids=lambda value: str(value)[-25:])
def test_what_confluent_stored_is_found(kind: str, table: Path) -> None:
    count = 0
    for line in table.read_text(encoding="utf-8").splitlines():
        sent, stored, normalized = json.loads(line)
        if stored is None:
            continue
        found, wanted = parse(kind, stored, {}), parse(kind, sent, {})
        assert wanted.identity.finds(found.identity), sent
        assert found.canonical == stored
        if normalized is not None and TWICE not in sent:
            assert parse(kind, normalized, {}).normalized == wanted.normalized, sent
        count += 1
    assert count > 100


def test_what_earlier_versions_stored_is_found() -> None:
    """`earlier_versions.jsonl`: what this registry stored before it printed as Confluent's does, also normalized."""
    rows = (HERE / "earlier_versions.jsonl").read_text(encoding="utf-8").splitlines()
    for kind, sent, stored, normalized in map(json.loads, rows):
        wanted = parse(kind, sent, {})
        assert wanted.identity.finds(parse(kind, stored, {}).identity), sent
        found = parse(kind, normalized, {})
        assert wanted.identity.finds(found.identity) or found.normalized == wanted.normalized, sent
    assert len(rows) > 300
