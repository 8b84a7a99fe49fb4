"""`parse`: from the name of a type to its parser."""

from __future__ import annotations

from kpybroker.registry.errors import invalid_schema
from kpybroker.registry.schemas import avro, json_schema, protobuf
from kpybroker.registry.schemas.model import KINDS, Parsed, Texts


def parse(kind: str, text: str, references: Texts, *, is_new: bool = False) -> Parsed:
    """Raises RegistryError 42201. `is_new` also checks what earlier registries accepted."""
    match kind:
        case "AVRO":
            return avro.parse(text, references, is_new=is_new)
        case "JSON":
            return json_schema.parse(text, references, is_new=is_new)
        case "PROTOBUF":
            return protobuf.parse(text, references, is_new=is_new)
        case _:
            raise invalid_schema(f"the schema type {kind[:50]} is not known; {', '.join(KINDS)} are")
