"""Messages with a schema in front: decoded through a registry, which may be away, and with bytes that lie."""

from __future__ import annotations

import base64
import io
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import fastavro
import pytest
from google.protobuf import descriptor_pb2
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.client.connect.errors import CommandError
from kpybroker.client.records.record import Record
from kpybroker.client.schemas import proto, reading, registry
from kpybroker.client.schemas.registry import Patience, Registry
from kpybroker.console.queries.decoding import decoded, parsed_by, with_schemas
from kpybroker.console.queries.filters import Filters, compiled

PLACE = {"type": "record", "name": "Place", "namespace": "geo", "fields": [{"name": "city", "type": "string"}]}
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "total", "type": "double"},
        {"name": "raw", "type": "bytes"},
        {"name": "to", "type": "geo.Place"},
    ],
}
LIST = {"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]}
ENDLESS = {"type": "array", "items": {"type": "record", "name": "E", "fields": [{"name": "n", "type": "null"}]}}
DOUBLED: Any = "null"
"""No byte is 2^40 values: each record holds the one inside it twice."""
for _level in range(40):
    _twice = DOUBLED["name"] if isinstance(DOUBLED, dict) else DOUBLED
    _fields = [{"name": "a", "type": DOUBLED}, {"name": "b", "type": _twice}]
    DOUBLED = {"type": "record", "name": f"Level{_level}", "fields": _fields}
REFERENCE = {"name": "geo.Place", "subject": "place/value", "version": 3}


def descriptor(name: str, message: str, *dependencies: str, field: str | None = None) -> str:
    """As a registry compiles it: a message with a text, or another message, as `name`, and in it one with a number."""
    file = descriptor_pb2.FileDescriptorProto(name=name, syntax="proto3", package="p", dependency=dependencies)
    made = file.message_type.add(name=message)
    types = descriptor_pb2.FieldDescriptorProto
    kind = types.TYPE_MESSAGE if field else types.TYPE_STRING
    made.field.add(name="name", number=1, label=1, type=kind, type_name=field)
    made.nested_type.add(name="Inner").field.add(name="number", number=1, label=1, type=types.TYPE_INT32)
    return base64.b64encode(file.SerializeToString()).decode()


MONEY = "syntax = 'proto3'; package shop; message Money { int64 cents = 1; }"
TEXT = """
syntax = "proto3";
import "shop/money.proto";
import "google/protobuf/timestamp.proto";
message Other {}
message Paid { shop.Money price = 1; google.protobuf.Timestamp at = 2; repeated string tags = 3; }
"""


def as_text(number: int, text: str, *references: dict[str, Any]) -> dict[str, Any]:
    """A registry that does not know `format=serialized`, as Karapace."""
    page = {"schema": text, "schemaType": "PROTOBUF", "references": list(references)}
    return {f"/schemas/ids/{number}{query}": page for query in ("", "?format=serialized")}


PAGES: dict[str, Any] = {
    "/schemas/ids/1": {"schema": json.dumps(ORDER), "references": [REFERENCE]},
    "/subjects/place%2Fvalue/versions/3": {"schema": json.dumps(PLACE)},
    "/schemas/ids/2": {"schema": "{}", "schemaType": "JSON"},
    "/schemas/ids/3": {"schema": "message A {}", "schemaType": "PROTOBUF"},
    "/schemas/ids/3?format=serialized": {
        "schema": descriptor("default", "A", "b.proto", "google/protobuf/timestamp.proto", field=".p.B"),
        "schemaType": "PROTOBUF",
        "references": [{"name": "b.proto", "subject": "b", "version": 1}],
    },
    "/subjects/b/versions/1?format=serialized": {"schema": descriptor("x", "B")},
    **as_text(4, TEXT, {"name": "shop/money.proto", "subject": "money", "version": 1}),
    "/subjects/money/versions/1?format=serialized": {"schema": MONEY, "schemaType": "PROTOBUF"},
    **as_text(12, "syntax = 'proto3'; message A { Missing one = 1; }"),
    **as_text(13, "syntax = 'proto3';", {"name": "../outside.proto", "subject": "money", "version": 1}),
    **as_text(14, "syntax = 'proto3'; // " + "x" * proto.TEXT_BYTES_MAX),
    "/schemas/ids/5": {"schema": json.dumps(LIST)},
    "/schemas/ids/6": {"schema": json.dumps(ENDLESS)},
    "/schemas/ids/7": {"schema": "{", "schemaType": "AVRO"},
    "/schemas/ids/8": {"schema": "?", "schemaType": "THRIFT"},
    "/schemas/ids/9": ["no schema"],
    "/schemas/ids/10": {"schema": json.dumps(ORDER), "references": [{"name": "geo.Place"}]},
    "/schemas/ids/11": {"schema": json.dumps(DOUBLED)},
}


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[str, list[str]]]:
    """The address of a registry, and the requests that it got with their credentials."""
    got: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            got.append(self.path)
            got.append(self.headers.get("Authorization", ""))
            body = json.dumps(PAGES.get(self.path, {"error_code": 40403, "message": "Schema not found"})).encode()
            self.send_response(200 if self.path in PAGES else 404)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", got
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def real(served: tuple[str, list[str]]) -> Registry:
    return Registry(served[0])


def framed(number: int, data: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + data


def avro(value: Any) -> bytes:
    names: dict[str, Any] = {}
    fastavro.parse_schema(PLACE, named_schemas=names)
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(ORDER, named_schemas=names), value)
    return framed(1, out.getvalue())


BOUGHT = {"price": {"cents": "99"}, "at": "1970-01-01T00:00:01Z", "tags": ["x"]}
PAID = avro({"total": 7.5, "raw": b"\xff", "to": {"city": "Oslo"}})


@pytest.mark.parametrize(
    ("data", "kind", "value"),
    [
        (PAID, "avro, schema 1", {"total": 7.5, "raw": "ff", "to": {"city": "Oslo"}}),
        (framed(2, b'{"a": 1}'), "json, schema 2", {"a": 1}),
        (framed(3, b"\x00\x0a\x03\x0a\x01x"), "protobuf, schema 3", {"name": {"name": "x"}}),
        (framed(3, b"\x02\x00\x0a\x03\x0a\x01x"), "protobuf, schema 3", {"name": {"name": "x"}}),
        (framed(3, b"\x04\x00\x00\x08\x07"), "protobuf, schema 3", {"number": 7}),
        (framed(4, b"\x02\x02\x0a\x02\x08\x63\x12\x02\x08\x01\x1a\x01x"), "protobuf, schema 4", BOUGHT),
        (framed(5, b"\x02\x02\x00"), "avro, schema 5", {"next": {"next": {"next": None}}}),
    ],
)
def test_values_are_decoded_by_the_schema_in_front(real: Registry, data: bytes, kind: str, value: Any) -> None:
    for decoder in ("auto", "schema"):
        found = decoded(data, 1000, decoder, with_schemas(Patience(real)))
        assert (found.kind, json.loads(found.text), found.note) == (kind, value, "")


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (framed(99, b"x"), "the registry has no schema 99"),
        (framed(1, b"\x01"), "the bytes are not of schema 1"),
        (framed(3, b"\x01"), "the bytes are not of schema 3"),
        (framed(3, b""), "the bytes are not of schema 3"),
        (framed(12, b"\x00"), '"Missing" is not defined'),
        (framed(13, b"\x00"), "which is no path"),
        (framed(14, b"\x00"), "characters of Protobuf are not compiled"),
        (framed(5, b"\x02" * 100_000 + b"\x00"), "of a schema that contains itself"),
        (framed(6, b"\x80\x80\x80\x80\x80\x02\x00"), "take no bytes"),
        (framed(10, b"x"), "lack their parts"),
        (framed(11, b""), "take no bytes"),
        (framed(7, b"\x00"), "the bytes are not of schema 7"),
        (framed(8, b"\x00"), "schemas of type THRIFT are not known here"),
        (framed(1, b"\x00" * reading.DATA_BYTES_MAX), "are not decoded"),
    ],
)
def test_what_cannot_be_decoded_is_hex_with_a_reason(real: Registry, data: bytes, note: str) -> None:
    found = decoded(data, 100, "auto", with_schemas(real))
    assert found.kind == "hex"
    assert note in found.note


def test_without_a_compiler_the_text_of_a_proto_file_is_hex_with_a_fix(
    served: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proto, "COMPILER", "no_such_package")
    found = decoded(framed(4, b"\x00"), 100, "auto", with_schemas(Registry(served[0])))
    assert found.kind == "hex"
    assert "kpybroker[protobuf]" in found.note


def test_a_compiler_that_hangs_is_ended_and_not_tried_again_at_once(
    served: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proto, "COMPILE_S_MAX", 0.0)
    known = with_schemas(Registry(served[0]))
    assert "does not compile the schema within" in decoded(framed(4, b"\x00"), 100, "auto", known).note
    monkeypatch.undo()
    assert "does not compile the schema within" in decoded(framed(4, b"\x00"), 100, "auto", known).note


def test_other_bytes_are_shown_as_before(real: Registry) -> None:
    known = with_schemas(real)
    assert decoded(b'{"a": 1}', 100, "auto", known).kind == "json"
    assert decoded(b"\0", 100, "auto", known).kind == "text"
    assert "no id of a schema" in decoded(b"text", 100, "schema", known).note


def test_a_schema_is_asked_for_once_and_one_that_is_missing_again_later(served: tuple[str, list[str]]) -> None:
    url, got = served
    now = [0.0]
    asked = Registry(url.replace("//", "//me:pa%2Fss@"), lambda: now[0])
    got.clear()
    for _ in range(3):
        asked.schema(1)
        with pytest.raises(CommandError):
            asked.schema(99)
    assert got[::2] == ["/schemas/ids/1", "/subjects/place%2Fvalue/versions/3", "/schemas/ids/99"]
    assert set(got[1::2]) == {"Basic " + base64.b64encode(b"me:pa/ss").decode()}
    now[0] = registry.AWAY_S
    with pytest.raises(CommandError):
        asked.schema(99)
    assert got[-2] == "/schemas/ids/99"


def test_a_registry_that_is_away_is_left_alone_for_a_while_and_never_shown_with_its_password() -> None:
    now = [0.0]
    away = Registry("http://me:verysecret@127.0.0.1:1", lambda: now[0])
    first = decoded(PAID, 100, "auto", with_schemas(away))
    assert first.kind == "hex"
    assert "127.0.0.1:1" in first.note
    assert "secret" not in first.note
    away._client.close()  # a second request would fail in another way
    assert decoded(PAID, 100, "auto", with_schemas(away)).note == first.note


def test_no_registry_at_that_address(served: tuple[str, list[str]]) -> None:
    assert "is no schema registry's" in decoded(framed(9, b"x"), 100, "auto", with_schemas(Registry(served[0]))).note


def test_a_slow_registry_keeps_a_page_for_so_long_only(real: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "WAIT_S_MAX", -1.0)
    assert "the schema registry is slow" in decoded(PAID, 100, "auto", with_schemas(Patience(real))).note


def test_a_condition_sees_the_decoded_value(real: Registry) -> None:
    record = Record("t", None, PAID, [])
    for path, is_accepted in (("@.to.city == 'Oslo'", True), ("@.total > 8", False)):
        assert compiled(Filters(path=path), parsed_by(real))(record) is is_accepted
    assert not compiled(Filters(path="$.total"), parsed_by(real))(record._replace(value=framed(99, b"")))


@given(number=st.integers(0, 15), data=st.binary(max_size=60))
def test_no_bytes_fail(real: Registry, number: int, data: bytes) -> None:
    assert decoded(framed(number, data), 100, "auto", with_schemas(real)).text is not None
