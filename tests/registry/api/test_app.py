"""HTTP itself: content types, errors as JSON, requests that are too much, followers."""

from __future__ import annotations

import threading

import httpx
import pytest

from kpybroker.registry.api import bodies
from kpybroker.registry.api.forward import Forwarder
from tests.registry.conftest import Registry

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"


def test_the_content_type_is_what_the_client_accepts(registry: Registry) -> None:
    for accept, expected in (
        ("*/*", CONTENT_TYPE),
        ("application/json", "application/json"),
        (f"{CONTENT_TYPE}, application/json", CONTENT_TYPE),
    ):
        response = registry.http.get("/subjects", headers={"accept": accept})
        assert response.headers["content-type"] == expected


def test_bad_requests_are_json_with_a_code(registry: Registry) -> None:
    for method, path, code in (
        ("GET", "/nothing", 404),
        ("PUT", "/subjects", 405),
        ("GET", "/schemas/ids/x", 404),
        ("GET", "/schemas/ids/9", 40403),
        ("GET", "/schemas/guids/x", 40403),
        ("GET", "/subjects?limit=x", 404),
        ("PUT", "/config", 422),
        ("DELETE", "/schemas", 405),
    ):
        assert registry.refused(method, path) == code
    post = registry.http.post
    assert post("/subjects/a", content=b"{", headers={"content-type": CONTENT_TYPE}).json()["error_code"] == 400
    assert post("/subjects/a", content=b"[]", headers={"content-type": CONTENT_TYPE}).json()["error_code"] == 400
    half = b'{"schema":"\\ud800"}'
    assert post("/subjects/a", content=half, headers={"content-type": CONTENT_TYPE}).json()["error_code"] == 400
    assert post("/subjects/a", content=b"{}", headers={"content-type": "text/plain"}).json()["error_code"] == 415
    assert post("/subjects/a", content=b"[" * (5 << 20)).json()["error_code"] == 413
    assert post("/subjects/a", content=b"[" * 100_000).json()["error_code"] == 400


def test_what_a_registry_is(registry: Registry) -> None:
    assert registry.call("GET", "/") == {}
    assert registry.call("GET", "/schemas/types") == ["JSON", "PROTOBUF", "AVRO"]
    assert registry.call("GET", "/contexts") == ["."]
    clusters = registry.call("GET", "/v1/metadata/id")["scope"]["clusters"]
    assert clusters == {"kafka-cluster": "cluster-1", "schema-registry-cluster": "schema-registry"}
    assert registry.call("GET", "/v1/metadata/version")["version"].startswith("kpybroker ")
    assert registry.http.head("/").status_code == 200


def test_a_guid_finds_the_schema(registry: Registry) -> None:
    registry.register("a", '"string"')
    guid = registry.call("GET", "/schemas/ids/1")["guid"]
    assert registry.call("GET", f"/schemas/guids/{guid}")["schema"] == '"string"'
    assert registry.call("GET", f"/schemas/guids/{guid}/ids") == [{"context": ".", "id": 1}]


def test_a_follower_serves_what_it_knows_and_forwards_the_rest(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.register("a", '"string"')
    registry.leader.leads = False
    assert registry.register("a", '"string"') == 1
    assert registry.refused("POST", "/subjects/a/versions", {"schema": '["string"]'}) == 50004
    registry.leader.url = "http://127.0.0.1:1"
    assert registry.refused("DELETE", "/subjects/a") == 50003
    seen: list[httpx.Request] = []

    def respond(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(409, json={"error_code": 409, "message": "no"}, headers={"content-type": CONTENT_TYPE})

    forwarder = Forwarder()
    forwarder._client = httpx.Client(transport=httpx.MockTransport(respond))
    from starlette.testclient import TestClient

    from kpybroker.registry.api.app import make_app

    http = TestClient(make_app(registry.service, forwarder), base_url="http://127.0.0.1")
    body = {"schema": '["string"]'}
    response = http.post("/subjects/a%2Fb/versions?normalize=true", json=body, headers={"authorization": "Basic eDp5"})
    assert (response.status_code, response.json()["error_code"]) == (409, 409)
    assert str(seen[0].url) == "http://127.0.0.1:1/subjects/a%2Fb/versions?normalize=true"
    assert seen[0].headers["authorization"] == "Basic eDp5"
    assert seen[0].headers["x-forward"] == "true"
    again = http.delete("/subjects/a", headers={"X-Forward": "true"})
    assert (len(seen), again.json()["error_code"]) == (1, 50004), "a request is not sent in circles"


def test_a_leader_that_lost_its_place_writes_nothing(registry: Registry) -> None:
    registry.service.attach(registry.log, Losing())
    assert registry.refused("POST", "/subjects/a/versions", {"schema": '"string"'}) == 50004
    assert registry.log.records == []


class Losing:
    """A leader when asked for the first time and the second, and not after that."""

    def __init__(self) -> None:
        self.asked = 0

    def is_leader(self) -> bool:
        self.asked += 1
        return self.asked <= 2

    def leader_url(self) -> str | None:
        return None


def test_an_id_that_another_leader_gave_away_is_an_error_and_leaves_no_trace(registry: Registry) -> None:
    other = Registry()
    other.register("b", '"int"')

    def write() -> None:
        registry.service.apply(*other.log.records[0])

    registry.log.before_append = write
    assert registry.refused("POST", "/subjects/a/versions", {"schema": '"string"'}) == 50001
    assert registry.call("GET", "/subjects") == ["b"]
    assert registry.log.records[-1].value is None
    assert registry.register("a", '"string"') == 2


def test_a_failure_of_the_code_is_500_and_no_traceback(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(registry.service, "read", fail)
    response = registry.http.get("/subjects")
    assert (response.status_code, response.json()["error_code"]) == (500, 50001)
    assert "Zero" not in response.text
    monkeypatch.setattr(bodies, "members", fail)
    response = registry.http.put("/config", json={})
    assert (response.status_code, response.json()["error_code"]) == (500, 50001)


def test_reads_are_served_while_every_writer_waits(registry: Registry) -> None:
    registry.register("a", '"string"')
    blocked, goes_on = threading.Semaphore(0), threading.Event()
    statuses: list[int] = []

    def wait() -> None:
        blocked.release()
        assert goes_on.wait(60)

    registry.log.refresh = wait  # type: ignore[method-assign]
    with registry.http:
        writers = [
            threading.Thread(
                target=lambda: statuses.append(registry.http.put("/config", json={"compatibility": "FULL"}).status_code)
            )
            for _ in range(60)
        ]
        for writer in writers:
            writer.start()
        assert blocked.acquire(timeout=60)
        assert registry.call("GET", "/subjects") == ["a"]
        goes_on.set()
        for writer in writers:
            writer.join()
    assert statuses == [200] * 60


def test_what_only_other_registries_have_is_refused_by_its_name(registry: Registry) -> None:
    for path, what in (
        ("/dek-registry/v1/keks", "encryption"),
        ("/dek-registry/v1/keks/k/deks", "encryption"),
        ("/exporters", "exporters"),
        ("/exporters/a/status", "exporters"),
        ("/subjects/a/versions/1/tags", "tags"),
        ("/contexts/.a/exporters", "exporters"),
        ("/associations", "associations"),
        ("/associations:batchGet", "associations"),
    ):
        response = registry.http.post(path, json={})
        assert (response.status_code, response.json()["error_code"]) == (404, 404)
        assert what in response.json()["message"]
    assert registry.http.get("/exportersx").json()["message"] == "HTTP 404 Not Found"
    tags = [{"schemaEntity": {"entityPath": "a", "entityType": "sr_field"}, "tags": ["PII"]}]
    for member in ("schemaTagsToAdd", "schemaTagsToRemove"):
        body = {"schema": '"string"', member: tags}
        assert registry.refused("POST", "/subjects/a/versions", body) == 42201
