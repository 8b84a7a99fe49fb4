"""Schemas that the conversations register."""

from __future__ import annotations

import json
from typing import Any, Final


def record(*fields: str, name: str = "Order") -> str:
    """An Avro schema of texts; a field that ends in `?` has a default."""
    made = [
        {"name": one.rstrip("?"), "type": "string", **({"default": ""} if one.endswith("?") else {})} for one in fields
    ]
    return json.dumps({"type": "record", "name": name, "fields": made}, separators=(",", ":"))


def body(text: str, kind: str | None = None, **more: Any) -> dict[str, Any]:
    """Of a registration."""
    return {"schema": text, **({} if kind is None else {"schemaType": kind}), **more}


def proto(*fields: str, name: str = "Order") -> str:
    """A Protobuf schema of texts."""
    made = "".join(f"  string {one} = {number};\n" for number, one in enumerate(fields, 1))
    return f'syntax = "proto3";\npackage shop;\n\nmessage {name} {{\n{made}}}\n'


def shape(*names: str) -> str:
    """A JSON schema of texts, closed."""
    inner = {one: {"type": "string"} for one in names}
    return json.dumps({"type": "object", "properties": inner, "additionalProperties": False}, separators=(",", ":"))


A: Final = record("a")
AB: Final = record("a", "b?")
ABC: Final = record("a", "b?", "c?")
BROKEN: Final = record("a", "x")
"""May not follow `A`."""
METADATA: Final[dict[str, Any]] = {
    "tags": {"**": ["PII"]},
    "properties": {"owner": "ann", "v": "1"},
    "sensitive": ["v"],
}
RULES: Final[dict[str, Any]] = {
    "domainRules": [
        {
            "name": "checkLen",
            "doc": "d",
            "kind": "CONDITION",
            "mode": "WRITE",
            "type": "CEL",
            "tags": ["PII"],
            "params": {"k": "v"},
            "expr": "size(message.a) < 9",
            "onSuccess": "NONE",
            "onFailure": "ERROR",
            "disabled": False,
        }
    ]
}
