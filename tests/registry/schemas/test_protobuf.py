"""Protobuf: what is the same file, descriptors of them in base64, references, and what is refused."""

from __future__ import annotations

import base64

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from kpybroker.registry.errors import RegistryError
from kpybroker.registry.schemas import protobuf
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
  optional bytes b = 2 [default = "abc"];
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


def test_a_file_with_everything_is_written_without_comments_and_read_again() -> None:
    parsed = protobuf.parse(EVERYTHING, {}, is_new=True)
    assert "//" not in parsed.canonical + parsed.normalized
    assert protobuf.parse(parsed.canonical, {}).canonical == parsed.canonical
    assert protobuf.parse(parsed.normalized, {}).normalized == parsed.normalized
    assert protobuf.parse(parsed.canonical, {}).normalized == parsed.normalized


def test_proto2_has_labels_defaults_and_extensions() -> None:
    parsed = protobuf.parse(PROTO2, {}, is_new=True)
    assert 'required string a = 1 [default = "x\\"\\\\Ã¤"];' in parsed.canonical, "an escaped byte is a character there"
    assert "extensions 100 to 199, 500 to max;" in parsed.canonical
    assert "extend M {\n  optional int32 more = 100;\n}\n" in parsed.canonical


def test_a_default_of_bytes_that_is_no_word_is_refused() -> None:
    """Confluent's registry prints it without quotes, and reads what it printed."""
    text = PROTO2.replace('"abc"', '"\\001\\377"')
    assert "[default = \x01\xff]" in protobuf.parse(text, {}).canonical
    with pytest.raises(RegistryError):
        protobuf.parse(text, {}, is_new=True)


def test_white_space_and_comments_mean_nothing_and_the_way_a_type_is_named_something() -> None:
    one = 'syntax="proto3";package p;message A{B b=0x1;message B{}} // c'
    written = 'syntax = "proto3";\npackage p;\n\nmessage A {\n  B b = 1;\n\n  message B {}\n}\n'
    parsed, other = protobuf.parse(one, {}), protobuf.parse(written, {})
    assert parsed.canonical == other.canonical == written
    full = protobuf.parse(written.replace("B b", ".p.A.B b"), {})
    assert full.identity.finds(other.identity) is other.identity.finds(full.identity) is False
    assert full.normalized == other.normalized


EARLIER = """syntax = "proto3";

package p;

// What A is.
message A {
  .p.A.B b = 1;
  message B {
  }
}

service S {
  rpc G(.p.A) returns (.p.A);
}
"""
"""As earlier versions of this registry wrote it."""


@pytest.mark.parametrize(
    ("sent", "is_found"),
    [
        (EARLIER, True),
        ('syntax="proto3";package p;message A{B b=1;message B{}}service S{rpc G(A) returns (A){}}', True),
        ('syntax="proto3";package p;message A{B b=2;message B{}}service S{rpc G(A) returns (A){}}', False),
        ('syntax="proto3";package p;message A{B b=1;message B{}}', False),
    ],
)
def test_what_earlier_versions_stored_is_found(sent: str, is_found: bool) -> None:
    assert protobuf.parse(sent, {}).identity.finds(protobuf.parse(EARLIER, {}).identity) is is_found


def test_a_file_without_a_syntax_is_found_where_the_line_was_written() -> None:
    stored = protobuf.parse('syntax = "proto2";\n\nmessage M {\n  optional int32 a = 1;\n}\n', {})
    assert protobuf.parse("message M { optional int32 a = 1; }", {}).identity.finds(stored.identity)
    assert not protobuf.parse("message M { optional int32 b = 1; }", {}).identity.finds(stored.identity)
    printed = protobuf.parse("\nmessage M {\n  optional int32 a = 1;\n}\n", {})
    assert not stored.identity.finds(printed.identity), "the line was never left out"


def test_a_descriptor_in_base64_is_the_same_schema() -> None:
    text = EVERYTHING.replace(' [json_name = "remark"]', "")
    parsed = protobuf.parse(base64.b64encode(descriptor(text)).decode(), {}, is_new=True)
    assert parsed.normalized == protobuf.parse(text, {}).normalized
    serialized = FileDescriptorProto.FromString(base64.b64decode(parsed.formatted("serialized")))
    assert [message.name for message in serialized.message_type] == ["Order"]
    assert parsed.formatted("other") == parsed.canonical


def descriptor(text: str) -> bytes:
    """As protoc's Python modules have it: without names for JSON."""
    file = compiled(text, {}).file[-1]
    file.ClearField("source_code_info")
    for message in (*file.message_type, *(one for each in file.message_type for one in each.nested_type)):
        for field in message.field:
            field.ClearField("json_name")
    return bytes(file.SerializeToString())


def test_types_of_references_are_known() -> None:
    references = {
        "units.proto": 'syntax = "proto3"; message Unit {}',
        "shop/money.proto": 'syntax = "proto3"; package shop; import "units.proto"; message Money { Unit unit = 1; }',
    }
    text = 'syntax = "proto3"; import "other.proto"; message M { shop.Money a = 1; google.type.Date b = 2; }'
    parsed = protobuf.parse(text, references, is_new=True)
    assert ".shop.Money a = 1;" in parsed.normalized
    with pytest.raises(RegistryError) as caught:
        protobuf.parse(text, {"units.proto": references["units.proto"]}, is_new=True)
    assert "shop.Money" in caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        "message M { int32 a = 1; int32 b = 1; }",
        "message M { reserved 1; int32 a = 1; }",
        "enum E { A = 1; }",
        'import "away.proto"; message M { int32 a = 1 [(limits).max = 9]; }',
    ],
)
def test_what_protoc_refuses_is_kept_and_has_no_descriptor(text: str) -> None:
    parsed = protobuf.parse(f'syntax = "proto3"; {text}', {}, is_new=True)
    assert parsed.canonical
    with pytest.raises(RegistryError):
        parsed.formatted("serialized")


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
    "name", ["../x.proto", "/etc/x.proto", "a/../../x.proto", ".", "a\\b", "c:x", "\x00", "x" * 300]
)
def test_an_import_stays_inside_its_directory(name: str) -> None:
    with pytest.raises(RegistryError):
        protobuf.parse('syntax = "proto3";', {name: 'syntax = "proto3";'})


def test_a_reference_without_a_name_is_known_by_its_types() -> None:
    """As by Confluent's registry. protoc cannot be given such a file."""
    parsed = protobuf.parse('import "b.proto"; message M { optional N n = 1; }', {"": "message N {}"}, is_new=True)
    with pytest.raises(RegistryError):
        parsed.formatted("serialized")


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "\x00",
        "\ud800",
        'syntax = "proto4";',
        'syntax = "proto3"; message M { B a = 1; }',
        'syntax = "proto3"; message M { map<double, string> a = 1; }',
        'edition = "2023"; message M { int32 a = 1; }',
        'syntax = "proto3";' + "message M {" * 150,
        'syntax = "proto3";' + "message M {" * 300 + "}" * 300,
        'syntax = "proto3"; option a = ' + "{a:" * 300 + "1" + "}" * 300 + ";",
        'syntax = "proto3"; option a = ' + "[" * 300 + "1" + "]" * 300 + ";",
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


def test_a_file_without_a_syntax_needs_labels(capfd: pytest.CaptureFixture[str]) -> None:
    parsed = protobuf.parse("/* syntax = 1 */ // syntax = 2\nmessage M { required int32 a = 1; }", {}, is_new=True)
    assert parsed.canonical == "\nmessage M {\n  required int32 a = 1;\n}\n"
    assert parsed.formatted("serialized")
    assert capfd.readouterr().err == ""
    with pytest.raises(RegistryError):
        protobuf.parse("message M { int32 a = 1; }", {})


def test_what_protoc_makes_has_comments() -> None:
    files = compiled('syntax = "proto3"; // c\nmessage M {}', {})
    assert files.file[-1].source_code_info.location


def test_a_descriptor_is_made_with_references_that_were_descriptors() -> None:
    other = 'syntax = "proto3"; package o; message O { map<string, O> by_name = 1; }'
    stored = protobuf.parse(base64.b64encode(descriptor(other)).decode(), {}, is_new=True).canonical
    assert "map_entry" in stored
    text = 'syntax = "proto3"; import "o.proto"; message M { o.O o = 1; }'
    serialized = protobuf.parse(text, {"o.proto": stored}, is_new=True).formatted("serialized")
    assert FileDescriptorProto.FromString(base64.b64decode(serialized)).message_type[0].name == "M"
