"""What people and programs hand to the tools: lines to produce, offsets, faults, schemas, requests for metrics."""

from __future__ import annotations

import json
from collections.abc import Iterable

from kpybroker.broker.requests.served.apis import SERVED
from kpybroker.client.records import json_lines, offset_files
from kpybroker.client.records.lines import LineOptions, parser
from kpybroker.client.records.offsets import BadOffset, parse_span
from kpybroker.client.records.record import Record
from kpybroker.client.records.template import BadTemplate, compile_template
from kpybroker.client.schemas.avro_json import AvroJson, BadValue
from kpybroker.client.schemas.descriptors import read_indexes
from kpybroker.control.rules.errors import FaultError
from kpybroker.control.rules.parse import parse as parse_fault
from kpybroker.metrics.jolokia.names import parse_name
from kpybroker.metrics.jolokia.requests import RequestError, from_get, from_post
from kpybroker.registry.api.bodies import loaded
from kpybroker.registry.errors import RegistryError
from kpybroker.registry.schemas import avro, java_json, json_schema
from kpybroker.registry.schemas.proto import reader
from tests.fuzz.target import Target, of_text, texts

NOW_MS = 1_700_000_000_000
SCHEMA = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "tags", "type": {"type": "map", "values": ["null", "string", "bytes"]}},
        {"name": "next", "type": ["null", "R"], "default": None},
        {"name": "kind", "type": {"type": "enum", "name": "K", "symbols": ["A", "B"]}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "sum", "type": {"type": "fixed", "name": "F", "size": 4}},
        {"name": "all", "type": {"type": "array", "items": "double"}},
    ],
}
AVRO = AvroJson(json.dumps(SCHEMA))
APIS = frozenset(SERVED)
RECORD = Record("t", b"k", None, [("h", b"\xff"), ("", None)], 0, 1, NOW_MS)


def line(data: bytes) -> None:
    """What is read as a record is written and read the same."""
    record = json_lines.load(data)
    json_lines.dump(record)


def printf(data: bytes) -> None:
    """A format, and after a NUL a line to read with it."""
    template, _, piece = data.partition(b"\0")
    text = template.decode("utf-8", "replace")
    compile_template(text)(RECORD, 1)
    parser(text, LineOptions())(piece)


def span(text: str) -> None:
    """No position is one of the protocol's words for others."""
    found = parse_span(text, NOW_MS)
    for position in (found.begin, found.end):
        assert position is None or position.kind != "timestamp" or position.value >= 0, "a time before 1970"


def fault(data: bytes) -> None:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return
    parse_fault(found, APIS)


def jolokia(data: bytes) -> None:
    """As a path, as a body, and as the name of a bean."""
    text = data.decode("utf-8", "replace")
    path, _, query = text.partition("?")
    for read in (lambda: from_get(path, query), lambda: from_post(data), lambda: parse_name(text)):
        try:
            read()
        except RequestError:
            continue


def proto(text: str) -> None:
    """A file that is read is printed, and read the same."""
    reader.read(text)


def json_of_java(text: str) -> None:
    for is_lax in (False, True):
        try:
            java_json.loads(text, is_lax=is_lax)
        except ValueError:
            continue


def avro_values() -> Iterable[bytes]:
    yield AVRO.write(
        {
            "id": 1,
            "at": 0,
            "tags": {"a": {"string": "b"}},
            "next": None,
            "kind": "A",
            "price": "1",
            "sum": "abcd",
            "all": [],
        }
    )


TARGETS = (
    Target(
        "lines",
        line,
        (json_lines.BadLine,),
        lambda: [
            b'{"topic":"t","key":"k","value":{"base64":"AAAA"},"headers":[{"key":"h","value":null}],"partition":1}'
        ],
        ("kpybroker.client.records.json_lines",),
    ),
    Target(
        "formats",
        printf,
        (BadTemplate, json_lines.BadLine),
        texts("%p %k;%v\0-1 a;ff", "%v{hex}\\n%d{iso} %d{strftime[%F]} %h{%k=%v} %T%D%i%%\\x41\0", "%v{json}\0{}"),
        ("kpybroker.client.records.template", "kpybroker.client.records.lines"),
    ),
    Target(
        "positions",
        of_text(span),
        (BadOffset,),
        texts("start:-10", "@2024-01-01T10:00:+5", "@-3h:end", "@1700000000000"),
        ("kpybroker.client.records.offsets",),
    ),
    Target(
        "offset-files",
        of_text(offset_files.parse),
        (offset_files.BadFile,),
        texts("t,0,17\n# c\ng,t,1,18\n", '[{"group":"g","topic":"t","partition":0,"offset":1,"leader_epoch":null}]'),
        ("kpybroker.client.records.offset_files",),
    ),
    Target(
        "avro-values",
        AVRO.read,
        (BadValue,),
        avro_values,
        ("kpybroker.client.schemas.avro_json",),
    ),
    Target(
        "protobuf-indexes",
        read_indexes,
        (ValueError, IndexError),
        lambda: [b"\0", b"\4\2\0"],
        ("kpybroker.client.schemas.descriptors",),
    ),
    Target(
        "faults",
        fault,
        (FaultError,),
        lambda: [
            b'{"match":{"api":["Produce","Fetch"],"topic":"t","client_id":"c"},"act":{"error":"NOT_LEADER_OR_FOLLOWER"},'
            b'"trigger":{"times":2,"skip":1}}',
            b'{"match":{"api":"Fetch"},"act":{"delay_ms":5}}',
        ],
        ("kpybroker.control.rules",),
    ),
    Target(
        "jolokia",
        jolokia,
        (),
        lambda: [
            b"/read/java.lang:type=Memory/HeapMemoryUsage?canonicalNaming=false",
            b'[{"type":"read","mbean":"kafka.server:type=*,name=x","attribute":["a","b"],"path":"a/b"}]',
            b'kafka.server:type=A,name="x,y",*',
        ],
        ("kpybroker.metrics.jolokia",),
    ),
    Target(
        "registry-bodies", loaded, (RegistryError,), lambda: [b'{"schema":"{}"}'], ("kpybroker.registry.api.bodies",)
    ),
    Target(
        "java-json",
        of_text(json_of_java),
        (),
        texts('{"a":[1,2.5e3,null,"x\\u0041"]}'),
        ("kpybroker.registry.schemas.java_json",),
    ),
    Target(
        "schemas-avro",
        of_text(lambda text: avro.parse(text, {}, is_new=True).canonical),
        (RegistryError,),
        texts(json.dumps(SCHEMA), '"string"', '["null",{"type":"fixed","name":"a.b","size":3}]'),
        ("kpybroker.registry.schemas.avro",),
    ),
    Target(
        "schemas-json",
        of_text(lambda text: json_schema.parse(text, {}, is_new=True).canonical),
        (RegistryError,),
        texts(
            '{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"$ref":"#/definitions/b"}},"definitions":{"b":{"type":"string"}}}'
        ),
        ("kpybroker.registry.schemas.json_schema",),
    ),
    Target(
        "schemas-protobuf",
        of_text(proto),
        (RegistryError, ValueError),
        texts(
            'syntax = "proto3"; package a.b; import "c.proto";\n// c\nmessage M { option (x).y = {a: 1}; '
            "repeated int32 f = 1 [packed = true]; "
            "map<string, M> m = 2; oneof o { string s = 3; } reserved 4 to 7, 9; enum E { A = 0; } }\n"
            "service S { rpc R (stream M) returns (M) { option deprecated = true; } }"
        ),
        ("kpybroker.registry.schemas.proto",),
    ),
)
