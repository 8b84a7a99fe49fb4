"""Avro values as JSON, with a registry that is a few lines of HTTP. test_suggestion.py has the real one, and Spark."""

from __future__ import annotations

import io
import json
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import fastavro
import pytest

from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.runtime import avro

FIELDS: list[dict[str, Any]] = [{"name": "user", "type": "string"}, {"name": "count", "type": "int"}]
FIRST = {"type": "record", "name": "Line", "fields": FIELDS}
ADDED = {"name": "note", "type": ["null", "string"], "default": None}
SECOND = {**FIRST, "fields": [*FIELDS, ADDED]}
LOGICAL = {
    "type": "record",
    "name": "Logical",
    "fields": [
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "raw", "type": "bytes"},
    ],
}
OUTER = {"type": "record", "name": "Outer", "fields": [{"name": "line", "type": "Line"}]}
RESPONSES: dict[str, Any] = {
    "/subjects": [],
    "/schemas/ids/1": {"schema": json.dumps(FIRST)},
    "/schemas/ids/2": {"schema": json.dumps(SECOND)},
    "/schemas/ids/3": {"schema": json.dumps(LOGICAL)},
    "/schemas/ids/4": {"schema": "{}", "schemaType": "JSON"},
    "/schemas/ids/5": {
        "schema": json.dumps(OUTER),
        "references": [{"name": "Line", "subject": "lines", "version": 1}],
    },
    "/subjects/lines/versions/1": {"schema": json.dumps(FIRST)},
}


class Registry(ThreadingHTTPServer):
    """Has `RESPONSES`; `asked` are the paths of requests, `logins` their Authorization."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.logins: list[str | None] = []
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Registry

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.server.logins.append(self.headers["Authorization"])
        response = RESPONSES.get(self.path)
        body = json.dumps(response if response is not None else {"error_code": 40403}).encode()
        self.send_response(200 if response is not None else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture
def registry() -> Iterator[Registry]:
    server = Registry()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def encode(schema: dict[str, Any], schema_id: int, row: dict[str, Any]) -> bytes:
    out = io.BytesIO(b"\0" + schema_id.to_bytes(4, "big"))
    out.seek(0, 2)
    fastavro.schemaless_writer(out, schema, row)
    return out.getvalue()


def decoded(value: bytes, registry: Registry) -> Any:
    text, reason = avro.decode(value, f"http://{registry.place}")
    assert reason is None
    assert text is not None
    return json.loads(text)


def test_each_record_is_read_with_the_schema_of_its_writer(registry: Registry) -> None:
    row = {"user": "æ", "count": 3}
    assert decoded(encode(FIRST, 1, row), registry) == row
    assert decoded(encode(SECOND, 2, {**row, "note": "new"}), registry) == {**row, "note": "new"}
    assert decoded(encode(FIRST, 1, row), registry) == row
    assert registry.asked == ["/schemas/ids/1", "/schemas/ids/2"], "a schema is asked for once"


def test_logical_types_are_as_json_has_them(registry: Registry) -> None:
    row = {"at": datetime(2024, 3, 5, 8, tzinfo=UTC), "price": Decimal("12.50"), "raw": b"\xff"}
    expected = {"at": "2024-03-05T08:00:00+00:00", "price": "12.50", "raw": "/w=="}
    assert decoded(encode(LOGICAL, 3, row), registry) == expected


def test_a_type_of_another_subject_is_found(registry: Registry) -> None:
    line = {"user": "a", "count": 1}
    whole = {**OUTER, "fields": [{"name": "line", "type": FIRST}]}
    assert decoded(encode(whole, 5, {"line": line}), registry) == {"line": line}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "not Avro with the id of a schema"),
        (b"", "not Avro with the id of a schema"),
        (b'{"user": "a"}', "not Avro with the id of a schema"),
        (encode(FIRST, 99, {"user": "a", "count": 1}), "the schema registry has no Avro schema 99"),
        (encode(FIRST, 4, {"user": "a", "count": 1}), "the schema registry has no Avro schema 4"),
        (encode(FIRST, 1, {"user": "a", "count": 1})[:-1], "not the data of schema 1"),
        (encode(FIRST, 1, {"user": "a", "count": 1}) + b"x", "more bytes than schema 1 has"),
    ],
)
def test_what_cannot_be_read_has_a_reason(registry: Registry, value: bytes | None, reason: str) -> None:
    assert avro.decode(value, f"http://{registry.place}") == (None, reason)


def test_a_login_is_sent_and_never_shown(registry: Registry) -> None:
    avro.check(f"http://alice:a%40b@{registry.place}")
    assert registry.logins == ["Basic YWxpY2U6YUBi"]
    with pytest.raises(PipelineError) as refused:
        avro.check(f"http://alice:secret@{registry.place}/elsewhere")
    assert "secret" not in str(refused.value)


def test_a_registry_that_is_away_is_an_error_and_not_a_dead_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"http://127.0.0.1:{taken.getsockname()[1]}"
    monkeypatch.setattr(avro, "PAUSE_S", 0.0)
    with pytest.raises(PipelineError, match="schema registry does not respond") as from_check:
        avro.check(place)
    with pytest.raises(PipelineError, match="schema registry does not respond"):
        avro.decode(encode(FIRST, 1, {"user": "a", "count": 1}), place)
    assert str(from_check.value).splitlines()[1] == f"fix: {avro.FIX}"


def test_the_two_options_need_each_other() -> None:
    assert not avro.contradictions("json", None)
    assert not avro.contradictions("avro", "https://registry:8081")
    for value_format, registry in (("avro", None), ("json", "http://a:1"), ("avro", "a:1")):
        assert len(avro.contradictions(value_format, registry)) == 1
