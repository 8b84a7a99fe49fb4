"""Members of other types than they should be, missing and unknown ones, and bodies that are no objects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from compat_tests.registry.differential.conversations.schemas import AB, A, body
from compat_tests.registry.differential.step import Conversation, Raw, Step, conversation

VALUES: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    1.5,
    3_000_000_000,
    "",
    " ",
    "1",
    "x",
    "true",
    {},
    {"a": 1},
    [],
    [1],
    ["x"],
)
MEMBERS: Final = (
    "schema",
    "schemaType",
    "references",
    "metadata",
    "ruleSet",
    "id",
    "version",
    "subject",
    "guid",
    "deleted",
    "ts",
    "schemaTags",
    "propagateSchemaTags",
    "schemaTagsToAdd",
    "schemaTagsToRemove",
    "unknown",
)


def _rule(kind: str, mode: str, **more: Any) -> dict[str, Any]:
    return {"name": "r", "kind": kind, "mode": mode, "type": "CEL"} | more


def _refer(version: Any, **more: Any) -> dict[str, Any]:
    return {"references": [{"name": "n", "subject": "NAME-none", "version": version, **more}]}


NOTHING: Final[tuple[Any, ...]] = (None, {}, 1)
REFERENCES: Final[tuple[Any, ...]] = (*NOTHING, {"name": "a"}, {"name": 1, "subject": 2, "version": 3})
REFERRED: Final[tuple[Any, ...]] = (1, "1", "x", None, 1.5, -1, {})
TAGS: Final[tuple[Any, ...]] = (*NOTHING, [], {"a": "x"}, {"a": ["x"]}, {"a": [1]})
PROPERTIES: Final[tuple[Any, ...]] = (*NOTHING, [], {"a": "x"}, {"a": 1}, {"a": None}, {"a": {}})
SENSITIVE: Final[tuple[Any, ...]] = (None, [], 1, {}, ["x"], [1])
RULES: Final[tuple[Any, ...]] = (None, [], 1, {}, [1], [{}], [{"name": "r"}], [{"name": "r", "unknown": 1}])
DOMAIN: Final = (
    ("CONDITION", "WRITE"),
    ("TRANSFORM", "READ"),
    ("x", "WRITE"),
    ("CONDITION", "x"),
    ("CONDITION", "UPGRADE"),
    ("condition", "write"),
)
MIGRATION: Final = (("TRANSFORM", "UPGRADE"), ("TRANSFORM", "WRITE"), ("CONDITION", "UPDOWN"))
INNER: Final[tuple[dict[str, Any], ...]] = (
    *({"references": [value]} for value in REFERENCES),
    *(_refer(value) for value in REFERRED),
    _refer(1, more=1),
    *({"metadata": {"tags": value}} for value in TAGS),
    *({"metadata": {"properties": value}} for value in PROPERTIES),
    *({"metadata": {"sensitive": value}} for value in SENSITIVE),
    {"metadata": {"unknown": 1}},
    *({"ruleSet": {"domainRules": value}} for value in RULES),
    *({"ruleSet": {"domainRules": [_rule(kind, mode)]}} for kind, mode in DOMAIN),
    *({"ruleSet": {"migrationRules": [_rule(kind, mode, type="JSONATA")]}} for kind, mode in MIGRATION),
    {"ruleSet": {"domainRules": [_rule("CONDITION", "WRITE")] * 2}},
    {"ruleSet": {"encodingRules": [_rule("TRANSFORM", "WRITEREAD", type="ENCRYPT")]}},
    {"ruleSet": {"unknown": []}},
    {"ruleSet": {"domainRules": [_rule("CONDITION", "WRITE", name="1 r")]}},
)
TYPES: Final = ("AVRO", "avro", "Json", "JSON", "PROTOBUF", "protobuf", "XML", "AVRO ")
RAW: Final = (
    "",
    " ",
    "null",
    "[]",
    "[1]",
    "1",
    '"x"',
    "true",
    "{",
    "{}",
    '{"schema"}',
    "{'schema':'1'}",
    "x",
    '{"schema":"\\"int\\""} x',
    '{"schema":"\\"int\\"",}',
    '{"schema":"\\"int\\"","schema":"\\"long\\""}',
    '{"schema":"\\ud800"}',
)
WRITING: Final = (
    "POST /subjects/NAME-SUB/versions",
    "POST /subjects/NAME-SUB",
    "POST /compatibility/subjects/NAME-SUB/versions/latest",
)
SETTING: Final = ("PUT /config/NAME-SUB", "PUT /mode/NAME-SUB")
CONFIG: Final = (
    "compatibility",
    "compatibilityLevel",
    "normalize",
    "alias",
    "compatibilityGroup",
    "compatibilityPolicy",
    "defaultMetadata",
    "overrideMetadata",
    "defaultRuleSet",
    "overrideRuleSet",
    "validateFields",
    "validateNewSchemas",
    "validateRules",
    "unknown",
)


def _step(route: str, subject: str, sent: Any) -> Step:
    method, path = route.split(" ")
    return Step(method, path.replace("SUB", subject), sent)


def _member(member: str) -> Iterable[Step]:
    yield Step("POST", "/subjects/NAME-has/versions", body(A))
    for number, value in enumerate(VALUES):
        sent = {"schema": A, member: value}
        yield _step(WRITING[0], f"new{number}", sent)
        for route in WRITING:
            yield _step(route, "has", sent)


def _inner(more: dict[str, Any]) -> Iterable[Step]:
    yield Step("POST", "/subjects/NAME-has/versions", body(A))
    yield _step(WRITING[0], "new", {"schema": AB, **more})
    yield _step(WRITING[1], "has", {"schema": A, **more})
    yield Step("GET", "/subjects/NAME-new/versions/1")


def _types() -> Iterable[Step]:
    for number, kind in enumerate(TYPES):
        yield _step(WRITING[0], f"kind{number}", body('{"type":"string"}', kind))


def _raw() -> Iterable[Step]:
    yield Step("POST", "/subjects/NAME-has/versions", body(A))
    for number, text in enumerate(RAW):
        for route in (*WRITING, *SETTING):
            yield _step(route, "has", Raw(text))
        yield _step(WRITING[0], f"new{number}", Raw(text))
    for route in (*WRITING, *SETTING):
        yield _step(route, "has", None)


def _setting(member: str) -> Iterable[Step]:
    for number, value in enumerate((*VALUES, "NONE", "full", "BACKWARD_TRANSITIVE")):
        yield _step("PUT /config/NAME-SUB", f"n{number}", {member: value})
        yield _step("GET /config/NAME-SUB", f"n{number}", None)
    yield _step("PUT /config/NAME-SUB", "both", {"compatibility": "FULL", member: None})
    yield _step("PUT /config/NAME-SUB", "both", {"normalize": True})
    yield _step("GET /config/NAME-SUB", "both", None)
    yield _step("DELETE /config/NAME-SUB", "both", None)


def _mode() -> Iterable[Step]:
    for number, value in enumerate(
        (*VALUES, "READONLY", "readonly", "IMPORT", "FORWARD", "READONLY_OVERRIDE", "READWRITE")
    ):
        yield _step("PUT /mode/NAME-SUB", f"n{number}", {"mode": value})
        yield _step("GET /mode/NAME-SUB", f"n{number}", None)
    for sent in ({}, {"unknown": 1}, {"mode": "READONLY", "unknown": 1}):
        yield _step("PUT /mode/NAME-SUB", "more", sent)


CONVERSATIONS: Final[tuple[Conversation, ...]] = (
    *(conversation(f"member-{member}", _member(member)) for member in MEMBERS),
    *(conversation(f"inner-{number}", _inner(more)) for number, more in enumerate(INNER)),
    conversation("types", _types()),
    conversation("raw", _raw()),
    *(conversation(f"config-{member}", _setting(member)) for member in CONFIG),
    conversation("mode-values", _mode()),
)
