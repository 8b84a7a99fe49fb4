"""A request whose body has arrived, and its response, whose body may be made while it is sent."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import NamedTuple


class HttpError(Exception):
    """A request that is refused: the cause in one line, its fix in another, and HTTP's status."""

    def __init__(self, cause: str, fix: str, status: int) -> None:
        super().__init__(cause)
        self.cause = cause
        self.fix = fix
        self.status = status


class Request(NamedTuple):
    """`query` is what follows `?`. Names of headers are in lower case."""

    verb: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    query: str = ""


class Response(NamedTuple):
    """`stream` replaces `body` where it is made in pieces; it is not read for HEAD."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/json"
    stream: AsyncGenerator[bytes, None] | None = None
