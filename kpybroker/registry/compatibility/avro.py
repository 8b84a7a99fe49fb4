"""Avro: whether the reader's schema can read the writer's data, by the rules of Avro's schema resolution.

The verdicts are those of Java's ``SchemaCompatibility``: names are compared without their namespace, aliases of the
reader count, logical types do not. A pair of types that is met again within itself counts as compatible there.
"""

from __future__ import annotations

from typing import Final

from kpybroker.registry.compatibility.reasons import Reason
from kpybroker.registry.errors import invalid_schema
from kpybroker.registry.schemas.avro import AvroSchema
from kpybroker.registry.schemas.avro_tree import MISSING, Field, Node

PROMOTIONS: Final = {
    "long": frozenset({"int"}),
    "float": frozenset({"int", "long"}),
    "double": frozenset({"int", "long", "float"}),
    "string": frozenset({"bytes"}),
    "bytes": frozenset({"string"}),
}
"""Which other primitives a reader takes for its own."""

COMPARISONS_MAX: Final = 100_000
RECORDS: Final = frozenset({"record", "error"})


def differences(reader: AvroSchema, writer: AvroSchema) -> list[Reason]:
    """Why data of the writer cannot be read; empty if they can. Raises RegistryError 42201 for unions of thousands."""
    return _Comparison().compare(reader.root, writer.root, "")


class _Comparison:
    """Remembers pairs of named types: each is compared once, which also ends cycles."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], list[Reason]] = {}

    def compare(self, reader: Node, writer: Node, path: str) -> list[Reason]:
        """The reasons at `path`, as a JSON pointer into the reader."""
        pair = (id(reader), id(writer))
        if pair not in self._known:
            if len(self._known) >= COMPARISONS_MAX:
                raise invalid_schema("it has too many types to be compared")
            self._known[pair] = []
            self._known[pair] = self._compare(reader, writer, path)
        return self._known[pair]

    def _compare(self, reader: Node, writer: Node, path: str) -> list[Reason]:
        if writer.kind == "union":
            return self._from_union(reader, writer, path)
        if reader.kind == "union":
            if any(not self.compare(part, writer, path) for part in reader.parts):
                return []
            text = "The %reader is missing a type of the %writer inside a union"
            return [Reason("MISSING_UNION_BRANCH", path, text, f"reader union lacking writer type: {_shown(writer)}")]
        if reader.kind == writer.kind or {reader.kind, writer.kind} <= RECORDS:
            return self._same_kind(reader, writer, path)
        if writer.kind in PROMOTIONS.get(reader.kind, ()):
            return []
        more = f"reader type: {_shown(reader)} not compatible with writer type: {_shown(writer)}"
        return [Reason("TYPE_MISMATCH", path, "The type in the %reader does not match the %writer", more)]

    def _from_union(self, reader: Node, writer: Node, path: str) -> list[Reason]:
        """Every branch of the writer may occur."""
        found = []
        for number, part in enumerate(writer.parts):
            found += self.compare(reader, part, f"{path}/{number}")
        return found

    def _same_kind(self, reader: Node, writer: Node, path: str) -> list[Reason]:
        if reader.kind in ("array", "map"):
            inner = "items" if reader.kind == "array" else "values"
            return self.compare(reader.parts[0], writer.parts[0], f"{path}/{inner}")
        if not reader.name:
            return []
        found = []
        if reader.short_name != writer.short_name and writer.name not in reader.aliases:
            text = "The name of the type in the %reader is not that of the %writer"
            found.append(Reason("NAME_MISMATCH", f"{path}/name", text, f"expected: {writer.name}"))
        if reader.kind == "fixed":
            return found + _sizes(reader, writer, path)
        if reader.kind == "enum":
            return found + _symbols(reader, writer, path)
        return found + self._fields(reader, writer, path)

    def _fields(self, reader: Node, writer: Node, path: str) -> list[Reason]:
        found = []
        written = {field.name: field for field in writer.fields}
        for number, field in enumerate(reader.fields):
            here = f"{path}/fields/{number}"
            of_writer = _field_of(written, field)
            if of_writer is not None:
                found += self.compare(field.schema, of_writer.schema, f"{here}/type")
            elif field.default is MISSING:
                text = f"The field {field.name} of the %reader has no default value and is missing in the %writer"
                found.append(Reason("READER_FIELD_MISSING_DEFAULT_VALUE", here, text, field.name))
        return found


def _field_of(written: dict[str, Field], field: Field) -> Field | None:
    """The writer's field that the reader's takes: of its name, else of one of its aliases."""
    for name in (field.name, *field.aliases):
        if name in written:
            return written[name]
    return None


def _sizes(reader: Node, writer: Node, path: str) -> list[Reason]:
    if reader.size == writer.size:
        return []
    text = "The size of the fixed type in the %reader is not that of the %writer"
    more = f"expected: {writer.size}, found: {reader.size}"
    return [Reason("FIXED_SIZE_MISMATCH", f"{path}/size", text, more)]


def _symbols(reader: Node, writer: Node, path: str) -> list[Reason]:
    missing = sorted(set(writer.symbols) - set(reader.symbols))
    if not missing or reader.default is not MISSING:
        return []
    text = "The %reader is missing enum symbols of the %writer"
    return [Reason("MISSING_ENUM_SYMBOLS", f"{path}/symbols", text, f"[{', '.join(missing)}]")]


def _shown(node: Node) -> str:
    return node.kind.upper()
