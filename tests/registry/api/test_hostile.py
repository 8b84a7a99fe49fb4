"""No request makes the registry fail: what cannot be meant is refused, and the next request gets its response."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kpybroker.registry.api.app import BODY_BYTES_MAX
from kpybroker.registry.schemas.model import Definition
from kpybroker.registry.store import records
from kpybroker.registry.store.records import Version
from tests.registry.conftest import Registry

VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    1.5,
    float("inf"),
    "",
    "x",
    "\0",
    "\ud800",
    [],
    {},
    [1],
    {"a": 1},
    10**30,
    2**31,
    [{"name": 1}],
    [{"name": "a", "subject": "s", "version": float("inf")}],
    [{"name": "a", "subject": ":*:s", "version": -1}],
)
TEXTS = {"AVRO": '"int"', "JSON": "{}", "PROTOBUF": 'syntax = "proto3"; message A {}'}
SCHEMA_KEYS = ("schema", "schemaType", "references", "metadata", "ruleSet", "id", "version")
SETTINGS_KEYS = ("compatibility", "mode", "normalize", "compatibilityGroup", "alias", "compatibilityLevel")


def status_of(registry: Registry, method: str, path: str, content: bytes) -> int:
    headers = {"content-type": "application/json"}
    return int(registry.http.request(method, path, content=content, headers=headers).status_code)


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("key", SCHEMA_KEYS)
def test_any_value_of_any_key_of_a_registration_gets_a_response(registry: Registry, key: str, kind: str) -> None:
    for number, value in enumerate(VALUES):
        body = {"schema": TEXTS[kind], "schemaType": kind, key: value}
        status = status_of(registry, "POST", f"/subjects/{number}/versions", json.dumps(body).encode())
        assert status in (200, 400, 422), (key, value, status)
    assert registry.register("after", '"int"') > 0


@pytest.mark.parametrize("path", ["/config", "/config/a", "/mode", "/mode/:.x:"])
def test_any_value_of_any_setting_gets_a_response(registry: Registry, path: str) -> None:
    for key in SETTINGS_KEYS:
        for value in VALUES:
            status = status_of(registry, "PUT", path, json.dumps({key: value}).encode())
            assert status in (200, 400, 422), (key, value, status)


BODIES = (
    b"",
    b"\xff\xfe",
    b"{",
    b"[]",
    b"[" * 1_000_000,
    b'{"schema":' * 50_000,
    b'{"schema":"\xff"}',
    b'{"schema":"a\x00"}',
    b'{"schema":"\\u0000"}',
    b'{"schema":' + b"9" * 10_000 + b"}",
    json.dumps({"schema": '{"type":"array","items":' * 5000 + '"int"' + "}" * 5000}).encode(),
    json.dumps({"schema": '{"not":' * 5000 + "{}" + "}" * 5000, "schemaType": "JSON"}).encode(),
    json.dumps({"schema": "message A {" * 5000 + "}" * 5000, "schemaType": "PROTOBUF"}).encode(),
    json.dumps({"schema": '{"$ref":"file:///etc/passwd"}', "schemaType": "JSON"}).encode(),
    json.dumps({"schema": '{"$ref":"http://127.0.0.1:1/x"}', "schemaType": "JSON"}).encode(),
    json.dumps({"schema": 'syntax = "proto3"; import "../../etc/passwd"', "schemaType": "PROTOBUF"}).encode(),
)


@pytest.mark.parametrize("at", range(len(BODIES)))
def test_a_body_that_is_no_schema_is_refused(registry: Registry, at: int) -> None:
    assert status_of(registry, "POST", "/subjects/a/versions", BODIES[at]) in (400, 422)
    assert registry.call("GET", "/subjects") == []


@pytest.mark.parametrize("name", ["../../../../../../etc/passwd", "/etc/passwd", "../x.proto", "schema.proto"])
def test_an_import_of_a_file_of_the_machine_is_text_and_nothing_else(registry: Registry, name: str) -> None:
    text = f'syntax = "proto3"; import "{name}"; message M {{}}'
    assert registry.register("a", text, schemaType="PROTOBUF") == 1
    response = registry.http.get("/schemas/ids/1?format=serialized")
    assert (response.status_code, response.json()["error_code"]) == (422, 42201)
    assert "root:" not in response.text


def test_a_body_that_is_too_large_is_refused_before_it_is_kept(registry: Registry) -> None:
    headers = {"content-type": "application/json"}
    whole = b"x" * (BODY_BYTES_MAX + 1)
    assert status_of(registry, "POST", "/subjects/a/versions", whole) == 413
    assert registry.http.post("/subjects/a", content=whole, headers=headers).json()["error_code"] == 413


@pytest.mark.parametrize(
    "path",
    [
        "/subjects/%ff/versions",
        "/subjects/%/versions",
        f"/schemas/ids/{'9' * 5000}",
        f"/subjects/a/versions/{'9' * 5000}",
        "/schemas/ids/-1",
        "/schemas/ids/1?subject=%ff",
        f"/subjects?offset={'9' * 6000}",
        "/subjects?limit=x",
        f"/schemas/guids/{'a' * 9000}",
        "/contexts/%00/subjects",
        "/contexts//subjects",
        "/contexts/a:b/subjects",
        "/schemas?subjectPrefix=%00",
        f"/subjects/{'a' * 60_000}",
    ],
)
def test_a_path_that_means_nothing_gets_a_response(registry: Registry, path: str) -> None:
    assert registry.http.get(path).status_code in (200, 400, 404, 405, 422)


HALF = {
    "AVRO": '{"type":"record","name":"R","doc":"\\ud83d(","fields":[]}',
    "JSON": '{"properties":{"\\ude00":{}}}',
}


@pytest.mark.parametrize("kind", list(HALF))
def test_half_a_surrogate_pair_is_no_text(registry: Registry, kind: str) -> None:
    body = {"schema": HALF[kind], "schemaType": kind}
    assert registry.refused("POST", "/subjects/a/versions", body) == 42201
    registry.call("PUT", "/mode/b", {"mode": "IMPORT"})
    assert registry.refused("POST", "/subjects/b/versions", {**body, "id": 7, "version": 1}) == 42201
    whole = {**body, "schema": HALF[kind].replace("\\ude00", "\\ud83d\\ude00").replace("(", "\\ude00")}
    registry.call("POST", "/subjects/a/versions", whole)
    assert "\U0001f600" in registry.call("GET", "/subjects/a/versions/1")["schema"]


@pytest.mark.parametrize("kind", list(HALF))
def test_half_a_surrogate_pair_that_is_stored_breaks_no_response(registry: Registry, kind: str) -> None:
    stored = json.dumps(json.loads(HALF[kind]), ensure_ascii=False, separators=(",", ":"))
    written = records.schema(Version("a", 1, 1, Definition(kind, stored)))
    assert registry.service.apply(written.key, written.value) is None
    assert registry.register("b", '"int"') == 2
    listed = registry.http.get("/schemas").content.decode()
    assert [one["schema"] for one in json.loads(listed)] == [stored, '"int"']
    assert registry.http.get("/schemas/ids/1/schema").content.decode() == stored.encode("utf-8", "replace").decode()
    assert registry.call("POST", "/subjects/a", {"schema": HALF[kind], "schemaType": kind})["id"] == 1
    assert registry.call("DELETE", "/subjects/a/versions/1") == 1
