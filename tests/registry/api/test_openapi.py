"""The OpenAPI document of the site is what the registry serves: its routes, parameters, and shapes of responses."""

from __future__ import annotations

import json
import re
import sys
from types import ModuleType
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from kpybroker.registry.api.routes import ENTRIES
from tests.registry.conftest import Registry
from tests.support.programs.samples import ROOT, module_of

RECORD = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]})
WIDER = json.dumps(
    {
        "type": "record",
        "name": "R",
        "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": "int", "default": 0}],
    }
)
USER = json.dumps({"type": "record", "name": "U", "fields": [{"name": "r", "type": "R"}]})
REFERENCE = {"name": "R", "subject": "a", "version": 1}
NEW = {"schema": RECORD}
REQUESTS: list[tuple[str, str, Any]] = [
    ("GET", "/", None),
    ("GET", "/v1/metadata/id", None),
    ("GET", "/v1/metadata/version", None),
    ("POST", "/subjects/a/versions", NEW),
    ("POST", "/subjects/a/versions", {"schema": WIDER, "metadata": {"properties": {"by": "me"}}}),
    ("POST", "/subjects/:.c:b/versions", {"schema": '{"type": "object"}', "schemaType": "JSON"}),
    ("POST", "/subjects/u/versions", {"schema": USER, "references": [REFERENCE]}),
    ("GET", "/contexts", None),
    ("GET", "/schemas", None),
    ("GET", "/schemas/types", None),
    ("GET", "/schemas/ids/1?fetchMaxId=true", None),
    ("GET", "/schemas/ids/1/schema", None),
    ("GET", "/schemas/ids/1/subjects", None),
    ("GET", "/schemas/ids/1/versions", None),
    ("GET", "/subjects?subjectPrefix=:*:", None),
    ("POST", "/subjects/a", NEW),
    ("GET", "/subjects/a/metadata?key=by&value=me", None),
    ("GET", "/subjects/a/versions", None),
    ("GET", "/subjects/a/versions/latest", None),
    ("GET", "/subjects/a/versions/1/schema", None),
    ("GET", "/subjects/a/versions/1/referencedby", None),
    ("POST", "/compatibility/subjects/a/versions/latest?verbose=true", NEW),
    ("POST", "/compatibility/subjects/a/versions", NEW),
    ("GET", "/config", None),
    ("PUT", "/config", {"compatibility": "FULL"}),
    ("PUT", "/config/a", {"compatibility": "NONE", "normalize": True}),
    ("GET", "/config/a", None),
    ("DELETE", "/config/a", None),
    ("DELETE", "/config", None),
    ("PUT", "/mode", {"mode": "READWRITE"}),
    ("PUT", "/mode/a", {"mode": "READONLY"}),
    ("GET", "/mode/a", None),
    ("DELETE", "/mode/a", None),
    ("DELETE", "/mode?recursive=true", None),
    ("GET", "/mode", None),
    ("DELETE", "/subjects/u/versions/1", None),
    ("DELETE", "/subjects/u", None),
    ("GET", "/subjects/u/versions/1?deleted=true", None),
    ("DELETE", "/subjects/:.c:b", None),
    ("DELETE", "/subjects/:.c:b?permanent=true", None),
    ("DELETE", "/contexts/.c", None),
    ("GET", "/subjects/none/versions", None),
]


@pytest.fixture(scope="module")
def openapi() -> ModuleType:
    sys.path.insert(0, str(ROOT / "docs" / "_ext"))
    try:
        return module_of(ROOT / "docs" / "_ext" / "openapi.py")
    finally:
        sys.path.pop(0)


@pytest.fixture(scope="module")
def document(openapi: ModuleType) -> Any:
    return json.loads(json.dumps(openapi.document()))


def test_it_is_a_valid_document(document: Any) -> None:
    validate(document)


def test_every_route_is_there_with_its_parameters(openapi: ModuleType, document: Any) -> None:
    there = {(method.upper(), path) for path, one in document["paths"].items() for method in one}
    assert there == {(entry.method, entry.path) for entry in ENTRIES}
    for entry in ENTRIES:
        operation = document["paths"][entry.path][entry.method.lower()]
        named = {one["name"] for one in operation["parameters"] if one["in"] == "query"}
        assert named == set(openapi.query_parameters(entry.handler)) <= set(openapi.PARAMETERS)
        assert ("requestBody" in operation) == (entry.method in ("POST", "PUT") and entry.path != "/")


def test_what_a_handler_reads_of_the_query_is_found_behind_the_functions_that_it_calls(openapi: ModuleType) -> None:
    by_path = {(entry.method, entry.path): openapi.query_parameters(entry.handler) for entry in ENTRIES}
    assert {"deleted", "limit", "offset", "subject"} <= set(by_path["GET", "/schemas/ids/{id}/versions"])
    assert {"normalize", "verbose"} <= set(by_path["POST", "/compatibility/subjects/{subject}/versions"])
    assert "deleted" not in by_path["PUT", "/mode"]


def test_every_response_has_the_shape_that_is_written(registry: Registry, document: Any) -> None:
    seen = set()
    for method, target, body in REQUESTS:
        response = registry.http.request(method, target, json=body)
        path = _path_of(document, method, target.partition("?")[0])
        operation = document["paths"][path][method.lower()]
        status = str(response.status_code)
        written = operation["responses"].get(status)
        if written is None:
            assert response.status_code >= 400, response.text
            written = operation["responses"]["default"]
        seen.add((method, path))
        for kind, content in written.get("content", {}).items():
            value = response.text if kind == "text/plain" else response.json()
            schema = {**content["schema"], "components": document["components"]}
            Draft202012Validator(schema).validate(value)
            _check_members(content["schema"], value, document, f"{method} {target}")
    left = {(entry.method, entry.path) for entry in ENTRIES} - seen
    assert len(left) <= len(ENTRIES) // 6, left


def _path_of(document: Any, method: str, target: str) -> str:
    """The path with the fewest parts that vary."""
    found: list[str] = [
        path
        for path, one in document["paths"].items()
        if method.lower() in one and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), target)
    ]
    return min(found, key=lambda path: path.count("{"))


def _check_members(schema: Any, value: Any, document: Any, where: str) -> None:
    """No member of a response is missing in the document."""
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if isinstance(value, list):
        for one in value:
            _check_members(schema["items"], one, document, where)
    elif isinstance(value, dict) and "properties" in schema:
        assert set(value) <= set(schema["properties"]), where


def test_each_body_has_the_members_that_are_read(openapi: ModuleType) -> None:
    with_body = [entry for entry in ENTRIES if entry.body is not None]
    assert {openapi.key_of(entry) for entry in with_body} == openapi.BODIES.keys()
    for entry in with_body:
        described = openapi.SCHEMAS[openapi.BODIES[openapi.key_of(entry)]]["properties"]
        assert described.keys() == (entry.body or {}).keys(), entry.path
