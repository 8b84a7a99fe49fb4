"""`guid`: the UUID of a schema, which Confluent's registry would give it too: clients may write it into messages.

It is the MD5 of the text, the references, the metadata and the rules, written one after the other; maps and sets are in
the order of their texts. The type does not count.
"""

from __future__ import annotations

import hashlib
import json
import struct
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

RULE_SETS: Final = ("migrationRules", "domainRules", "encodingRules")
UINT_MAX: Final = 2**32 - 1
PRESENT: Final = b"\x01"
"""In front of metadata and of rules: none and empty ones differ."""


def guid(text: str, references: Iterable[tuple[str, str, int]], metadata: str | None, rule_set: str | None) -> str:
    """Of a text, names, subjects and versions of its references, and what is attached to it, as JSON."""
    made = hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False)
    for name, subject, version in references:
        made.update(_bytes((name, subject)) + struct.pack(">I", version & UINT_MAX))
    if metadata is not None:
        made.update(PRESENT + _bytes(_of_metadata(_object(json.loads(metadata)))))
    if rule_set is not None:
        made.update(PRESENT)
        for rule in _rules(_object(json.loads(rule_set))):
            made.update(_bytes(_of_rule(rule)) + (PRESENT if rule.get("disabled") is True else b""))
    return str(uuid.UUID(bytes=made.digest()))


def _object(value: Any) -> Mapping[str, Any]:
    """A topic may hold anything."""
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _bytes(texts: Iterable[Any]) -> bytes:
    return b"".join(str(one).encode("utf-8", "surrogatepass") for one in texts if one is not None)


def _in_order(texts: Iterable[Any]) -> list[str]:
    """That of Java: by units of UTF-16."""
    return sorted(map(str, texts), key=lambda text: text.encode("utf-16-be", "surrogatepass"))


def _pairs(found: Any) -> Iterator[Any]:
    if isinstance(found, Mapping):
        for key in _in_order(found):
            yield key
            yield from _in_order(found[key]) if isinstance(found[key], list) else (found[key],)


def _of_metadata(metadata: Mapping[str, Any]) -> Iterator[Any]:
    yield from _pairs(metadata.get("tags"))
    yield from _pairs(metadata.get("properties"))
    yield from _in_order(_list(metadata.get("sensitive")))


def _rules(sets: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for name in RULE_SETS:
        yield from (rule for rule in _list(sets.get(name)) if isinstance(rule, Mapping))


def _of_rule(rule: Mapping[str, Any]) -> Iterator[Any]:
    yield from (rule.get(name) for name in ("name", "doc", "kind", "mode", "type"))
    yield from _in_order(_list(rule.get("tags")))
    yield from _pairs(rule.get("params"))
    yield from (rule.get(name) for name in ("expr", "onSuccess", "onFailure"))
