"""Schemas that refer to others: right, missing, deleted; who refers to what."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from compat_tests.registry.differential.conversations.schemas import body
from compat_tests.registry.differential.step import Conversation, Step, conversation

MONEY: Final = 'syntax = "proto3";\npackage shop;\n\nmessage Money {\n  int64 units = 1;\n}\n'
BILL: Final = 'syntax = "proto3";\npackage shop;\n\nimport "money.proto";\n\nmessage Bill {\n  Money sum = 1;\n}\n'
TARGETS: Final[dict[str, tuple[str, str, str, str, str]]] = {
    "AVRO": (
        "Address",
        '{"type":"record","name":"Address","fields":[{"name":"city","type":"string"}]}',
        '{"type":"record","name":"Home","fields":[{"name":"at","type":"Address"}]}',
        '{"type":"record","name":"Home","fields":[{"name":"at","type":["null","Address"],"default":null}]}',
        '"int"',
    ),
    "PROTOBUF": (
        "money.proto",
        MONEY,
        BILL,
        BILL.replace("sum = 1;", "sum = 1;\n  string note = 2;"),
        MONEY.replace("units", "cents"),
    ),
    "JSON": (
        "money.json",
        '{"type":"number"}',
        '{"type":"object","properties":{"a":{"$ref":"money.json"}}}',
        '{"type":"object","properties":{"a":{"$ref":"money.json"},"b":{"type":"string"}}}',
        '{"type":"string"}',
    ),
}


def _of(kind: str) -> Iterable[Step]:
    name, target, user, other, _ = TARGETS[kind]

    def one(version: Any = 1, subject: str = "NAME-t", named: str = name) -> dict[str, Any]:
        return {"name": named, "subject": subject, "version": version}

    yield Step("POST", "/subjects/NAME-t/versions", body(target, kind))
    yield Step("POST", "/subjects/NAME-u/versions", body(user, kind))
    for references in (
        [one()],
        [one(-1)],
        [one(9)],
        [one(0)],
        [one(1, "NAME-no")],
        [one(named="other")],
        [one(), one()],
        [one(), one(named="more")],
        [one(1, "")],
    ):
        for path in (
            "/subjects/NAME-u/versions",
            "/subjects/NAME-u",
            "/compatibility/subjects/NAME-u/versions/latest?verbose=true",
        ):
            yield Step("POST", path, body(user, kind, references=references))
    yield Step("POST", "/subjects/NAME-u/versions", body(other, kind, references=[one()]))
    numbered = {"properties": {"of": "v"}}
    yield Step("POST", "/subjects/NAME-v/versions", body(user, kind, references=[one(-1)], metadata=numbered))
    for path in (
        "/subjects/NAME-u/versions/1",
        "/subjects/NAME-v/versions/1",
        "/schemas/ids/@2",
        "/subjects/NAME-t/versions/1/referencedby",
        "/subjects/NAME-t/versions/latest/referencedby",
        "/subjects/NAME-u/versions/1/schema",
        "/subjects/NAME-u/versions/1?format=resolved",
        "/subjects/NAME-u/versions/1?referenceFormat=DEFAULT",
    ):
        yield Step("GET", path)
    for path in (
        "/subjects/NAME-t/versions/1",
        "/subjects/NAME-t",
        "/subjects/NAME-t?permanent=true",
        "/subjects/NAME-u/versions/1",
        "/subjects/NAME-t/versions/1",
        "/subjects/NAME-u",
        "/subjects/NAME-v",
        "/subjects/NAME-t/versions/1",
        "/subjects/NAME-u?permanent=true",
        "/subjects/NAME-v?permanent=true",
        "/subjects/NAME-t/versions/1?permanent=true",
    ):
        yield Step("DELETE", path)
        yield Step("GET", "/subjects/NAME-t/versions/1/referencedby")
    yield Step("POST", "/subjects/NAME-u/versions", body(user, kind, references=[one()]))
    yield Step("DELETE", "/subjects/NAME-t?permanent=true")


def _shared(kind: str) -> Iterable[Step]:
    """Two subjects with one schema, which refers to another: one of them is deleted."""
    name, target, user, _, _ = TARGETS[kind]
    sent = body(user, kind, references=[{"name": name, "subject": "NAME-t", "version": 1}])
    yield Step("POST", "/subjects/NAME-t/versions", body(target, kind))
    for subject in ("u", "v"):
        yield Step("POST", f"/subjects/NAME-{subject}/versions", sent)
    yield Step("GET", "/subjects/NAME-t/versions/1/referencedby")
    yield Step("DELETE", "/subjects/NAME-u/versions/1")
    yield Step("GET", "/subjects/NAME-t/versions/1/referencedby")
    yield Step("DELETE", "/subjects/NAME-t/versions/1")


def _softly_deleted(kind: str) -> Iterable[Step]:
    """A schema that was deleted softly refers to one that is to be deleted for good."""
    name, target, user, _, _ = TARGETS[kind]
    sent = body(user, kind, references=[{"name": name, "subject": "NAME-t", "version": 1}])
    yield Step("POST", "/subjects/NAME-t/versions", body(target, kind))
    yield Step("POST", "/subjects/NAME-u/versions", sent)
    for path in ("/subjects/NAME-u", "/subjects/NAME-t", "/subjects/NAME-t/versions/1?permanent=true"):
        yield Step("DELETE", path)


def _nameless(kind: str) -> Iterable[Step]:
    """A reference without a name."""
    _, target, user, _, _ = TARGETS[kind]
    sent = body(user, kind, references=[{"name": "", "subject": "NAME-t", "version": 1}])
    yield Step("POST", "/subjects/NAME-t/versions", body(target, kind))
    yield Step("POST", "/subjects/NAME-u/versions", sent)
    yield Step("POST", "/subjects/NAME-u", sent)
    yield Step("GET", "/subjects/NAME-u/versions/1")


def _contextual() -> Iterable[Step]:
    """References from a context, as they are and as they are named outside."""
    _, target, user, _, _ = TARGETS["AVRO"]
    for mark in ("", ":.NAME:"):
        sent = body(user, references=[{"name": "Address", "subject": "NAME-t", "version": 1}])
        yield Step("POST", f"/subjects/{mark}NAME-t/versions", body(target))
        yield Step("POST", f"/subjects/{mark}NAME-u/versions", sent)
        for query in ("", "?referenceFormat=qualified", "?referenceFormat=x"):
            yield Step("GET", f"/subjects/{mark}NAME-u/versions/1{query}")
        yield Step("GET", f"/schemas/ids/@2?referenceFormat=qualified&subject={mark}NAME-u")
        yield Step("GET", f"/subjects/{mark}NAME-t/versions/1/referencedby")


CONVERSATIONS: Final[tuple[Conversation, ...]] = (
    *(conversation(f"reference-{kind}", _of(kind)) for kind in TARGETS),
    *(conversation(f"nameless-{kind}", _nameless(kind)) for kind in TARGETS),
    *(conversation(f"shared-{kind}", _shared(kind)) for kind in TARGETS),
    *(conversation(f"soft-{kind}", _softly_deleted(kind)) for kind in TARGETS),
    conversation("contextual", _contextual()),
)
