"""One HTTP conversation with a registry that is empty: every kind of request, right and wrong, and every response.

Responses depend on nothing but the requests before them, so two registries, or one on two clusters, can be compared.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import httpx

DEADLINE_S = 180.0


class Step(NamedTuple):
    """A request. `body` is sent as JSON."""

    method: str
    path: str
    body: Any = None


class Response(NamedTuple):
    """A status and what was said; None for nothing."""

    status: int
    body: Any


def record(*fields: str) -> str:
    """An Avro schema; a field that ends in `?` has a default."""
    made = [
        {"name": name.rstrip("?"), "type": "string", **({"default": ""} if name.endswith("?") else {})}
        for name in fields
    ]
    return json.dumps({"type": "record", "name": "Order", "fields": made})


def schema(text: str, kind: str | None = None, **more: Any) -> dict[str, Any]:
    """The body of a registration."""
    return {"schema": text, **({} if kind is None else {"schemaType": kind}), **more}


CLOSED = '{"type":"object","properties":{"id":{"type":"integer"}},"additionalProperties":false}'
WIDER = CLOSED.replace('"integer"}', '"integer"},"note":{"type":"string"}')
MONEY = 'syntax = "proto3";\npackage shop;\nmessage Money {\n  int64 units = 1;\n}\n'
BILL = 'syntax = "proto3";\npackage shop;\nimport "money.proto";\nmessage Bill {\n  Money sum = 1;\n}\n'
ADDRESS = '{"type":"record","name":"Address","fields":[{"name":"city","type":"string"}]}'
HOME = '{"type":"record","name":"Home","fields":[{"name":"at","type":"Address"}]}'


def reference(name: str, subject: str, version: int = 1) -> dict[str, Any]:
    """What a schema refers to."""
    return {"references": [{"name": name, "subject": subject, "version": version}]}


AVRO = (
    Step("GET", "/"),
    Step("GET", "/subjects"),
    Step("GET", "/config"),
    Step("GET", "/mode"),
    Step("POST", "/subjects/avro/versions", schema(record("a"))),
    Step("POST", "/subjects/avro/versions", schema(record("a"))),
    Step("POST", "/subjects/avro/versions", schema(record("a", "b"))),
    Step("POST", "/subjects/avro/versions", schema(record("a", "b?"))),
    Step("POST", "/subjects/other/versions", schema(record("a"))),
    Step("POST", "/subjects/avro/versions", schema('{"type":"record"}')),
    Step("POST", "/subjects/avro/versions", schema("no schema")),
    Step("POST", "/subjects/avro", schema(record("a"))),
    Step("POST", "/subjects/avro", schema(record("z"))),
    Step("POST", "/subjects/none", schema(record("a"))),
    Step("GET", "/subjects/avro/versions"),
    Step("GET", "/subjects/avro/versions/1"),
    Step("GET", "/subjects/avro/versions/latest"),
    Step("GET", "/subjects/avro/versions/9"),
    Step("GET", "/subjects/avro/versions/x"),
    Step("GET", "/subjects/none/versions"),
    Step("GET", "/schemas/ids/1"),
    Step("GET", "/schemas/ids/99"),
    Step("GET", "/schemas/ids/1/versions"),
    Step("GET", "/schemas/types"),
    Step("POST", "/compatibility/subjects/avro/versions/latest", schema(record("a", "c"))),
    Step("POST", "/compatibility/subjects/avro/versions/1", schema(record())),
    Step("POST", "/compatibility/subjects/avro/versions/9", schema(record())),
    Step("POST", "/compatibility/subjects/none/versions/latest", schema(record())),
)

OTHERS = (
    Step("POST", "/subjects/json/versions", schema(CLOSED, "JSON")),
    Step("POST", "/subjects/json/versions", schema(WIDER, "JSON")),
    Step("POST", "/subjects/json/versions", schema('{"type":"no such"}', "JSON")),
    Step("POST", "/subjects/money/versions", schema(MONEY, "PROTOBUF")),
    Step("POST", "/subjects/bill/versions", schema(BILL, "PROTOBUF", **reference("money.proto", "money"))),
    Step("POST", "/subjects/bill2/versions", schema(BILL, "PROTOBUF")),
    Step("POST", "/subjects/address/versions", schema(ADDRESS)),
    Step("POST", "/subjects/home/versions", schema(HOME, **reference("Address", "address"))),
    Step("GET", "/subjects/home/versions/1"),
    Step("GET", "/subjects/address/versions/1/referencedby"),
    Step("DELETE", "/subjects/address/versions/1"),
    Step("POST", "/subjects/a%2Fb%20c/versions", schema('"string"')),
    Step("GET", "/subjects/a%2Fb%20c/versions/1"),
    Step("POST", "/subjects/x/versions", schema('"string"', "XML")),
)

SETTINGS = (
    Step("PUT", "/config", {"compatibility": "FULL"}),
    Step("PUT", "/config", {"compatibility": "SOME"}),
    Step("GET", "/config"),
    Step("GET", "/config/avro"),
    Step("GET", "/config/avro?defaultToGlobal=true"),
    Step("PUT", "/config/avro", {"compatibility": "NONE"}),
    Step("POST", "/subjects/avro/versions", schema('"int"')),
    Step("GET", "/config/avro"),
    Step("DELETE", "/config/avro"),
    Step("DELETE", "/config/never"),
    Step("PUT", "/mode/other", {"mode": "READONLY"}),
    Step("POST", "/subjects/other/versions", schema('"int"')),
    Step("PUT", "/mode/other", {"mode": "SOME"}),
    Step("DELETE", "/mode/other"),
    Step("GET", "/mode/other"),
    Step("PUT", "/mode/import", {"mode": "IMPORT"}),
    Step("POST", "/subjects/import/versions", schema('"bytes"', id=100, version=5)),
    Step("PUT", "/mode/import", {"mode": "READWRITE"}),
    Step("POST", "/subjects/import/versions", schema('["null","bytes"]')),
)

DELETIONS = (
    Step("DELETE", "/subjects/avro/versions/1?permanent=true"),
    Step("DELETE", "/subjects/avro/versions/1"),
    Step("DELETE", "/subjects/avro/versions/1"),
    Step("DELETE", "/subjects/avro/versions/1?permanent=true"),
    Step("DELETE", "/subjects/json"),
    Step("DELETE", "/subjects/json"),
    Step("GET", "/subjects?deleted=true"),
    Step("POST", "/subjects/json/versions", schema(CLOSED, "JSON")),
    Step("DELETE", "/subjects/home"),
    Step("DELETE", "/subjects/home?permanent=true"),
    Step("DELETE", "/subjects/never"),
)

CONTEXTS = (
    Step("POST", "/subjects/:.one:avro/versions", schema(record("q"))),
    Step("POST", "/contexts/.one/subjects/second/versions", schema(record("r"))),
    Step("POST", "/subjects/:.two:avro/versions", schema(record("s"))),
    Step("PUT", "/config/:.one:", {"compatibility": "NONE"}),
    Step("POST", "/subjects/:.one:avro/versions", schema('"int"')),
    Step("DELETE", "/contexts/.one"),
    Step("DELETE", "/subjects/:.two:avro"),
    Step("DELETE", "/subjects/:.two:avro?permanent=true"),
    Step("DELETE", "/contexts/.two"),
)

STEPS = (*AVRO, *OTHERS, *SETTINGS, *DELETIONS, *CONTEXTS)

PICTURE = (
    *(Step("GET", path) for path in ("/subjects", "/subjects?deleted=true", "/config", "/mode", "/contexts")),
    *(
        Step("GET", f"/schemas?subjectPrefix=:*:&{flag}")
        for flag in ("deleted=true", "deleted=false", "latestOnly=true")
    ),
    *(Step("GET", f"/schemas/ids/{number}") for number in (*range(1, 16), 100, 101, 102)),
    *(Step("GET", f"/schemas/ids/{number}/versions?deleted=true") for number in (*range(1, 16), 100, 101, 102)),
    *(Step("GET", f"/schemas/ids/{number}?subject=:.one:") for number in range(1, 5)),
    *(Step("GET", f"/config/{name}") for name in ("avro", ":.one:", "json")),
    *(Step("GET", f"/mode/{name}") for name in ("import", "other")),
    Step("GET", "/subjects/address/versions/1/referencedby"),
    Step("GET", "/subjects/money/versions/1/referencedby"),
)
"""Everything that can be read after the conversation; it changes nothing."""


def ask(client: httpx.Client, step: Step) -> Response:
    """One step of a conversation."""
    made = client.request(step.method, step.path, json=step.body)
    return Response(made.status_code, _timeless(json.loads(made.content)) if made.content else None)


def _timeless(value: Any) -> Any:
    """Without the times at which records were written."""
    if isinstance(value, list):
        return [_timeless(one) for one in value]
    return {key: one for key, one in value.items() if key != "ts"} if isinstance(value, dict) else value


def responses(url: str, steps: tuple[Step, ...]) -> list[tuple[Step, Response]]:
    """What the registry at `url` says."""
    with httpx.Client(base_url=url, timeout=DEADLINE_S) as client:
        return [(step, ask(client, step)) for step in steps]
