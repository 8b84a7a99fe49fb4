"""Configurations and modes: of a subject, of the registry; what they do to registrations."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any, Final

from compat_tests.registry.differential.conversations.schemas import AB, ABC, BROKEN, METADATA, RULES, A, body, record
from compat_tests.registry.differential.step import Conversation, Step, conversation

LEVELS: Final = ("NONE", "BACKWARD", "FORWARD", "FULL", "BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE")
MODES: Final = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")

OTHER: Final[dict[str, Any]] = {"properties": {"owner": "bob"}}
IMPORTED: Final[tuple[dict[str, Any], ...]] = (
    body(A),
    body(AB, id=70_000),
    body('"int"', id=70_001, version=5),
    body(ABC, version=7),
    body('"long"', id=70_000),
)
EMPTY: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"schema": ""},
    {"schema": " "},
    {"schema": "{}"},
    {"schema": None},
    {"metadata": METADATA},
    {"schemaType": "PROTOBUF"},
)
ATTACHED: Final[tuple[dict[str, Any], ...]] = (
    body(A),
    {"metadata": OTHER},
    {},
    body(AB),
    body(AB, metadata=OTHER),
    body(A, metadata=METADATA),
    {"schema": ""},
    {"schema": "  "},
    {"schema": "{}"},
    {"schema": None},
    body(ABC),
    {"metadata": METADATA},
    {"metadata": {}},
    {"schemaType": "JSON"},
    {"schemaType": "JSON", "schema": "{}"},
    {"version": 3},
    {"version": -1},
    {"version": 99},
)


def _level(level: str) -> Iterable[Step]:
    for number, (first, second) in enumerate(product((A, AB, BROKEN), (ABC, '"int"', record("b"), A))):
        subject = f"NAME-{number}"
        yield Step("PUT", f"/config/{subject}", {"compatibility": level})
        yield Step("POST", f"/subjects/{subject}/versions", body(first))
        yield Step("POST", f"/compatibility/subjects/{subject}/versions/latest", body(second))
        yield Step("POST", f"/subjects/{subject}/versions", body(second))


def _mode(mode: str) -> Iterable[Step]:
    yield Step("POST", "/subjects/NAME-s/versions", body(A))
    yield Step("PUT", "/mode/NAME-s", {"mode": mode})
    yield Step("PUT", "/mode/NAME-s?force=true", {"mode": mode})
    yield Step("PUT", "/mode/NAME-new", {"mode": mode})
    for subject in ("s", "new"):
        yield Step("GET", f"/mode/NAME-{subject}")
        for sent in IMPORTED:
            yield Step("POST", f"/subjects/NAME-{subject}/versions", sent)
        yield Step("POST", f"/subjects/NAME-{subject}", body(A))
        yield Step("PUT", f"/config/NAME-{subject}", {"compatibility": "FULL"})
        yield Step("DELETE", f"/config/NAME-{subject}")
        yield Step("DELETE", f"/subjects/NAME-{subject}/versions/1")
        yield Step("DELETE", f"/subjects/NAME-{subject}")
        yield Step("GET", f"/mode/NAME-{subject}?defaultToGlobal=true")
        yield Step("DELETE", f"/mode/NAME-{subject}")
        yield Step("DELETE", f"/mode/NAME-{subject}")
        yield Step("GET", f"/mode/NAME-{subject}")


def _global() -> Iterable[Step]:
    yield Step("GET", "/config")
    yield Step("GET", "/mode")
    yield Step("POST", "/subjects/NAME-s/versions", body(A))
    for level in LEVELS:
        yield Step("PUT", "/config", {"compatibility": level})
        yield Step("GET", "/config")
        yield Step("GET", "/config/NAME-s?defaultToGlobal=true")
        yield Step("POST", "/compatibility/subjects/NAME-s/versions/latest", body(BROKEN))
    yield Step("PUT", "/config", {"normalize": True})
    yield Step("PUT", "/config", {"unknown": 1})
    yield Step("GET", "/config")
    yield Step("DELETE", "/config")
    yield Step("GET", "/config")
    yield Step("DELETE", "/config")
    for mode in MODES[1:]:
        yield Step("PUT", "/mode", {"mode": mode})
        yield Step("GET", "/mode")
        yield Step("GET", "/mode/NAME-s?defaultToGlobal=true")
        yield Step("POST", "/subjects/NAME-s/versions", body(AB))
        yield Step("PUT", "/config", {"compatibility": "BACKWARD"})
        yield Step("DELETE", "/mode")
        yield Step("PUT", "/mode", {"mode": "READWRITE"})
    yield Step("DELETE", "/config")
    yield Step("DELETE", "/mode")


def _attached() -> Iterable[Step]:
    """Metadata and rules: inherited, replaced, defaults and overrides of the configuration."""
    put = "/subjects/NAME-s/versions"
    yield Step("POST", put, body(A, metadata=METADATA))
    for sent in ATTACHED:
        yield Step("POST", put, sent)
        yield Step("POST", "/subjects/NAME-s", sent)
        yield Step("GET", "/subjects/NAME-s/versions")
        yield Step("GET", "/subjects/NAME-s/versions/latest")
    for number, sent in enumerate(EMPTY):
        yield Step("POST", f"/subjects/NAME-n{number}/versions", sent)
        yield Step("POST", f"/subjects/NAME-n{number}", sent)
        yield Step("POST", f"/compatibility/subjects/NAME-n{number}/versions/latest", sent)
        yield Step("POST", "/compatibility/subjects/NAME-s/versions/latest", sent)
    for member in ("defaultMetadata", "overrideMetadata"):
        subject = f"NAME-{member}"
        yield Step("PUT", f"/config/{subject}", {member: METADATA})
        yield Step("GET", f"/config/{subject}")
        yield Step("POST", f"/subjects/{subject}/versions", body(A))
        yield Step("POST", f"/subjects/{subject}/versions", body(A, metadata=OTHER))
        yield Step("GET", f"/subjects/{subject}/versions/latest")
        yield Step("POST", f"/subjects/{subject}", body(A))
        yield Step("GET", f"/subjects/{subject}/versions")
        yield Step("DELETE", f"/config/{subject}")


def _rules() -> Iterable[Step]:
    """Rule sets, which Confluent's own community edition takes and drops."""
    put = "/subjects/NAME-s/versions"
    for sent in (
        body(A, ruleSet=RULES),
        body(A),
        {"ruleSet": RULES},
        body(AB),
        body(AB, metadata=METADATA, ruleSet=RULES),
    ):
        yield Step("POST", put, sent)
        yield Step("POST", "/subjects/NAME-s", sent)
        yield Step("GET", "/subjects/NAME-s/versions/latest")
    for member in ("defaultRuleSet", "overrideRuleSet"):
        yield Step("PUT", f"/config/NAME-{member}", {member: RULES})
        yield Step("GET", f"/config/NAME-{member}")
        yield Step("POST", f"/subjects/NAME-{member}/versions", body(A))
        yield Step("POST", f"/subjects/NAME-{member}", body(A))


def _alias() -> Iterable[Step]:
    yield Step("POST", "/subjects/NAME-real/versions", body(A))
    yield Step("PUT", "/config/NAME-alias", {"alias": "NAME-real"})
    for path in (
        "/versions",
        "/versions/1",
        "/versions/latest",
        "/versions/1/schema",
        "/versions/1/referencedby",
        "/metadata",
    ):
        yield Step("GET", f"/subjects/NAME-alias{path}")
    yield Step("POST", "/subjects/NAME-alias", body(A))
    yield Step("POST", "/subjects/NAME-alias/versions", body(AB))
    yield Step("POST", "/compatibility/subjects/NAME-alias/versions/latest", body(BROKEN))
    for path in (
        "/config/NAME-alias",
        "/config/NAME-alias?defaultToGlobal=true",
        "/mode/NAME-alias",
        "/subjects?subjectPrefix=NAME",
        "/schemas?subjectPrefix=NAME&aliases=true",
        "/schemas/ids/@1?subject=NAME-alias",
        "/schemas/ids/@1/subjects",
    ):
        yield Step("GET", path)
    yield Step("DELETE", "/subjects/NAME-alias/versions/1")
    yield Step("DELETE", "/subjects/NAME-alias")
    yield Step("DELETE", "/config/NAME-alias")


def _groups() -> Iterable[Step]:
    yield Step("PUT", "/config/NAME-s", {"compatibilityGroup": "major", "compatibility": "BACKWARD"})
    for text, major in ((A, "1"), (BROKEN, "1"), (BROKEN, "2"), ('"int"', None), ('"long"', None), (AB, "1")):
        more: dict[str, Any] = {} if major is None else {"metadata": {"properties": {"major": major}}}
        yield Step("POST", "/compatibility/subjects/NAME-s/versions/latest?verbose=true", body(text, **more))
        yield Step("POST", "/subjects/NAME-s/versions", body(text, **more))


CONVERSATIONS: Final[tuple[Conversation, ...]] = (
    *(conversation(f"level-{level}", _level(level)) for level in LEVELS),
    *(conversation(f"mode-{mode}", _mode(mode)) for mode in MODES),
    conversation("global", _global()),
    conversation("attached", _attached()),
    conversation("alias", _alias()),
    conversation("rules", _rules()),
    conversation("groups", _groups()),
)
