"""`differences`: from two schemas of one type to the comparison of that type."""

from __future__ import annotations

from kpybroker.registry.compatibility import avro
from kpybroker.registry.compatibility.reasons import Reason
from kpybroker.registry.schemas.avro import AvroSchema
from kpybroker.registry.schemas.model import Parsed


def differences(reader: Parsed, writer: Parsed) -> list[Reason]:
    """Why data of the writer cannot be read with the reader, which is of the same type."""
    if isinstance(reader, AvroSchema) and isinstance(writer, AvroSchema):
        return avro.differences(reader, writer)
    raise AssertionError(f"{reader.kind} is not {writer.kind}")
