"""Descriptors without protoc agree with protoc's in what comparing reads."""

from __future__ import annotations

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

from kpybroker.registry.schemas import protobuf
from kpybroker.registry.schemas.protoc import compiled
from tests.registry.schemas.test_protobuf import EVERYTHING, PROTO2

GROUPS = """
syntax = "proto2";
package a.b;
message M {
  optional group G = 1 { repeated M m = 1; }
  oneof o { int32 x = 2; group H = 3 { optional string s = 1; } }
  map<string, N> by_name = 4;
  map<int32, K> kinds = 5;
  enum K { A = 0; }
  message N { optional .a.b.M.K k = 1; optional K l = 2; }
}
"""


def parts(message: DescriptorProto) -> object:
    """What comparing reads, without what depends on the order of the text."""
    fields = sorted(
        (one.number, one.label, one.type, one.type_name, one.proto3_optional, oneof_of(message, one.oneof_index, one))
        for one in message.field
    )
    nested = sorted((one.name, str(parts(one))) for one in message.nested_type)
    return fields, nested, message.options.map_entry


def oneof_of(message: DescriptorProto, index: int, field: FieldDescriptorProto) -> str:
    is_in_one = field.HasField("oneof_index") and not field.proto3_optional
    return str(message.oneof_decl[index].name) if is_in_one else ""


def picture(file: FileDescriptorProto) -> object:
    return file.package, [(one.name, parts(one)) for one in file.message_type]


def test_they_are_those_of_protoc() -> None:
    for text in (EVERYTHING, PROTO2, GROUPS):
        own = protobuf.parse(text, {}, is_new=True).descriptors[-1]
        assert picture(own) == picture(compiled(text, {}).file[-1])
