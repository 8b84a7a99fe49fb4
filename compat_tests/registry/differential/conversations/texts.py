"""Texts of the three types that a registry takes or refuses: what is registered, and what the response is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from compat_tests.registry.differential.conversations.schemas import body
from compat_tests.registry.differential.step import Conversation, Step, conversation

HEAD: Final = 'syntax = "proto3";\npackage w;\n\n'
PROTOBUF: Final = (
    "message M {\n  oneof o {\n    option (exclusive) = true;\n    int32 a = 1;\n  }\n}\n",
    "message M {\n  int32 a = 1 [(limits).max = 9];\n}\n",
    'message M {\n  option (table) = "m";\n\n  int32 a = 1;\n}\n',
    'option (team) = "t";\n\nmessage M {\n}\n',
    'enum E {\n  A = 0 [(label) = "a"];\n}\n',
    'message M {\n}\n\nservice S {\n  rpc C (M) returns (M) {\n    option (path) = "/c";\n  }\n}\n',
    'import "rules/rules.proto";\n\nmessage M {\n  int32 a = 1 [(rules.max) = 3];\n}\n',
    'import "away.proto";\n\nmessage M {\n}\n',
    "message M {\n  google.protobuf.Duration d = 1;\n}\n",
    "message M {\n  google.type.Money m = 1;\n}\n",
    "message M {\n  Nothing n = 1;\n}\n",
    "message M {\n",
    "message M {\n  int32 a = 1;\n  int32 b = 1;\n}\n",
    "message M {\n  reserved 1;\n\n  int32 a = 1;\n}\n",
    "enum E {\n  A = 1;\n}\n",
    "enum E {\n  A = 0;\n}\n\nenum F {\n  A = 0;\n}\n",
    "message M {\n  int32 a_b = 1;\n  int32 aB = 2;\n}\n",
    "message M {\n  int32 a = 19000;\n}\n",
    "message M {\n  int32 a = 0;\n}\n",
    "message M {\n  int32 a = 536870912;\n}\n",
    "message M {\n  int32 a = 1;\n  int32 a = 2;\n}\n",
    "message M {\n}\n\nmessage M {\n}\n",
    'import "buf/validate/validate.proto";\n\n'
    "message M {\n  string id = 1 [(buf.validate.field).string.uuid = true];\n}\n",
    'import "google/api/annotations.proto";\n\nmessage M {\n}\n\n'
    "service S {\n  rpc C (M) returns (M) {\n"
    '    option (google.api.http) = {\n      get: "/v1/c"\n    };\n  }\n}\n',
    'import "confluent/meta.proto";\n\nmessage E {\n  string a = 1 [(confluent.field_meta).doc = "x"];\n}\n',
    'import "confluent/type/decimal.proto";\n\nmessage E {\n  confluent.type.Decimal d = 1;\n}\n',
    'import "google/type/money.proto";\n\nmessage E {\n  google.type.Money d = 1;\n}\n',
    "message M {\n  map<string, Nothing> m = 1;\n}\n",
    "message M {\n  map<double, string> m = 1;\n}\n",
    "service S {\n  rpc C (No) returns (No);\n}\n",
    "message M {\n  required int32 a = 1;\n}\n",
    "message M {\n  int32 a = 1 [default = 3];\n}\n",
    "message M {\n  extensions 100 to 199;\n}\n",
    "extend google.protobuf.FieldOptions {\n  string x = 50000;\n}\n",
    "message M {\n  .w.M a = 1;\n}\n",
    "message M {\n  int32 a = 1 [deprecated = true];\n}\n",
    "message M {\n  int32 1a = 1;\n}\n",
    "x",
    "",
    ";",
)
AVRO: Final = (
    '"int"',
    "int",
    '"nothing"',
    "1",
    "null",
    "[]",
    '["int","int"]',
    '["null","int"]',
    '{"type":"long","name":"when"}',
    '{"type":"array","items":"int"}',
    '{"type":"array"}',
    '{"type":"record","name":"R"}',
    '{"type":"record","name":"R","fields":[]}',
    '{"type":"record","name":"a-b","fields":[]}',
    '{"type":"record","name":"1a","fields":[]}',
    '{"type":"record","name":".W","fields":[]}',
    '{"type":"record","name":"R","fields":[{"name":"x-y","type":"int"}]}',
    '{"type":"record","name":"R","fields":[{"name":"","type":"int"}]}',
    '{"type":"record","name":"R","fields":[{"name":"f","type":"int","default":"x"}]}',
    '{"type":"record","name":"R","fields":[{"name":"f","type":"int"},{"name":"f","type":"int"}]}',
    '{"type":"record","name":"string","fields":[]}',
    '{"type":"record","name":"R","fields":[{"name":"f","type":"int","order":"sideways"}]}',
    '{"type":"record","name":"R","doc":1,"fields":[]}',
    '{"type":"record","name":"R","aliases":1,"fields":[]}',
    '{"type":"enum","name":"E","symbols":["A","A"]}',
    '{"type":"enum","name":"E","symbols":["A"],"default":"B"}',
    '{"type":"enum","name":"E","symbols":["1"]}',
    '{"type":"fixed","name":"F","size":-1}',
    '{"type":"fixed","name":"F","size":"x"}',
    '{"type":"fixed","name":"F","size":4}',
    '{"type":"bytes","logicalType":"decimal","precision":2,"scale":5}',
    '{"type":"int","logicalType":"date"}',
    '{"type":"record","name":"R","fields":[{"name":"d","type":"double","default":"NaN"}]}',
    '/* c */ {"type":"record","name":"R","fields":[]}',
    '{"type":"record","name":"R","fields":[{"name":"x","type":"S"},{"name":"y","type":{"type":"record","name":"S","fields":[]}}]}',
    '{"type":"record","name":"R","fields":[{"name":"x","type":"R"}]}',
    '{"type":"map","values":"int"}',
    '{"type":"map"}',
    '{"type":"error","name":"R","fields":[]}',
    '{"type":"record","name":"R","fields":{}}',
    "{",
    '{"type":',
    '{"type":"record","name":"R","fields":[{"name":"x","type":"double","default":1e400}]}',
)
JSONS: Final = (
    "{}",
    "true",
    "false",
    "1",
    '"x"',
    "[]",
    "{",
    '{"type":"string"}',
    '{"type":"strin"}',
    '{"type":["string","null"]}',
    '{"type":1}',
    '{"properties":1}',
    '{"properties":{"a":1}}',
    '{"required":["a"]}',
    '{"required":"a"}',
    '{"enum":[]}',
    '{"$ref":"#/definitions/a"}',
    '{"$ref":"nowhere.json"}',
    '{"$ref":"http://example.invalid/x"}',
    '{"$schema":"http://json-schema.org/draft-04/schema#","type":"object"}',
    '{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object"}',
    '{"$schema":"http://nowhere.invalid/schema","type":"object"}',
    '{"pattern":"["}',
    '{"minimum":"x"}',
    '{"additionalProperties":1}',
    '{"items":[{"type":"string"}]}',
    '{"oneOf":[]}',
    '{"allOf":[{"type":"string"}]}',
    '{"not":{"type":"string"}}',
    '{"minLength":-1}',
    '{"multipleOf":0.00001}',
    '{"maximum":99.90}',
    '{"type":"object","properties":{"b":{},"a":{}}}',
    '{"description":1}',
    '{"title":"t","type":"object"}',
    "null",
)


def _one(kind: str, text: str) -> Iterable[Step]:
    head = HEAD if kind == "PROTOBUF" and len(text) > 1 else ""
    sent = body(head + text, None if kind == "AVRO" else kind)
    yield Step("POST", "/subjects/NAME/versions", sent)
    yield Step("POST", "/subjects/NAME", sent)
    yield Step("POST", "/subjects/NAME?normalize=true", sent)
    yield Step("POST", "/compatibility/subjects/NAME/versions/latest", sent)
    yield Step("GET", "/subjects/NAME/versions")


CONVERSATIONS: Final[tuple[Conversation, ...]] = (
    *(conversation(f"avro-{number}", _one("AVRO", text)) for number, text in enumerate(AVRO)),
    *(conversation(f"json-{number}", _one("JSON", text)) for number, text in enumerate(JSONS)),
    *(conversation(f"proto-{number}", _one("PROTOBUF", text)) for number, text in enumerate(PROTOBUF)),
)
