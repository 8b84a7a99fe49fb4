"""Logical types: which properties of a type they take, if the type can have them; others mean nothing."""

from __future__ import annotations

import math
from typing import Final

from kpybroker.registry.schemas.avro_tree import Node

UUID_BYTES: Final = 16
DURATION_BYTES: Final = 12
INT_MAX: Final = 2**31 - 1
OF_ONE_KIND: Final = {
    "date": "int",
    "time-millis": "int",
    "time-micros": "long",
    "timestamp-millis": "long",
    "timestamp-micros": "long",
    "timestamp-nanos": "long",
    "local-timestamp-millis": "long",
    "local-timestamp-micros": "long",
    "local-timestamp-nanos": "long",
    "big-decimal": "bytes",
}


def properties(node: Node) -> tuple[str, ...]:
    """The names of the properties that a valid logical type of a node has; empty for none."""
    name = node.properties.get("logicalType")
    if not isinstance(name, str):
        return ()
    if name == "decimal":
        if not _is_decimal(node):
            return ()
        return (
            ("logicalType", "precision", "scale") if node.properties.get("scale", 0) else ("logicalType", "precision")
        )
    if name == "uuid":
        is_valid = node.kind == "string" or (node.kind == "fixed" and node.size == UUID_BYTES)
    elif name == "duration":
        is_valid = node.kind == "fixed" and node.size == DURATION_BYTES
    else:
        is_valid = OF_ONE_KIND.get(name) == node.kind
    return ("logicalType",) if is_valid else ()


def _is_decimal(node: Node) -> bool:
    precision, scale = node.properties.get("precision"), node.properties.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int) or node.kind not in ("bytes", "fixed"):
        return False
    if isinstance(precision, bool) or isinstance(scale, bool):
        return False
    highest = INT_MAX if node.kind == "bytes" else math.floor(math.log10(2) * (8 * node.size - 1))
    return 0 < precision <= highest and 0 <= scale <= precision
