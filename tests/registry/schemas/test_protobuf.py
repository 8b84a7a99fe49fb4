"""Protobuf: one text for equal files, descriptors of them in base64, imports, and what protoc refuses."""

from __future__ import annotations

import base64

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from kpybroker.registry.errors import RegistryError
from kpybroker.registry.schemas import protobuf
from kpybroker.registry.schemas.proto_text import Unprintable, text_of
from kpybroker.registry.schemas.protoc import compiled

EVERYTHING = """\
// The file.
syntax = "proto3";

package shop.v1;

import "google/protobuf/timestamp.proto";

option java_package = "shop.\\"v1\\"";
option optimize_for = SPEED;
option java_multiple_files = true;

enum State {
  option allow_alias = true;
  NEW = 0;
  // An alias.
  FRESH = 0 [deprecated = true];
  OLD = -1;
  reserved 5, 7 to 9, 100 to max;
  reserved "GONE";
}

// An order.
// It has two lines of comment.
message Order {
  option deprecated = true;
  reserved 20, 30 to 40, 50 to max;
  reserved "gone", "lost";
  // Its number.
  int64 id = 1 [jstype = JS_STRING];
  optional string note = 2 [json_name = "remark"];
  repeated .shop.v1.Order.Line lines = 3;
  map<string, .shop.v1.State> states = 4;
  .google.protobuf.Timestamp at = 5;
  oneof payment {
    // By card.
    string card = 6;
    bytes cash = 7;
  }
  repeated int32 numbers = 8 [packed = false];
  enum Kind {
    NONE = 0;
  }
  message Line {
    double price = 1;
  }
}

service Orders {
  // Asks.
  rpc Get(.shop.v1.Order) returns (stream .shop.v1.Order) {
    option deprecated = true;
  }
  rpc Put(stream .shop.v1.Order) returns (.shop.v1.Order);
}
"""

PROTO2 = """\
syntax = "proto2";

message M {
  extensions 100 to 199, 500 to max;
  required string a = 1 [default = "x\\"\\\\\\303\\244"];
  optional bytes b = 2 [default = "\\001\\377"];
  optional double c = 3 [default = inf];
  optional E d = 4 [default = TWO];
  optional bool e = 5 [default = true];
  enum E {
    ONE = 1;
    TWO = 2;
  }
}

extend M {
  optional int32 more = 100;
}
"""


def test_a_file_with_everything_is_written_as_it_is_read() -> None:
    parsed = protobuf.parse(EVERYTHING, {}, is_new=True)
    assert parsed.canonical == EVERYTHING
    assert "//" not in parsed.normalized
    assert protobuf.parse(parsed.normalized, {}).canonical == parsed.normalized


def test_proto2_has_labels_defaults_and_extensions() -> None:
    parsed = protobuf.parse(PROTO2, {}, is_new=True)
    assert text_of(parsed.file) == parsed.normalized
    assert protobuf.parse(parsed.canonical, {}).file == parsed.file
    assert 'default = "x\\"\\\\\\303\\244"' in parsed.canonical


def test_white_space_and_the_way_a_type_is_named_mean_nothing() -> None:
    one = 'syntax="proto3";package p;message A{B b=1;message B{}}'
    other = 'syntax = "proto3";\n\npackage p;\n\nmessage A {\n  .p.A.B b = 0x1;\n  message B {\n  }\n}\n'
    assert protobuf.parse(one, {}).canonical == protobuf.parse(other, {}).canonical == other.replace("0x1", "1")


def test_a_descriptor_in_base64_is_the_same_schema() -> None:
    file = protobuf.parse(EVERYTHING, {}).file
    sent = base64.b64encode(file.SerializeToString()).decode()
    parsed = protobuf.parse(sent, {}, is_new=True)
    assert parsed.canonical == protobuf.parse(EVERYTHING, {}).normalized
    serialized = FileDescriptorProto.FromString(base64.b64decode(parsed.formatted("serialized")))
    assert [message.name for message in serialized.message_type] == ["Order"]
    assert parsed.formatted("other") == parsed.canonical


@pytest.mark.parametrize(
    "text",
    [
        'edition = "2023"; message M { int32 a = 1; }',
        'syntax = "proto2"; message M { optional group G = 1 { optional int32 a = 1; } }',
        'syntax = "proto3"; import "google/protobuf/descriptor.proto";'
        "extend google.protobuf.FieldOptions { string tag = 50000; } message M { int32 a = 1 [(tag) = \"x\"]; }",
    ],
)  # fmt: skip
def test_what_cannot_be_written_in_one_way_stays_as_it_is(text: str) -> None:
    parsed = protobuf.parse(text, {}, is_new=True)
    assert parsed.canonical == parsed.normalized == text
    with pytest.raises(Unprintable):
        text_of(parsed.file)
    with pytest.raises(RegistryError) as caught:
        protobuf.parse(base64.b64encode(parsed.file.SerializeToString()).decode(), {})
    assert "register the .proto file" in caught.value.message


def test_imports_are_found_by_their_name() -> None:
    references = {
        "units.proto": 'syntax = "proto3"; message Unit {}',
        "shop/money.proto": 'syntax = "proto3"; package shop; import "units.proto"; message Money { Unit unit = 1; }',
    }
    text = (
        'syntax = "proto3"; import "shop/money.proto"; import "google/type/date.proto"; message M { shop.Money a = 1; }'
    )
    parsed = protobuf.parse(text, references, is_new=True)
    assert [file.name for file in parsed.files.file][-1] == "schema.proto"
    with pytest.raises(RegistryError) as caught:
        protobuf.parse(text, {"units.proto": references["units.proto"]}, is_new=True)
    assert "shop/money.proto" in caught.value.message


def test_files_of_confluent_need_no_reference() -> None:
    options = '[(confluent.field_meta).doc = "x", (confluent.field_meta).tags = "PII"]'
    text = (
        'syntax = "proto3"; import "confluent/meta.proto"; import "confluent/type/decimal.proto"; '
        f"message M {{ confluent.type.Decimal a = 1; string b = 2 {options}; }}"
    )
    files = {file.name: file for file in compiled(text, {}).file}
    decimal = files["confluent/type/decimal.proto"].message_type[0]
    assert [(one.name, one.number) for one in decimal.field] == [("value", 1), ("precision", 2), ("scale", 3)]
    assert [one.number for one in files["confluent/meta.proto"].extension] == [1088] * 5
    own = 'syntax = "proto3"; package confluent.type; message Decimal { string mine = 1; }'
    given = compiled(text.replace(f" string b = 2 {options};", ""), {"confluent/type/decimal.proto": own})
    mine = [file.message_type[0].field[0].name for file in given.file if file.name.endswith("decimal.proto")]
    assert mine == ["mine"], "a reference goes first"
    assert protobuf.parse(text, {}, is_new=True).formatted("serialized")


@pytest.mark.parametrize(
    "name", ["../x.proto", "/etc/x.proto", "a/../../x.proto", "", ".", "a\\b", "c:x", "\x00", "x" * 300]
)
def test_an_import_stays_inside_its_directory(name: str) -> None:
    with pytest.raises(RegistryError):
        protobuf.parse('syntax = "proto3";', {name: 'syntax = "proto3";'})


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "\x00",
        "\ud800",
        'syntax = "proto4";',
        'syntax = "proto3"; message M { B a = 1; }',
        'syntax = "proto3"; message M { int32 a = 1; int32 b = 1; }',
        'syntax = "proto3"; import "nowhere.proto";',
        'syntax = "proto3"; import "schema.proto";',
        'syntax = "proto3";' + "message M {" * 150,
        "{" * 100_000,
        base64.b64encode(b"\x0a\x01x").decode(),
    ],
    ids=lambda text: ascii(text[:40]),
)
def test_what_is_no_file_is_refused(text: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RegistryError) as caught:
        protobuf.parse(text, {}, is_new=True)
    assert caught.value.code == 42201
    assert len(caught.value.message) < 600
    assert capfd.readouterr().err == ""


def test_a_file_without_a_syntax_is_proto2(capfd: pytest.CaptureFixture[str]) -> None:
    parsed = protobuf.parse("/* syntax = 1 */ // syntax = 2\nmessage M { required int32 a = 1; }", {}, is_new=True)
    assert parsed.canonical.startswith('syntax = "proto2";')
    assert capfd.readouterr().err == ""


def test_what_protoc_makes_has_comments() -> None:
    files = compiled('syntax = "proto3"; // c\nmessage M {}', {})
    assert files.file[-1].source_code_info.location
