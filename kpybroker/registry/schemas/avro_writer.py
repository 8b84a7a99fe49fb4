"""From the tree of an Avro schema to its texts: `Form.CANONICAL` is Java's ``Schema.toString``, which is stored.

`Form.NORMALIZED` is what Confluent's registry reads again for `normalize=true`: full names, no empty `doc`, `error` as
`record`, aliases and properties sorted, those of a logical type in front, and defaults as values of their types.
`Form.IDENTITY` is one text for all that Java finds equal: with aliases and properties sorted.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Any

from kpybroker.registry.schemas import avro_defaults, avro_logical, java_json
from kpybroker.registry.schemas.avro_tree import KINDS, MISSING, NAMED, UNRESOLVED, Field, Node


class Form(enum.Enum):
    """How a tree is written."""

    CANONICAL = enum.auto()
    NORMALIZED = enum.auto()
    IDENTITY = enum.auto()


def value_of(root: Node, form: Form, known: Iterable[str] = ()) -> Any:
    """`known` are full names of types that are named only. Raises RegistryError 42201 for a default of another type."""
    return _Writer(form, set(known)).value(root, "")


def is_equal(one: Node, other: Node) -> bool:
    """As Java compares types: `doc` and aliases do not count. What is not defined yet is equal to nothing.

    Types within them are equal if their names are: two of one name were compared when the second was read.
    """
    writers = [_Writer(Form.IDENTITY, set(), has_meta=False) for _ in range(2)]
    values = [writer.value(node, "") for writer, node in zip(writers, (one, other), strict=True)]
    return not any(writer.is_unresolved for writer in writers) and java_json.dumps(values[0]) == java_json.dumps(
        values[1]
    )


class _Writer:
    """Makes the JSON. `seen` are full names that are written as names from now on.

    Without `has_meta` only the first named type is written whole, and without what describes it.
    """

    def __init__(self, form: Form, seen: set[str], *, has_meta: bool = True) -> None:
        self._form = form
        self._seen = seen
        self._has_meta = has_meta
        self.is_unresolved = False

    def value(self, node: Node, space: str) -> Any:
        """Of a type that is used in a name space."""
        if node.kind in NAMED:
            return self._named(node, space)
        if node.kind == "union":
            return [self.value(part, space) for part in node.parts]
        if node.kind in ("array", "map"):
            inner = {"items" if node.kind == "array" else "values": self.value(node.parts[0], space)}
            return {"type": node.kind, **inner, **self._properties(node.properties)}
        if node.kind == UNRESOLVED:
            self.is_unresolved = True
        return {"type": node.kind, **self._properties(node.properties, node)} if node.properties else node.kind

    def _properties(self, properties: Mapping[str, Any], of: Node | None = None) -> dict[str, Any]:
        if self._form is Form.CANONICAL:
            return dict(properties)
        sorted_ones = {key: properties[key] for key in sorted(properties, key=java_json.order)}
        if self._form is Form.IDENTITY:
            return {key: java_json.with_order(one) for key, one in sorted_ones.items()}
        sorted_ones = {key: avro_defaults.property_value(one) for key, one in sorted_ones.items()}
        front = avro_logical.properties(of) if of is not None else ()
        return {**{key: sorted_ones[key] for key in front}, **sorted_ones}

    def _named(self, node: Node, space: str) -> Any:
        if node.name in self._seen or (self._seen and not self._has_meta):
            return self._reference(node.name, space)
        self._seen.add(node.name)
        is_normal = self._form is Form.NORMALIZED
        kind = "record" if self._form is not Form.CANONICAL and node.kind == "error" else node.kind
        written: dict[str, Any] = {"type": kind, "name": node.name if is_normal else node.short_name}
        if node.namespace != space and not is_normal:
            written["namespace"] = node.namespace
        if self._has_meta and node.doc is not None and not (is_normal and not node.doc):
            written["doc"] = node.doc
        if node.kind == "enum":
            written["symbols"] = list(node.symbols)
            if node.default is not MISSING and self._has_meta:
                written["default"] = node.default
        elif node.kind == "fixed":
            written["size"] = node.size
        else:
            written["fields"] = [self._field(one, node.namespace) for one in node.fields]
        written |= self._properties(node.properties, node if node.kind == "fixed" else None)
        if node.aliases and self._has_meta:
            written["aliases"] = self._aliases(node)
        return written

    def _aliases(self, node: Node) -> list[str]:
        if self._form is Form.CANONICAL:
            return [self._reference(one, node.namespace) for one in node.aliases]
        full = [f".{one}" if node.namespace and "." not in one else one for one in node.aliases]
        return sorted(full, key=java_json.order)

    def _reference(self, name: str, space: str) -> str:
        """A name within a name space: short where both agree, unless a kind of types has that name."""
        own, _, short = name.rpartition(".")
        is_short = own and own == space and short not in KINDS and self._form is not Form.NORMALIZED
        return short if is_short else name

    def _field(self, one: Field, space: str) -> dict[str, Any]:
        written = {"name": one.name, "type": self.value(one.schema, space)}
        if self._has_meta and one.doc is not None:
            written["doc"] = one.doc
        default = avro_defaults.normal(one) if self._form is Form.NORMALIZED else one.default
        if default is not MISSING:
            written["default"] = java_json.with_order(default) if self._form is Form.IDENTITY else default
        if one.order != "ascending":
            written["order"] = one.order
        if one.aliases and self._has_meta:
            is_sorted = self._form is not Form.CANONICAL
            written["aliases"] = sorted(one.aliases, key=java_json.order) if is_sorted else list(one.aliases)
        return written | self._properties(one.properties)
