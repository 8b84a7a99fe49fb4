"""Guids: the same as in Confluent's registry, whatever a topic holds."""

from __future__ import annotations

import hashlib
import uuid
from typing import Any

from kpybroker.registry.schemas.model import Definition, Reference
from kpybroker.registry.store.records import attached


def md5(content: bytes) -> str:
    return str(uuid.UUID(bytes=hashlib.md5(content, usedforsecurity=False).digest()))


def test_a_text_alone() -> None:
    assert Definition("AVRO", '"int"').guid == md5(b'"int"')
    assert Definition("JSON", '"int"').guid == md5(b'"int"'), "the type does not count"


def test_references_have_names_subjects_and_versions() -> None:
    references = (Reference("a.B", "b-value", 258), Reference("", "c", -1))
    expected = b'"int"a.Bb-value\x00\x00\x01\x02c\xff\xff\xff\xff'
    assert Definition("AVRO", '"int"', references).guid == md5(expected)


def test_metadata_is_in_order_and_may_be_empty() -> None:
    metadata = {"sensitive": ["y", "x"], "properties": {"b": "2", "a": "1"}, "tags": {"**": ["P", "A"]}}
    assert Definition("AVRO", "t", (), attached(metadata)).guid == md5(b"t\x01**APa1b2xy")
    assert Definition("AVRO", "t", (), attached({})).guid == md5(b"t\x01")
    assert Definition("AVRO", "t", (), None).guid == md5(b"t")


def test_rules_of_all_kinds() -> None:
    rule = {"name": "n", "doc": "d", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "tags": ["b", "a"]}
    more = {"params": {"k": "v"}, "expr": "e", "onSuccess": "NONE", "onFailure": "ERROR", "disabled": True}
    sets = {"domainRules": [{**rule, **more}], "migrationRules": [{"name": "m", "disabled": False}]}
    expected = b"t\x01mndCONDITIONWRITECELabkveNONEERROR\x01"
    assert Definition("AVRO", "t", (), None, attached(sets)).guid == md5(expected)


def test_what_no_registry_would_write_has_a_guid_too() -> None:
    odds: tuple[Any, ...] = (
        {"tags": 1, "properties": ["x"]},
        {"properties": {"a": None}},
        {"tags": {"a": {}}},
        [1],
        {"sensitive": 3},
    )
    for odd in odds:
        assert Definition("AVRO", "t", (), attached(odd)).guid
    assert Definition("AVRO", "t", (Reference("a", "b", 2**40),)).guid
    rules = {"domainRules": [1, {"params": 3}], "migrationRules": 1}
    assert Definition("AVRO", "\ud800", (), None, attached(rules)).guid
