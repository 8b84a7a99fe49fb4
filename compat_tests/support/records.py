"""Records as every client can write and read them, and the sets that the tests send."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Record:
    """One record. Text is UTF-8 with surrogate escapes, so that any byte survives JSON;
    a value of `LONG_VALUE` or more is identified by its digest."""

    value: str | None
    key: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    topic: str = field(default="", compare=False)
    partition: int = field(default=0, compare=False)
    offset: int = field(default=-1, compare=False)
    timestamp: int = field(default=-1, compare=False)


LONG_VALUE = 10_000


def digest(value: bytes) -> str:
    """What stands for a long value where it is compared: its length and hash."""
    return f"{len(value)} bytes, sha256 {hashlib.sha256(value).hexdigest()}"


def make_records(tag: str, count: int, headers: tuple[tuple[str, str], ...] = ()) -> list[Record]:
    """`count` records whose values tell who wrote them and in which order; they compress, and hold non-ASCII bytes."""
    padding = "kpybroker \xe6\xf8\xe5 " * 8
    return [Record(f"{tag} {n} {padding}", f"key-{n % 7}", headers) for n in range(count)]
