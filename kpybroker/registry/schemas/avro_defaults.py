"""Defaults of fields: whether they are values of the fields' schemas, and how `normalize=true` writes them."""

from __future__ import annotations

import math
import struct
from typing import Any, Final

from kpybroker.registry.errors import invalid_schema
from kpybroker.registry.schemas import java_json
from kpybroker.registry.schemas.avro_tree import MISSING, Field, Node

INT: Final = range(-(2**31), 2**31)
LONG: Final = range(-(2**63), 2**63)
FLOAT_DIGITS_MAX: Final = 9


def check(root: Node) -> None:
    """Raises RegistryError 42201 for a default that its field cannot have."""
    waiting, seen = [root], set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        waiting.extend(node.parts)
        for field in node.fields:
            waiting.append(field.schema)
            if _has_default(field) and not _is_value(field.schema, field.default):
                shown = java_json.dumps(field.default)[:100]
                raise invalid_schema(f"the default {shown} of the field {field.name} is no {_shown(field.schema)}")


def _has_default(field: Any) -> bool:
    return field.default is not MISSING


def _shown(node: Node) -> str:
    return node.name or (" or ".join(map(_shown, node.parts)) if node.kind == "union" else node.kind)


def _is_value(node: Node, value: Any) -> bool:
    match node.kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int" | "long":
            bits = 31 if node.kind == "int" else 63
            return _is_integer(value) and -(1 << bits) <= value < 1 << bits
        case "float" | "double":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "string" | "bytes" | "fixed" | "enum":
            return isinstance(value, str)
        case "array":
            return isinstance(value, list) and all(_is_value(node.parts[0], one) for one in value)
        case "map":
            return isinstance(value, dict) and all(_is_value(node.parts[0], one) for one in value.values())
        case "union":
            return any(_is_value(part, value) for part in node.parts)
        case _:
            return isinstance(value, dict) and all(
                _is_value(one.schema, value[one.name]) if one.name in value else _has_default(one)
                for one in node.fields
            )


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def normal(field: Field) -> Any:
    """The default as a value of the first of the field's types. MISSING for none, and for one of another type.

    Raises RegistryError 42201 for a part that cannot be such a value.
    """
    if field.schema.kind == "union" and not field.schema.parts:
        raise invalid_schema(f"the union of the field {field.name[:100]} is empty")
    found = MISSING if field.default is MISSING else _normal(field.schema, field.default)
    if field.schema.kind == "union" and isinstance(found, float) and not math.isfinite(found):
        raise invalid_schema(f"the default of the field {field.name[:100]} is too great a number")
    return found


def _normal(node: Node | None, value: Any) -> Any:
    """Of no node, a property's value."""
    while node is not None and node.kind == "union":
        node = node.parts[0]
    if value is None or isinstance(value, bool):
        return value
    kind = None if node is None else node.kind
    if isinstance(value, int | float):
        return _number(kind, value)
    if isinstance(value, str):
        if kind in ("bytes", "fixed"):
            return value.encode("latin-1", "replace").decode("latin-1")
        return value if kind in (None, "string", "enum") else MISSING
    if isinstance(value, list):
        if node is not None and kind != "array":
            raise invalid_schema(f"a default is an array, and its type is {_shown(node)}")
        return [_part(None if node is None else node.parts[0], one) for one in value]
    return {key: _part(_type_of(node, key), value[key]) for key in sorted(value, key=java_json.order)}


def property_value(value: Any) -> Any:
    """A property with `normalize=true`. Raises RegistryError 42201 for a number above 64 bits."""
    return _part(None, value)


def _part(node: Node | None, value: Any) -> Any:
    found = _normal(node, value)
    if found is MISSING:
        raise invalid_schema(f"{java_json.dumps(value)[:100]} is no value of its type")
    return found


def _number(kind: str | None, value: float) -> Any:
    if isinstance(value, float):
        return value if kind in (None, "double") else _float(value) if kind == "float" else MISSING
    if value not in LONG:
        return MISSING
    if kind == "float":
        return _float(float(value))
    if kind == "double":
        return float(value)
    return value if kind in (None, "int", "long") else MISSING


def _float(value: float) -> float:
    """The shortest number that is the same one in 32 bits."""
    try:
        packed = struct.pack(">f", value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    (exact,) = struct.unpack(">f", packed)
    shorter = (float(f"{exact:.{digits}g}") for digits in range(1, FLOAT_DIGITS_MAX + 1))
    return next((one for one in shorter if struct.pack(">f", one) == packed), exact)


def _type_of(node: Node | None, key: str) -> Node | None:
    if node is None:
        return None
    if node.kind == "map":
        return node.parts[0]
    if node.kind in ("record", "error"):
        found = next((field.schema for field in node.fields if field.name == key), None)
        if found is None:
            raise invalid_schema(f"a default has the field {key[:100]}, which {node.name[:100]} does not have")
        return found
    return None
