"""Records of `_schemas`, in Confluent's format: keys and values are JSON, and a key's `keytype` says what it is.

Keys are written byte for byte as Confluent's registry writes them, since compaction compares bytes. When read, the
order of the keys, white space and unknown members do not matter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from kpybroker.registry.schemas.model import AVRO, Definition, Reference

SCHEMA: Final = "SCHEMA"
CONFIG: Final = "CONFIG"
MODE: Final = "MODE"
NOOP: Final = "NOOP"
DELETE_SUBJECT: Final = "DELETE_SUBJECT"
CLEAR_SUBJECT: Final = "CLEAR_SUBJECT"
CONTEXT: Final = "CONTEXT"
TENANT: Final = "default"
"""Confluent's hosted registry has others."""


class Record(NamedTuple):
    """A record's key and value as bytes; no value removes what the key names."""

    key: bytes
    value: bytes | None


class Version(NamedTuple):
    """A schema under a subject. `is_deleted` is a soft delete: the id still resolves.

    `timestamp` is when the record was written, in milliseconds; None where the topic does not say it.
    """

    subject: str
    version: int
    id: int
    definition: Definition
    is_deleted: bool = False
    timestamp: int | None = None


def schema(version: Version) -> Record:
    """Registers a version, or writes it again with another `is_deleted`."""
    definition = version.definition
    value: dict[str, Any] = {"subject": version.subject, "version": version.version, "id": version.id}
    if definition.kind != AVRO:
        value["schemaType"] = definition.kind
    if definition.references:
        value["references"] = [one._asdict() for one in definition.references]
    if definition.metadata is not None:
        value["metadata"] = json.loads(definition.metadata)
    if definition.rule_set is not None:
        value["ruleSet"] = json.loads(definition.rule_set)
    value["schema"] = definition.text
    value["deleted"] = version.is_deleted
    return Record(schema_key(version.subject, version.version), _bytes(value))


def schema_key(subject: str, version: int) -> bytes:
    """The key of a version."""
    return _bytes({"keytype": SCHEMA, "subject": subject, "version": version, "magic": 1})


def schema_removed(subject: str, version: int) -> Record:
    """Removes a version for good."""
    return Record(schema_key(subject, version), None)


def subject_deleted(subject: str, version_max: int) -> Record:
    """Deletes all versions up to one softly."""
    return Record(_key(DELETE_SUBJECT, subject), _bytes({"subject": subject, "version": version_max}))


def subject_cleared(subject: str | None) -> Record:
    """Says that no version of the subject, or of any, is left."""
    value = {} if subject is None else {"subject": subject}
    return Record(_key(CLEAR_SUBJECT, subject), _bytes(value))


def config(subject: str | None, value: Mapping[str, Any] | None) -> Record:
    """The configuration of a subject, or the global one; None removes it."""
    return _setting(CONFIG, subject, value)


def mode(subject: str | None, name: str | None) -> Record:
    """The mode of a subject, or the global one; None removes it."""
    return _setting(MODE, subject, None if name is None else {"mode": name})


def context(name: str, *, exists: bool = True) -> Record:
    """Says that there is a context, or removes it."""
    place = {"tenant": TENANT, "context": name}
    return Record(_bytes({"keytype": CONTEXT, **place, "magic": 0}), _bytes(place) if exists else None)


def noop() -> Record:
    """Changes nothing. A leader writes it to learn where the log ends."""
    return Record(_bytes({"keytype": NOOP, "magic": 0}), None)


def _setting(kind: str, subject: str | None, value: Mapping[str, Any] | None) -> Record:
    if value is None:
        return Record(_key(kind, subject), None)
    named = {} if subject is None else {"subject": subject}
    return Record(_key(kind, subject), _bytes({**named, **value}))


def _key(kind: str, subject: str | None) -> bytes:
    named = {} if subject is None else {"subject": subject}
    return _bytes({"keytype": kind, **named, "magic": 0})


def _bytes(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def own_spelling(key: Mapping[str, Any]) -> bytes | None:
    """A key that was read, as this registry writes it; None for one that it writes no removal of."""
    kind, subject = key.get("keytype"), key.get("subject")
    if kind == SCHEMA:
        return schema_key(str(subject), int(key["version"]))
    if kind in (CONFIG, MODE):
        return _key(kind, subject)
    return context(str(key.get("context"))).key if kind == CONTEXT else None


class Unreadable(Exception):
    """A record that is none of the registry's: it is skipped."""


def parsed_object(data: bytes) -> dict[str, Any]:
    """A key or a value. Raises Unreadable."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"no JSON: {error}") from None
    if not isinstance(value, dict):
        raise Unreadable("no JSON object")
    return value


def parsed_version(value: Mapping[str, Any]) -> Version:
    """The version of a SCHEMA record's value. Raises Unreadable."""
    try:
        definition = Definition(
            str(value.get("schemaType") or AVRO),
            str(value["schema"]),
            tuple(
                Reference(str(one["name"]), str(one["subject"]), int(one["version"]))
                for one in value.get("references") or ()
            ),
            attached(value.get("metadata")),
            attached(value.get("ruleSet")),
        )
        number, identifier = int(value["version"]), int(value["id"])
        return Version(str(value["subject"]), number, identifier, definition, value.get("deleted") is True)
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise Unreadable(f"a SCHEMA record lacks its parts: {error!r}") from None


def attached(value: Any) -> str | None:
    """Metadata or a rule set as the text that compares equal for equal values; None for none."""
    return None if value is None else json.dumps(value, sort_keys=True, ensure_ascii=False)
