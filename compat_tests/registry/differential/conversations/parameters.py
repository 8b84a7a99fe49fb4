"""Values of parameters of the query, and names of subjects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from compat_tests.registry.differential.conversations.schemas import AB, ABC, A, body, proto
from compat_tests.registry.differential.step import Conversation, Step, conversation

FLAGS: Final = ("true", "TRUE", "True", "1", "yes", "false", "", "x", "true&PARAM=false", " true")
NUMBERS: Final = ("0", "1", "2", "-1", "-5", "99", "", "x", "1.5", "3000000000", "+1", " 1", "1&PARAM=2")
LISTS: Final = (
    "/subjects",
    "/subjects/NAME-s/versions",
    "/schemas",
    "/schemas/ids/@1/subjects",
    "/schemas/ids/@1/versions",
    "/subjects/NAME-s/versions/1/referencedby",
)
NAMES: Final = (
    "a b",
    "a%2Fb",
    "a%25b",
    "%C3%A9",
    "a%0Ab",
    "a%00b",
    "%20",
    "__GLOBAL",
    "__EMPTY",
    ":",
    "::",
    "a:b",
    "a%2F",
    "a%3Fb",
    "..",
    "%2E%2E",
    "a+b",
    "a;b",
    "a%22b",
    "%F0%9F%98%80",
    "%FF",
    "a" * 300,
    "a" * 1100,
)


def _three() -> Iterable[Step]:
    for text in (A, AB, ABC):
        yield Step("POST", "/subjects/NAME-s/versions", body(text))
    yield Step("DELETE", "/subjects/NAME-s/versions/2")


def _flags() -> Iterable[Step]:
    yield from _three()
    for path, parameter in (
        ("/subjects/NAME-s/versions", "deleted"),
        ("/subjects/NAME-s/versions", "deletedOnly"),
        ("/subjects/NAME-s/versions/2", "deleted"),
        ("/schemas/ids/@2/versions", "deleted"),
        ("/config/NAME-s", "defaultToGlobal"),
        ("/mode/NAME-s", "defaultToGlobal"),
        ("/schemas/ids/@1", "fetchMaxId"),
    ):
        for value in FLAGS:
            yield Step("GET", f"{path}?{parameter}={value.replace('PARAM', parameter)}")
    for value in FLAGS:
        yield Step("POST", f"/subjects/NAME-s?deleted={value.replace('PARAM', 'deleted')}", body(AB))
        yield Step("POST", f"/subjects/NAME-s?normalize={value.replace('PARAM', 'normalize')}", body(A))
        yield Step("DELETE", f"/subjects/NAME-none?permanent={value.replace('PARAM', 'permanent')}")
        yield Step(
            "POST",
            f"/compatibility/subjects/NAME-s/versions/1?verbose={value.replace('PARAM', 'verbose')}",
            body('"int"'),
        )


def _pages() -> Iterable[Step]:
    yield from _three()
    for path in LISTS:
        for parameter in ("offset", "limit"):
            for value in NUMBERS:
                prefix = "&subjectPrefix=NAME" if path in ("/subjects", "/schemas") else ""
                yield Step("GET", f"{path}?{parameter}={value.replace('PARAM', parameter)}{prefix}")
        yield Step(
            "GET", f"{path}?offset=1&limit=1{'&subjectPrefix=NAME' if path in ('/subjects', '/schemas') else ''}"
        )
    for value in ("x", "1.5", "3000000000", "0x1", "-1", "007"):
        yield Step("GET", f"/schemas/ids/{value}")


def _formats() -> Iterable[Step]:
    yield Step("POST", "/subjects/NAME-p/versions", body(proto("a"), "PROTOBUF"))
    yield Step("POST", "/subjects/NAME-a/versions", body(A))
    for form in ("serialized", "ignore_extensions", "no_default", "resolved", "x", ""):
        for path in (
            "/subjects/NAME-p/versions/1",
            "/subjects/NAME-p/versions/1/schema",
            "/schemas/ids/@1",
            "/schemas/guids/@g1",
            "/subjects/NAME-a/versions/1",
            "/schemas/ids/@2/schema",
        ):
            if form != "serialized" or "NAME-a" in path or "@2" in path:
                yield Step("GET", f"{path}?format={form}")
        yield Step("POST", f"/subjects/NAME-a/versions?format={form}", body(A))


def _name(name: str) -> Iterable[Step]:
    for own in (f"NAME-{name}", name):
        yield Step("POST", f"/subjects/{own}/versions", body(A))
        yield Step("GET", f"/subjects/{own}/versions/1")
        yield Step("PUT", f"/config/{own}", {"compatibility": "NONE"})
        yield Step("GET", f"/mode/{own}")
        yield Step("DELETE", f"/config/{own}")
        yield Step("DELETE", f"/subjects/{own}")


CONVERSATIONS: Final[tuple[Conversation, ...]] = (
    conversation("flag", _flags()),
    conversation("page", _pages()),
    conversation("format", _formats()),
    *(conversation(f"name-{number}", _name(name)) for number, name in enumerate(NAMES)),
)
