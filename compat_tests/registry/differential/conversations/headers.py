"""`Accept`, `Content-Type`, methods, and paths that are no routes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from compat_tests.registry.differential.conversations.schemas import A, body
from compat_tests.registry.differential.step import JSON_TYPE, V1, Conversation, Step, conversation

ANY: Final = "application/vnd.schemaregistry+json"
ACCEPTS: Final = (
    "*/*",
    "application/*",
    JSON_TYPE,
    ANY,
    V1,
    f"{JSON_TYPE}, {V1};q=0.1",
    f"{JSON_TYPE};q=0.4, {ANY};q=0.8",
    f"{ANY}, {JSON_TYPE}",
    f"{V1}, {ANY}, {JSON_TYPE}",
    f"text/html, {JSON_TYPE};q=0.2",
    "text/html, image/png, *; q=.2, */*; q=.2",
    f"{V1};q=0, */*",
    f"{JSON_TYPE};q=0",
    "application/vnd.schemaregistry.v9+json",
    "text/*",
    "text/plain",
    "application/octet-stream",
    "application/xml",
    "application/json;charset=utf-8",
    "APPLICATION/JSON",
    "",
    "x",
)
KINDS: Final = (
    V1,
    ANY,
    JSON_TYPE,
    "application/octet-stream",
    "application/json; charset=utf-8",
    "text/plain",
    "application/xml",
    "application/x-www-form-urlencoded",
    "*/*",
    "x",
    "Application/JSON",
)
METHODS: Final = ("GET", "POST", "PUT", "DELETE", "PATCH")
PATHS: Final = (
    "/",
    "/v1/metadata/version",
    "/v1/metadata/deployment",
    "/subjects/NAME-x/versions/1/tags",
    "/v1/metadata",
    "/contexts",
    "/schemas?subjectPrefix=NAME",
    "/schemas/types",
    "/schemas/ids",
    "/schemas/ids/x",
    "/schemas/ids/-1",
    "/schemas/ids/99999/more",
    "/schemas/guids",
    "/subjects?subjectPrefix=NAME",
    "/subjects/NAME-x/more",
    "/subjects/NAME-x/metadata",
    "/subjects/NAME-x/versions/1/schema",
    "/subjects/NAME-x/versions/1/more",
    "/compatibility",
    "/compatibility/subjects/NAME-x",
    "/compatibility/subjects/NAME-x/versions",
    "/config/NAME-x/more",
    "/mode/NAME-x/more",
    "/exporters",
    "/exporters/NAME-x/status",
    "/dek-registry/v1/keks",
    "/dek-registry/v1/keks/k/deks/d",
    "/dek-registry/v1/policy",
    "/catalog/v1/types/tagdefs",
    "/asyncapi",
    "/no-such",
)


def _accepts() -> Iterable[Step]:
    for accept in ACCEPTS:
        head = {"Accept": accept}
        for path in (
            "/subjects?subjectPrefix=NAME",
            "/subjects/NAME-none/versions",
            "/config",
            "/schemas/types",
            "/",
            "/no-such",
        ):
            yield Step("GET", path, None, head)
        yield Step("PUT", "/config/NAME-a", {"compatibility": "NONE"}, head)
        yield Step("POST", "/subjects/NAME-a/versions", body(A), head)
        yield Step("GET", "/subjects/NAME-a/versions/1/schema", None, head)
        yield Step("GET", "/config/NAME-a", None, head)
        yield Step("DELETE", "/config/NAME-a", None, head)


def _kinds() -> Iterable[Step]:
    for kind in KINDS:
        head = {"Content-Type": kind}
        yield Step("POST", "/subjects/NAME-a/versions", body(A), head)
        yield Step("POST", "/subjects/NAME-a", body(A), head)
        yield Step("PUT", "/config/NAME-a", {"compatibility": "NONE"}, head)
        yield Step("PUT", "/mode/NAME-a", {"mode": "READWRITE"}, head)
        yield Step("POST", "/", {}, head)


def _paths() -> Iterable[Step]:
    for path in PATHS:
        for method in METHODS:
            if (method, path) not in (("DELETE", "/contexts"),):
                yield Step(method, path, {} if method in ("POST", "PUT", "PATCH") else None)
        if "?" not in path:
            yield Step("GET", path + "/")
    yield Step("GET", "/subjects//versions")
    yield Step("GET", "/SUBJECTS")


CONVERSATIONS: Final[tuple[Conversation, ...]] = (
    conversation("accept", _accepts()),
    conversation("content-type", _kinds()),
    conversation("path", _paths()),
)
