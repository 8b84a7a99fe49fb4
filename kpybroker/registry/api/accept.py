"""`chosen`: the type of a response, among those that the client accepts."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
OFFERED: Final = {CONTENT_TYPE: 1.0, "application/vnd.schemaregistry+json": 0.9, "application/json": 0.5}
"""With the weights of Confluent's registry, which decide between types that the client likes the same."""
RANGES_MAX: Final = 100
HEADERS_KEPT: Final = 16
"""Clients send the same ones."""


class _Range(NamedTuple):
    kind: str
    weight: float

    def likes(self, offered: str) -> bool:
        return self.kind in ("*/*", "*", offered, offered.partition("/")[0] + "/*")

    @property
    def stars(self) -> int:
        return 2 if self.kind == "*" else self.kind.count("*")


@lru_cache(HEADERS_KEPT)
def chosen(accept: str) -> str | None:
    """None where none of the offered types is accepted. Without a word of the client all are."""
    ranges = [_parsed(one) for one in accept.split(",")[:RANGES_MAX] if one.strip()] or [_Range("*/*", 1.0)]
    found = [(-one.stars, one.weight, OFFERED[kind], kind) for one in ranges for kind in OFFERED if one.likes(kind)]
    return max(found)[3] if found else None


def _parsed(text: str) -> _Range:
    kind, *parameters = (part.strip().lower() for part in text.split(";"))
    weight = 1.0
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                weight = min(1.0, max(0.0, float(parameter[2:])))
            except ValueError:
                weight = 0.0
    return _Range(kind, weight)
