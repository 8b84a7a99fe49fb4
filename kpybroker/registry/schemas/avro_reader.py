"""From the JSON of an Avro schema to its tree, by the rules of Java's parser.

- A word of Avro's grammar in a type that has no use for it means nothing (a `name` on a `long`).
- A type may be used before it is defined, within one text, and defined twice if both are equal.
- `doc` and `namespace` that are no text are passed over; other words of a wrong type are refused.

Names of new schemas have ASCII letters, digits and underscores. Those of registered schemas are not checked: other
registries, and earlier versions of this one, were laxer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kpybroker.registry.errors import invalid_schema
from kpybroker.registry.schemas import avro_writer, java_json
from kpybroker.registry.schemas.avro_tree import MISSING, NAMED, PRIMITIVES, UNRESOLVED, Field, Node

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
RESERVED: Final = frozenset(
    {"doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases"}
)
"""Words of Avro's grammar. What a type does not use of them is dropped; all else is a property, and kept."""
RESERVED_OF_ENUM: Final = RESERVED | {"default"}
RESERVED_OF_FIELD: Final = frozenset({"default", "doc", "name", "order", "type", "aliases"})
ORDERS: Final = ("ascending", "descending", "ignore")
SIZE_MAX: Final = 2**31 - 9
"""What Java can have in an array."""
JAVA_DOUBLE: Final = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)")

JAVA_HEX: Final = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?|\.[0-9a-fA-F]+)[pP][+-]?[0-9]{1,5}[fFdD]?")


class Reader:
    """Reads texts that know each other's types: `names` has those of the earlier ones."""

    def __init__(self, names: dict[str, Node], *, is_strict: bool) -> None:
        self._names = names
        self._is_strict = is_strict

    def read(self, value: Any) -> Node:
        """The tree of one text. Raises RegistryError 42201."""
        known = set(self._names)
        root = self._node(value, "")
        if root.kind == UNRESOLVED:
            root = self._found(root)
        self._resolve([root, *(node for name, node in self._names.items() if name not in known)])
        return root

    def _node(self, value: Any, namespace: str) -> Node:
        if isinstance(value, str):
            return self._named(value, namespace)
        if isinstance(value, list):
            node = Node("union", parts=[self._node(branch, namespace) for branch in value])
            _check_union(node)
            return node
        if not isinstance(value, dict):
            raise invalid_schema(f"{_shown(value)} is no type")
        kind = value.get("type")
        if not isinstance(kind, str):
            raise invalid_schema(f"no type in {_shown(value)}: it must be a name")
        if kind in PRIMITIVES:
            return Node(kind, properties=_rest(value, RESERVED))
        if kind in ("array", "map"):
            key = "items" if kind == "array" else "values"
            if key not in value:
                raise invalid_schema(f"the {kind} has no {key}")
            return Node(kind, parts=[self._node(value[key], namespace)], properties=_rest(value, RESERVED))
        if kind in NAMED:
            return self._defined(value, kind, namespace)
        return self._named(kind, namespace)

    def _named(self, name: str, namespace: str) -> Node:
        """A type by its name; one that is not known yet is found when the whole text was read."""
        if name in PRIMITIVES:
            return Node(name)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        return self._names.get(full) or self._names.get(name) or Node(UNRESOLVED, full)

    def _defined(self, value: Mapping[str, Any], kind: str, namespace: str) -> Node:
        name = value.get("name")
        if not isinstance(name, str):
            raise invalid_schema(f"the {kind} {_shown(value)} has no name")
        space = value.get("namespace")
        full = self._full(name, space if isinstance(space, str) else namespace)
        if full in PRIMITIVES:
            raise invalid_schema(f"a type of Avro is called {full}, no other can be")
        node = Node(kind, full, doc=_text(value, "doc"))
        if kind == "enum":
            self._read_enum(node, value)
        elif kind == "fixed":
            node.size = _size(node, value)
        else:
            self._read_fields(node, value)
        node.properties = _rest(value, RESERVED_OF_ENUM if kind == "enum" else RESERVED)
        node.aliases = tuple(dict.fromkeys(self._full(one, node.namespace) for one in _aliases(value)))
        self._define(node)
        return node

    def _define(self, node: Node) -> None:
        for part in node.name.rstrip(".").split("."):
            self._check_name(part, "part of the name")
        known = self._names.setdefault(node.name, node)
        if known is not node and not avro_writer.is_equal(known, node):
            raise invalid_schema(f"the type {node.name[:100]} is defined twice, in different ways")

    def _full(self, name: str, namespace: str) -> str:
        space, _, short = name.rpartition(".")
        self._check_name(short, "name")
        space = space if "." in name else namespace
        return f"{space}.{short}" if space else short

    def _check_name(self, name: str, what: str) -> None:
        if self._is_strict and not NAME.fullmatch(name):
            rule = "letters a-z and A-Z, digits, underscores, and no digit first"
            raise invalid_schema(f"{name[:100]!r} cannot be a {what}: {rule}")

    def _read_enum(self, node: Node, value: Mapping[str, Any]) -> None:
        symbols = value.get("symbols")
        if not isinstance(symbols, list) or not all(isinstance(one, str) for one in symbols):
            raise invalid_schema(f"the symbols of the enum {node.name[:100]} are no list of texts")
        for one in symbols:
            self._check_name(one, "symbol")
        if len(set(symbols)) < len(symbols):
            raise invalid_schema(f"a symbol is twice in the enum {node.name[:100]}")
        node.symbols = tuple(symbols)
        default = _text(value, "default")
        if default is not None:
            node.default = default
            if default not in symbols:
                raise invalid_schema(f"the default of the enum {node.name[:100]} is none of its symbols")

    def _read_fields(self, node: Node, value: Mapping[str, Any]) -> None:
        fields = value.get("fields")
        if not isinstance(fields, list):
            raise invalid_schema(f"the record {node.name[:100]} has no fields")
        node.fields = [self._field(one, node.namespace) for one in fields]
        if len({one.name for one in node.fields}) < len(node.fields):
            raise invalid_schema(f"two fields of the record {node.name[:100]} have one name")

    def _field(self, value: Any, namespace: str) -> Field:
        name = value.get("name") if isinstance(value, dict) else None
        if not isinstance(name, str):
            raise invalid_schema(f"the field {_shown(value)} has no name")
        if "type" not in value:
            raise invalid_schema(f"the field {name[:100]} has no type")
        schema = self._node(value["type"], namespace)
        order = value.get("order", "ascending")
        if not isinstance(order, str) or order.lower() not in ORDERS:
            raise invalid_schema(f"the order of the field {name[:100]} is none of {', '.join(ORDERS)}")
        default = value.get("default", MISSING)
        if schema.kind in ("float", "double") and isinstance(default, str):
            default = _java_double(name, default)
        self._check_name(name, "name of a field")
        return Field(
            name,
            schema,
            default,
            _text(value, "doc"),
            order.lower(),
            tuple(dict.fromkeys(_aliases(value))),
            _rest(value, RESERVED_OF_FIELD),
        )

    def _found(self, node: Node) -> Node:
        found = self._names.get(node.name)
        if found is None:
            raise invalid_schema(f"the type {node.name[:100]} is not defined")
        return found

    def _resolve(self, waiting: list[Node]) -> None:
        """Put the types where they were used before they were defined."""
        seen: set[int] = set()
        while waiting:
            node = waiting.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            node.parts = [self._found(one) if one.kind == UNRESOLVED else one for one in node.parts]
            for field in node.fields:
                field.schema = self._found(field.schema) if field.schema.kind == UNRESOLVED else field.schema
            if node.kind == "union":
                _check_union(node)
            waiting += [*node.parts, *(field.schema for field in node.fields)]


def _check_union(node: Node) -> None:
    seen = set()
    for part in node.parts:
        key = (part.name or part.kind) if part.kind != UNRESOLVED else id(part)
        if part.kind == "union":
            raise invalid_schema("a union is directly in a union")
        if key in seen:
            raise invalid_schema(f"{str(key)[:100]} is twice in a union")
        seen.add(key)


def _size(node: Node, value: Mapping[str, Any]) -> int:
    size = value.get("size")
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= SIZE_MAX:
        raise invalid_schema(f"the fixed {node.name[:100]} has no size, which is a number from 0 to {SIZE_MAX}")
    return size


def _java_double(name: str, text: str) -> float:
    """Java takes texts for defaults of these types."""
    found = text.strip()
    if JAVA_HEX.fullmatch(found):
        return float.fromhex(found.rstrip("fFdD"))
    if not JAVA_DOUBLE.fullmatch(found):
        raise invalid_schema(f"the default of the field {name[:100]} is no number")
    return float(found if found.endswith(("NaN", "Infinity")) else found.rstrip("fFdD"))


def _text(value: Mapping[str, Any], key: str) -> str | None:
    found = value.get(key)
    return found if isinstance(found, str) else None


def _aliases(value: Mapping[str, Any]) -> Iterable[str]:
    found = value.get("aliases", [])
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise invalid_schema(f"the aliases {_shown(found)} are no list of texts")
    return found


def _rest(value: Mapping[str, Any], reserved: frozenset[str]) -> dict[str, Any]:
    return {key: one for key, one in value.items() if key not in reserved}


def _shown(value: Any) -> str:
    return java_json.dumps(value)[:100]
