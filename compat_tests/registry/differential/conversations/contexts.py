"""Contexts: subjects, ids, configurations and modes of them, and paths below `/contexts`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from compat_tests.registry.differential.conversations.schemas import AB, BROKEN, A, body
from compat_tests.registry.differential.step import Conversation, Step, conversation

SUBJECTS: Final = (
    "NAME-s",
    ":.NAME:s",
    ":.:NAME-s",
    ":.NAME:",
    ":.NAME",
    "NAME:s",
    ":NAME:s",
    ":.:",
    ":*:NAME-s",
    ":.NAME:a:b",
    ":.__GLOBAL:",
    ":.__GLOBAL:x",
    ":.NAME.b:s",
)
READS: Final = (
    "/subjects/SUB/versions",
    "/subjects/SUB/versions/1",
    "/config/SUB",
    "/mode/SUB",
    "/config/SUB?defaultToGlobal=true",
    "/mode/SUB?defaultToGlobal=true",
    "/subjects?subjectPrefix=SUB",
    "/schemas?subjectPrefix=SUB",
    "/schemas/ids/@1?subject=SUB",
    "/schemas/ids/@1/subjects?subject=SUB",
    "/schemas/ids/@1/versions?subject=SUB",
)
BELOW: Final = (
    "/subjects",
    "/subjects/s/versions",
    "/subjects/s/versions/1",
    "/schemas",
    "/schemas/ids/@1",
    "/schemas/ids/@1/versions",
    "/config",
    "/mode",
    "/config/s",
    "/mode/s",
    "/schemas/types",
    "/v1/metadata/id",
    "/no-such",
    "",
)


def _of(number: int, subject: str) -> Iterable[Step]:
    yield Step("POST", f"/subjects/{subject}/versions", body(A))
    yield Step("POST", f"/subjects/{subject}/versions", body(AB))
    yield Step("POST", "/subjects/:.NAME:other/versions", body(A))
    for path in READS:
        yield Step("GET", path.replace("SUB", subject))
    yield Step("POST", f"/subjects/{subject}", body(A))
    yield Step("POST", f"/compatibility/subjects/{subject}/versions/latest", body(BROKEN))
    if subject not in (":.:", ":.__GLOBAL:"):
        yield Step("PUT", f"/config/{subject}", {"compatibility": "NONE"})
        yield Step("POST", f"/subjects/{subject}/versions", body(BROKEN))
        yield Step("PUT", f"/mode/{subject}", {"mode": "READONLY"})
        yield Step("POST", f"/subjects/{subject}/versions", body('"int"'))
        for path in READS[2:6]:
            yield Step("GET", path.replace("SUB", subject))
        yield Step("DELETE", f"/mode/{subject}")
        yield Step("DELETE", f"/config/{subject}")
    yield Step("DELETE", f"/subjects/{subject}/versions/1")
    yield Step("DELETE", f"/subjects/{subject}")
    yield Step("DELETE", f"/subjects/{subject}?permanent=true")


def _below(context: str) -> Iterable[Step]:
    yield Step("POST", f"/contexts/{context}/subjects/NAME-s/versions", body(A))
    yield Step("GET", "/subjects?subjectPrefix=:.NAME:")
    for path in BELOW:
        if not (context == "." and path in ("/subjects", "/schemas", "")):
            yield Step("GET", f"/contexts/{context}{path}")
    yield Step("POST", f"/contexts/{context}/subjects/NAME-s", body(A))
    yield Step("POST", f"/contexts/{context}/compatibility/subjects/NAME-s/versions/latest", body(BROKEN))
    yield Step("PUT", f"/contexts/{context}/config/NAME-s", {"compatibility": "NONE"})
    yield Step("GET", "/config/:.NAME:NAME-s")
    yield Step("DELETE", f"/contexts/{context}/config/NAME-s")
    yield Step("DELETE", f"/contexts/{context}")
    yield Step("DELETE", f"/contexts/{context}/subjects/NAME-s")
    yield Step("DELETE", f"/contexts/{context}")
    yield Step("DELETE", f"/contexts/{context}/subjects/NAME-s?permanent=true")
    yield Step("DELETE", f"/contexts/{context}")
    yield Step("DELETE", f"/contexts/{context}")


CONVERSATIONS: Final[tuple[Conversation, ...]] = (
    *(conversation(f"cx{number}", _of(number, subject)) for number, subject in enumerate(SUBJECTS)),
    *(
        conversation(f"cb{number}", _below(context))
        for number, context in enumerate((".NAME", "NAME", ":.NAME:", ":NAME:", ".", "NAME:x", "%20", ".NAME.b"))
    ),
)
