"""Avro: a schema as a tree with full names, its canonical text (that of Java's ``Schema.toString``), and its defaults.

fastavro checks the schema; the tree is made here, since comparing needs aliases, defaults and properties as they were
written. A named type occurs once in the tree and is then referred to by the same object, so trees may have cycles.

Canonical: `{"type": "string"}` is `"string"`, keys are in Java's order, a type's second occurrence is its name.
Normalized: properties that Avro does not know are sorted too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import fastavro

from kpybroker.registry.errors import invalid_schema
from kpybroker.registry.schemas import avro_defaults
from kpybroker.registry.schemas.avro_tree import MISSING, NAMED, PRIMITIVES, Field, Node
from kpybroker.registry.schemas.model import AVRO, DEPTH_MAX, Texts, depth

NAME: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
RESERVED: Final = {
    "record": {"type", "name", "namespace", "doc", "fields", "aliases"},
    "enum": {"type", "name", "namespace", "doc", "symbols", "default", "aliases"},
    "fixed": {"type", "name", "namespace", "doc", "size", "aliases"},
    "array": {"type", "items"},
    "map": {"type", "values"},
    "field": {"name", "type", "doc", "default", "order", "aliases"},
}
"""Keys with a meaning; all others are properties, which are kept."""


class AvroSchema:
    """A parsed schema. `root` is its tree; `known` are the types of its references, which it names only."""

    kind = AVRO

    def __init__(self, root: Node, known: Mapping[str, Node]) -> None:
        self.root = root
        self._known = known

    @property
    def canonical(self) -> str:
        """As Java writes it."""
        return _Writer(set(self._known)).text(self.root)

    @property
    def normalized(self) -> str:
        """With sorted properties."""
        return _Writer(set(self._known), is_sorted=True).text(self.root)

    def formatted(self, form: str) -> str:
        """`resolved` has the types of references in it."""
        return _Writer(set()).text(self.root) if form == "resolved" else self.canonical


def parse(text: str, references: Texts, *, is_new: bool = False) -> AvroSchema:
    """Raises RegistryError 42201. Only of a new schema the defaults are checked: old ones were accepted by others."""
    names: dict[str, Node] = {}
    library: dict[str, Any] = {}
    for referenced in references.values():
        _read(referenced, names, library)
    known = dict(names)
    root = _read(text, names, library)
    if is_new:
        avro_defaults.check(root)
    return AvroSchema(root, known)


def _read(text: str, names: dict[str, Node], library: dict[str, Any]) -> Node:
    """One text; its types are added to both tables of names."""
    if depth(text) > DEPTH_MAX:
        raise invalid_schema(f"it is nested deeper than {DEPTH_MAX} levels")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        name = text.strip()
        if name not in PRIMITIVES:
            raise invalid_schema("the text is no JSON") from None
        value = name
    try:
        fastavro.parse_schema(value, named_schemas=library, _force=True)
    except Exception as error:  # of a library, for a text that anyone sent
        raise invalid_schema(f"{type(error).__name__}: {str(error)[:300]}") from None
    return _Reader(names).node(value, "")


class _Reader:
    """Makes the tree. fastavro has accepted the value, but it is laxer here and there."""

    def __init__(self, names: dict[str, Node]) -> None:
        self._names = names

    def node(self, value: Any, namespace: str) -> Node:
        if isinstance(value, str):
            return self._named(value, namespace)
        if isinstance(value, list):
            return self._union(value, namespace)
        if not isinstance(value, dict) or "type" not in value:
            raise invalid_schema(f"no type in {str(value)[:100]}")
        kind = value["type"]
        if not isinstance(kind, str):
            return self.node(kind, namespace)
        if kind in NAMED:
            return self._named_type(value, kind, namespace)
        if kind in ("array", "map"):
            key = "items" if kind == "array" else "values"
            if key not in value:
                raise invalid_schema(f"an {kind} has no {key}")
            return Node(kind, parts=[self.node(value[key], namespace)], properties=_rest(value, kind))
        if kind in PRIMITIVES:
            return Node(kind, properties={key: one for key, one in value.items() if key != "type"})
        return self._named(kind, namespace)

    def _named(self, name: str, namespace: str) -> Node:
        if name in PRIMITIVES:
            return Node(name)
        found = self._names.get(_full(name, namespace)) or self._names.get(name)
        if found is None:
            raise invalid_schema(f"the type {name} is not defined")
        return found

    def _union(self, branches: list[Any], namespace: str) -> Node:
        node = Node("union", parts=[self.node(branch, namespace) for branch in branches])
        seen = set()
        for part in node.parts:
            if part.kind == "union":
                raise invalid_schema("a union is directly in a union")
            key = part.name or part.kind
            if key in seen:
                raise invalid_schema(f"{key} is twice in a union")
            seen.add(key)
        return node

    def _named_type(self, value: dict[str, Any], kind: str, namespace: str) -> Node:
        name = value.get("name")
        if not isinstance(name, str) or not name:
            raise invalid_schema(f"a type {kind} has no name")
        full = _full(name, namespace if value.get("namespace") is None else str(value["namespace"]))
        if not NAME.fullmatch(full):
            raise invalid_schema(f"{full[:100]} cannot be a name")
        if full in self._names:
            raise invalid_schema(f"the type {full} is defined twice")
        shape = "record" if kind == "error" else kind
        space = full.rpartition(".")[0]
        node = Node(kind, full, tuple(_full(str(one), space) for one in value.get("aliases") or ()))
        node.doc = value.get("doc")
        node.properties = _rest(value, shape)
        self._names[full] = node
        if shape == "record":
            if not isinstance(value.get("fields"), list):
                raise invalid_schema(f"the record {full} has no fields")
            node.fields = [self._field(one, space) for one in value["fields"]]
            if len({one.name for one in node.fields}) < len(node.fields):
                raise invalid_schema(f"two fields of {full} have one name")
        elif kind == "enum":
            node.symbols = tuple(value.get("symbols") or ())
            node.default = value.get("default", MISSING)
            if node.default is not MISSING and node.default not in node.symbols:
                raise invalid_schema(f"the default of the enum {full} is none of its symbols")
            if len(set(node.symbols)) < len(node.symbols):
                raise invalid_schema(f"a symbol is twice in the enum {full}")
        else:
            size = value.get("size")
            if not isinstance(size, int) or size < 0:
                raise invalid_schema(f"the fixed {full} has no size")
            node.size = size
        return node

    def _field(self, value: dict[str, Any], namespace: str) -> Field:
        return Field(
            value["name"],
            self.node(value["type"], namespace),
            value.get("default", MISSING),
            value.get("doc"),
            str(value.get("order", "ascending")).lower(),
            tuple(map(str, value.get("aliases") or ())),
            _rest(value, "field"),
        )


def _full(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _rest(value: Mapping[str, Any], shape: str) -> dict[str, Any]:
    return {key: one for key, one in value.items() if key not in RESERVED[shape]}


class _Writer:
    """Makes the text. `seen` are full names that are written as names only."""

    def __init__(self, seen: set[str], *, is_sorted: bool = False) -> None:
        self._seen = seen
        self._is_sorted = is_sorted

    def text(self, root: Node) -> str:
        return json.dumps(self._value(root, ""), ensure_ascii=False, separators=(",", ":"))

    def _properties(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        return dict(sorted(properties.items())) if self._is_sorted else dict(properties)

    def _value(self, node: Node, space: str) -> Any:
        if node.kind in NAMED:
            return self._named(node, space)
        if node.kind == "union":
            return [self._value(part, space) for part in node.parts]
        if node.kind in ("array", "map"):
            inner = {"items" if node.kind == "array" else "values": self._value(node.parts[0], space)}
            return {"type": node.kind, **inner, **self._properties(node.properties)}
        return {"type": node.kind, **self._properties(node.properties)} if node.properties else node.kind

    def _named(self, node: Node, space: str) -> Any:
        if node.name in self._seen:
            return node.short_name if node.namespace == space else node.name
        self._seen.add(node.name)
        written: dict[str, Any] = {"type": node.kind, "name": node.short_name}
        if node.namespace != space:
            written["namespace"] = node.namespace
        if node.doc is not None:
            written["doc"] = node.doc
        if node.kind == "enum":
            written["symbols"] = list(node.symbols)
            if node.default is not MISSING:
                written["default"] = node.default
        elif node.kind == "fixed":
            written["size"] = node.size
        else:
            written["fields"] = [self._field(one, node.namespace) for one in node.fields]
        written |= self._properties(node.properties)
        if node.aliases:
            prefix = f"{node.namespace}."
            written["aliases"] = [
                alias.removeprefix(prefix) if alias.rpartition(".")[0] == node.namespace else alias
                for alias in node.aliases
            ]
        return written

    def _field(self, one: Field, space: str) -> dict[str, Any]:
        written = {"name": one.name, "type": self._value(one.schema, space)}
        if one.doc is not None:
            written["doc"] = one.doc
        if one.default is not MISSING:
            written["default"] = one.default
        if one.order != "ascending":
            written["order"] = one.order
        if one.aliases:
            written["aliases"] = list(one.aliases)
        return written | self._properties(one.properties)
