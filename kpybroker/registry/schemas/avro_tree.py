"""The tree of an Avro schema: what a text says, with full names. Trees of recursive types have cycles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
NAMED: Final = frozenset({"record", "error", "enum", "fixed"})
KINDS: Final = frozenset({"record", "enum", "array", "map", "union", "fixed"}) | PRIMITIVES
UNRESOLVED: Final = "unresolved"
"""The kind of a type that is used before it is defined, while a text is read."""
MISSING: Final = object()
"""Of a field without a default: null is a default too."""


@dataclass(slots=True, eq=False)
class Field:
    """A field of a record."""

    name: str
    schema: Node
    default: Any = MISSING
    doc: str | None = None
    order: str = "ascending"
    aliases: tuple[str, ...] = ()
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Node:
    """A schema: `kind` is a primitive, record, error, enum, fixed, array, map or union.

    `name` is the full name; `parts` are the items of an array, the values of a map or the branches of a union.
    """

    kind: str
    name: str = ""
    aliases: tuple[str, ...] = ()
    doc: str | None = None
    fields: list[Field] = field(default_factory=list)
    symbols: tuple[str, ...] = ()
    default: Any = MISSING
    size: int = 0
    parts: list[Node] = field(default_factory=list)
    properties: Mapping[str, Any] = field(default_factory=dict)

    @property
    def namespace(self) -> str:
        """Of its name; empty for none."""
        return self.name.rpartition(".")[0]

    @property
    def short_name(self) -> str:
        """The name without its namespace."""
        return self.name.rpartition(".")[2]
