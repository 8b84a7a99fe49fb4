"""Objects of JSON Schema: properties, which are required, what else may be there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple, Protocol

from kpybroker.registry.compatibility import json_patterns, json_values
from kpybroker.registry.compatibility.json_shapes import EMPTY, FALSE, Shape
from kpybroker.registry.compatibility.reasons import Reason

LIMITS: Final = (
    ("maxProperties", "MAX_PROPERTIES", json_values.upper),
    ("minProperties", "MIN_PROPERTIES", json_values.lower),
)


class Keyword(NamedTuple):
    """A keyword of JSON Schema, and what Confluent's kinds of differences call it."""

    key: str
    name: str


ADDITIONAL_PROPERTIES: Final = Keyword("additionalProperties", "ADDITIONAL_PROPERTIES")
UNEVALUATED_PROPERTIES: Final = Keyword("unevaluatedProperties", "UNEVALUATED_PROPERTIES")


class Comparer(Protocol):
    """What compares the schemas inside."""

    def shapes(self, old: Shape, new: Shape) -> list[Reason]:
        """The differences of two schemas."""

    def at(self, *parts: str) -> AbstractContextManager[None]:
        """What is found inside is at this place."""

    def reason(self, kind: str, text: str) -> Reason:
        """A difference at the present place."""


def differences(compare: Comparer, old: Shape, new: Shape) -> list[Reason]:
    """Of two objects."""
    found = [*_required(compare, old, new), *_properties(compare, old, new), *_dependencies(compare, old, new)]
    found += additional(compare, old, new, ADDITIONAL_PROPERTIES)
    found += unevaluated(compare, old, new, UNEVALUATED_PROPERTIES)
    pairs = (
        ("maxProperties", "MAX_PROPERTIES", json_values.upper),
        ("minProperties", "MIN_PROPERTIES", json_values.lower),
    )
    for key, name, limit in pairs:
        found += limit(compare.reason, key, name, old.raw.get(key), new.raw.get(key))
    return found


def _named(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    found = raw.get("properties")
    return found if isinstance(found, dict) else {}


def _required_of(raw: Mapping[str, Any]) -> set[str]:
    found = raw.get("required")
    return set(map(str, found)) if isinstance(found, list) else set()


def _has_default(schema: Any) -> bool:
    return isinstance(schema, dict) and "default" in schema


def _required(compare: Comparer, old: Shape, new: Shape) -> Iterator[Reason]:
    before, after = _required_of(old.raw), _required_of(new.raw)
    for name in _named(old.raw):
        schema = _named(new.raw).get(name)
        if schema is not None and name in after - before and not _has_default(schema):
            with compare.at("required", name):
                yield compare.reason("REQUIRED_ATTRIBUTE_ADDED", "A property is required in the %reader only")


def _properties(compare: Comparer, old: Shape, new: Shape) -> list[Reason]:
    before, after = _named(old.raw), _named(new.raw)
    found: list[Reason] = []
    for name in dict.fromkeys([*before, *after]):
        with compare.at("properties", name):
            if name not in after:
                found += _removed(compare, name, old.sub(before[name]), new)
            elif name not in before:
                found += _added(compare, name, old, new)
            else:
                found += compare.shapes(old.sub(before[name]), new.sub(after[name]))
    return found


def _removed(compare: Comparer, name: str, old: Shape, new: Shape) -> list[Reason]:
    """What the reader says of properties that it does not name must accept it."""
    if _is_open(new):
        return []
    others = _schema_of_others(new, name)
    if others is None:
        if old.kind == FALSE:
            return []
        text = "The %reader is closed and lacks a property of the %writer"
        return [compare.reason("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", text)]
    found = compare.shapes(old, new.sub(others))
    if not found:
        return []
    text = "A property of the %writer is not covered by what the %reader says of others"
    return [*found, compare.reason("PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", text)]


def _added(compare: Comparer, name: str, old: Shape, new: Shape) -> list[Reason]:
    """What the writer said of properties that it did not name must be accepted."""
    schema = _named(new.raw)[name]
    is_required = name in _required_of(new.raw) and not _has_default(schema)
    if _is_open(old):
        if new.sub(schema).kind == EMPTY:
            return []
        if name in _required_of(new.raw):
            kind = (
                "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"
                if is_required
                else ("REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL")
            )
        else:
            kind = "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"
        return [compare.reason(kind, "The %writer is open, and the %reader gives a type to a property that it lacks")]
    found: list[Reason] = []
    others = _schema_of_others(old, name)
    if others is not None:
        found = list(compare.shapes(old.sub(others), new.sub(schema)))
        if found:
            text = "A property of the %reader does not cover what the %writer says of others"
            found.append(compare.reason("PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", text))
    if is_required:
        text = "A required property of the %reader is missing in the %writer"
        found.append(compare.reason("REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", text))
    return found


def _is_open(shape: Shape) -> bool:
    raw = shape.raw
    if raw.get("additionalProperties", True) not in (True,) or raw.get("patternProperties"):
        return False
    return "unevaluatedProperties" not in raw or shape.sub(raw["unevaluatedProperties"]).kind == EMPTY


def _schema_of_others(shape: Shape, name: str) -> Any:
    """What is said of a property that is not named: by a pattern, else of all others; None where it is forbidden."""
    patterns = shape.raw.get("patternProperties")
    if isinstance(patterns, dict):
        for pattern, schema in patterns.items():
            if json_patterns.matches(pattern, name):
                return schema
    others = shape.raw.get("additionalProperties", True)
    if isinstance(others, dict):
        return others
    unevaluated_ = shape.raw.get("unevaluatedProperties")
    if others is True and isinstance(unevaluated_, dict) and shape.sub(unevaluated_).kind not in (EMPTY, FALSE):
        return unevaluated_
    return None


def _dependencies(compare: Comparer, old: Shape, new: Shape) -> list[Reason]:
    before, after = _dependencies_of(old.raw), _dependencies_of(new.raw)
    found: list[Reason] = []
    for name, wanted in after.items():
        with compare.at("dependencies", name):
            own = before.get(name)
            if own is None or isinstance(own, list) != isinstance(wanted, list):
                kind = "DEPENDENCY_ARRAY_ADDED" if isinstance(wanted, list) else "DEPENDENCY_SCHEMA_ADDED"
                found.append(compare.reason(kind, "A dependency of the %reader is missing in the %writer"))
            elif not isinstance(wanted, list):
                found += compare.shapes(old.sub(own), new.sub(wanted))
            elif not set(wanted) <= set(own):
                kind = "DEPENDENCY_ARRAY_EXTENDED" if set(own) < set(wanted) else "DEPENDENCY_ARRAY_CHANGED"
                found.append(compare.reason(kind, "A property in the %reader depends on one more than in the %writer"))
    return found


def _dependencies_of(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Lists of names, or schemas."""
    found: dict[str, Any] = {}
    for key in ("dependencies", "dependentRequired", "dependentSchemas"):
        if isinstance(raw.get(key), dict):
            found |= raw[key]
    return found


def additional(compare: Comparer, old: Shape, new: Shape, keyword: Keyword) -> list[Reason]:
    """Of `additionalProperties` or `additionalItems`: what is not named."""
    return others(compare, old, new, keyword, old.raw.get(keyword.key, True), new.raw.get(keyword.key, True))


def others(compare: Comparer, old: Shape, new: Shape, keyword: Keyword, before: Any, after: Any) -> list[Reason]:
    """The rule for both: booleans and schemas apart, since a schema that accepts everything is written as one."""
    key, name = keyword
    with compare.at(key):
        if (before is False) != (after is False):
            if after is False:
                return [compare.reason(f"{name}_REMOVED", f"{key} is forbidden in the %reader only")]
            return []
        if isinstance(after, dict) and not isinstance(before, dict):
            return [compare.reason(f"{name}_NARROWED", f"{key} has a schema in the %reader only")]
        if isinstance(after, dict) and isinstance(before, dict):
            return list(compare.shapes(old.sub(before), new.sub(after)))
    return []


def unevaluated(compare: Comparer, old: Shape, new: Shape, keyword: Keyword) -> list[Reason]:
    """Of `unevaluatedProperties` or `unevaluatedItems`."""
    key, name = keyword
    if key not in new.raw:
        return []
    after = new.sub(new.raw[key])
    before = old.sub(old.raw[key]) if key in old.raw else None
    with compare.at(key):
        if after.kind == FALSE and (before is None or before.kind != FALSE):
            return [compare.reason(f"{name}_REMOVED", f"{key} is forbidden in the %reader only")]
        if before is None or (before.kind == EMPTY and after.kind != EMPTY):
            return [compare.reason(f"{name}_NARROWED", f"{key} has a schema in the %reader only")]
        return list(compare.shapes(before, after))
