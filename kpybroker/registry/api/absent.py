"""What Confluent's registries have and this one has not, by path: what a client asks for is refused by its name."""

from __future__ import annotations

from typing import Final, NamedTuple

TAGS: Final = "/subjects/{subject}/versions/{version}/tags"


class Absent(NamedTuple):
    """`paths` are there in a registry that has it; `start` is what all of them begin with, unless it is empty.

    `there` says which of Confluent's registries those are.
    """

    what: str
    start: str
    there: str
    paths: tuple[str, ...]


KEYS: Final = "/dek-registry/v1/keks"
KEY: Final = KEYS + "/{name}"
DATA_KEY: Final = KEY + "/deks/{subject}"
EXPORTER: Final = "/exporters/{name}"
RESOURCE: Final = "/associations/resources/{resourceId}"
PLATFORM: Final = "Enterprise, Cloud"

ABSENT: Final = (
    Absent("tags that are written into the text of a schema", "", "yes", (f"POST {TAGS}",)),
    Absent(
        "associations of topics with subjects",
        "/associations",
        "from 8.1.2 on",
        (
            "POST /associations",
            "POST /associations:batchGet",
            "POST /associations:batchMutate",
            *(f"{method} {RESOURCE}" for method in ("GET", "PUT", "DELETE")),
            "GET /associations/resources/{resourceNamespace}/{resourceName}",
            "GET /associations/subjects/{subject}",
        ),
    ),
    Absent(
        "keys for the encryption of fields",
        "/dek-registry",
        "with an extension",
        (
            f"GET {KEYS}",
            f"POST {KEYS}",
            *(f"{method} {KEY}" for method in ("GET", "PUT", "DELETE")),
            f"POST {KEY}/undelete",
            f"POST {KEY}/test",
            f"GET {KEY}/deks",
            f"POST {KEY}/deks",
            *(f"{method} {DATA_KEY}" for method in ("GET", "POST", "DELETE")),
            f"POST {DATA_KEY}/undelete",
            f"GET {DATA_KEY}/versions",
            *(f"{method} {DATA_KEY}/versions/{{version}}" for method in ("GET", "DELETE")),
            f"POST {DATA_KEY}/versions/{{version}}/undelete",
        ),
    ),
    Absent(
        "exporters to another registry",
        "/exporters",
        PLATFORM,
        (
            "GET /exporters",
            "POST /exporters",
            *(f"{method} {EXPORTER}" for method in ("GET", "PUT", "DELETE")),
            *(f"{method} {EXPORTER}/config" for method in ("GET", "PUT")),
            f"GET {EXPORTER}/status",
            *(f"PUT {EXPORTER}/{change}" for change in ("pause", "resume", "reset")),
        ),
    ),
    Absent("catalog of tags and business metadata", "/catalog", PLATFORM, ("GET /catalog/v1/...",)),
)


def missing(path: str) -> str | None:
    """What a path belongs to that is not here; None for any other path that is no route."""
    for one in ABSENT:
        if one.start and (path == one.start or path.startswith((f"{one.start}/", f"{one.start}:"))):
            return one.what
    parts = path.split("/")
    return ABSENT[0].what if len(parts) == 6 and parts[1::2] == ["subjects", "versions", "tags"] else None
