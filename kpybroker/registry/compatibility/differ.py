"""`differences`: from two schemas of one type to the comparison of that type."""

from __future__ import annotations

from kpybroker.registry.compatibility import avro, json_schema, protobuf
from kpybroker.registry.compatibility.reasons import Reason
from kpybroker.registry.schemas.avro import AvroSchema
from kpybroker.registry.schemas.json_schema import JsonSchema
from kpybroker.registry.schemas.model import Parsed
from kpybroker.registry.schemas.protobuf import ProtobufSchema


def differences(reader: Parsed, writer: Parsed) -> list[Reason]:
    """Why data of the writer cannot be read with the reader, which is of the same type."""
    if isinstance(reader, AvroSchema) and isinstance(writer, AvroSchema):
        return avro.differences(reader, writer)
    if isinstance(reader, JsonSchema) and isinstance(writer, JsonSchema):
        return json_schema.differences(reader, writer)
    if isinstance(reader, ProtobufSchema) and isinstance(writer, ProtobufSchema):
        return protobuf.differences(reader, writer)
    raise AssertionError(f"{reader.kind} is not {writer.kind}")
