"""`CONFLUENT`: the .proto files of Confluent that need no reference, by the name of their import.

Fields may carry documentation, parameters and tags as options; a decimal is a number of any size with a scale. The
texts say the same as Confluent's files: names, numbers and types.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_OPTIONS: Final = {
    "FileOptions": "file_meta",
    "MessageOptions": "message_meta",
    "FieldOptions": "field_meta",
    "EnumOptions": "enum_meta",
    "EnumValueOptions": "enum_value_meta",
}
_META_NUMBER: Final = 1088
_META: Final = f"""syntax = "proto3";
package confluent;
import "google/protobuf/descriptor.proto";
option java_package = "io.confluent.protobuf";
option java_outer_classname = "MetaProto";
message Meta {{
  string doc = 1;
  map<string, string> params = 2;
  repeated string tags = 3;
}}
{"".join(f"extend google.protobuf.{kind} {{ Meta {name} = {_META_NUMBER}; }} " for kind, name in _OPTIONS.items())}
"""
_DECIMAL: Final = """syntax = "proto3";
package confluent.type;
option java_package = "io.confluent.protobuf.type";
option java_outer_classname = "DecimalProto";
option java_multiple_files = true;
message Decimal {
  bytes value = 1;
  uint32 precision = 2;
  int32 scale = 3;
}
"""
CONFLUENT: Final = {"confluent/meta.proto": _META, "confluent/type/decimal.proto": _DECIMAL}


def used(texts: Iterable[str]) -> dict[str, str]:
    """Those that some of these files may import."""
    whole = list(texts)
    return {name: text for name, text in CONFLUENT.items() if any(name in one for one in whole)}
