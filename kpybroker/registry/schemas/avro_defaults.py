"""Whether defaults of fields are values of the fields' schemas, as JSON; Java's ``Schema.isValidDefault``."""

from __future__ import annotations

from typing import Any

from kpybroker.registry.errors import invalid_schema
from kpybroker.registry.schemas.avro_tree import MISSING, Node


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
                shown = str(field.default)[:100]
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
