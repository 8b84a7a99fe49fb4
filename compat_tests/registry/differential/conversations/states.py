"""Every way to read, of every state that a subject can be in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from compat_tests.registry.differential.conversations.schemas import AB, ABC, METADATA, A, body, proto, shape
from compat_tests.registry.differential.step import Conversation, Step, conversation

SUBJECT: Final = "NAME-s"


def put(text: str, subject: str = SUBJECT, **more: Any) -> Step:
    """A registration."""
    return Step("POST", f"/subjects/{subject}/versions", body(text, **more))


THREE: Final = (put(A), put(AB), put(ABC))
STATES: Final[dict[str, tuple[Step, ...]]] = {
    "none": (),
    "one": (put(A),),
    "three": THREE,
    "soft": (*THREE, Step("DELETE", f"/subjects/{SUBJECT}/versions/2")),
    "last": (*THREE, Step("DELETE", f"/subjects/{SUBJECT}/versions/latest")),
    "gone": (
        *THREE,
        Step("DELETE", f"/subjects/{SUBJECT}/versions/1"),
        Step("DELETE", f"/subjects/{SUBJECT}/versions/1?permanent=true"),
    ),
    "all": (*THREE, Step("DELETE", f"/subjects/{SUBJECT}")),
    "never": (*THREE, Step("DELETE", f"/subjects/{SUBJECT}"), Step("DELETE", f"/subjects/{SUBJECT}?permanent=true")),
    "again": (put(A), put(AB), Step("DELETE", f"/subjects/{SUBJECT}"), put(AB), put(A)),
    "metadata": (put(A, metadata=METADATA), put(A), put(AB, metadata={"properties": {"owner": "bob"}})),
    "json": (put(shape("a"), kind="JSON"), put(shape("a", "b"), kind="JSON")),
    "protobuf": (put(proto("a"), kind="PROTOBUF"), put(proto("a", "b"), kind="PROTOBUF")),
}
VERSIONS: Final = ("1", "2", "3", "9", "latest", "-1", "0", "x", "2147483648", "-2", "1.0", "LATEST")
LOOKED_UP: Final[tuple[dict[str, Any], ...]] = (
    body(A),
    body(ABC),
    body('"int"'),
    body(A, metadata=METADATA),
    body("{"),
    body(A, "JSON"),
    {},
)
FLAGS: Final = ("", "?deleted=true", "?deletedOnly=true")


def _reads() -> Iterable[Step]:
    for flags in FLAGS:
        yield Step("GET", f"/subjects/{SUBJECT}/versions{flags}")
        yield Step("GET", "/subjects" + (flags + "&" if flags else "?") + "subjectPrefix=NAME")
    for version in VERSIONS:
        for flags in FLAGS[:2]:
            yield Step("GET", f"/subjects/{SUBJECT}/versions/{version}{flags}")
            yield Step("GET", f"/subjects/{SUBJECT}/versions/{version}/referencedby{flags}")
        yield Step("GET", f"/subjects/{SUBJECT}/versions/{version}/schema")
    yield Step("GET", f"/subjects/{SUBJECT}/versions/2/schema?deleted=true")
    for sent in LOOKED_UP:
        for flags in FLAGS[:2]:
            yield Step("POST", f"/subjects/{SUBJECT}{flags}", sent)
    for query in (
        "",
        "?key=owner&value=ann",
        "?key=owner&value=bob",
        "?key=owner&value=ann&deleted=true",
        "?key=owner",
    ):
        yield Step("GET", f"/subjects/{SUBJECT}/metadata{query}")
    for version in ("1", "2", "latest", "9", "x", "-1"):
        for sent in (body(A), body(ABC), body('"int"'), body("{")):
            verbose = "?verbose=true" if version in ("1", "latest") else ""
            yield Step("POST", f"/compatibility/subjects/{SUBJECT}/versions/{version}{verbose}", sent)
    for flags in ("", "?verbose=true"):
        yield Step("POST", f"/compatibility/subjects/{SUBJECT}/versions{flags}", body('"int"'))
        yield Step("POST", f"/compatibility/subjects/{SUBJECT}/versions{flags}", body(ABC))
    yield from _by_id()
    for flags in ("", "&deleted=true", "&latestOnly=true", "&deleted=true&latestOnly=true", "&limit=1&offset=1"):
        yield Step("GET", f"/schemas?subjectPrefix=NAME{flags}")


def _by_id() -> Iterable[Step]:
    for number in ("@1", "@2", "99999"):
        for tail in ("", "/schema", "/subjects", "/subjects?deleted=true", "/versions", "/versions?deleted=true"):
            yield Step("GET", f"/schemas/ids/{number}{tail}")
        yield Step("GET", f"/schemas/ids/{number}?subject={SUBJECT}")
        yield Step("GET", f"/schemas/ids/{number}?fetchMaxId=true")
    for guid in ("@g1", "@g2", "00000000-0000-0000-0000-000000000000", "x"):
        yield Step("GET", f"/schemas/guids/{guid}")
        yield Step("GET", f"/schemas/guids/{guid}/ids")


def _deletes() -> Iterable[Step]:
    """What is left is deleted in every order of the two steps."""
    for version in ("9", "x", "1", "1", "latest", "-1"):
        for flags in ("?permanent=true", "", "?permanent=true"):
            yield Step("DELETE", f"/subjects/{SUBJECT}/versions/{version}{flags}")
    for flags in ("?permanent=true", "", "", "?permanent=true", "?permanent=true"):
        yield Step("DELETE", f"/subjects/{SUBJECT}{flags}")
    yield Step("GET", f"/subjects/{SUBJECT}/versions?deleted=true")


CONVERSATIONS: Final[tuple[Conversation, ...]] = tuple(
    conversation(f"state-{name}", (*steps, *_reads(), *_deletes())) for name, steps in STATES.items()
)
