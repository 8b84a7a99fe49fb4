"""What a follower sends to the leader is the request that it received, to the byte."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

import httpx
import pytest

from kpybroker.registry.api.forward import Forwarder


def forwarded(target: str, headers: dict[str, str]) -> httpx.Request:
    """What arrives at the leader."""
    seen: list[httpx.Request] = []

    def respond(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200)

    forwarder = Forwarder()
    forwarder._client = httpx.Client(transport=httpx.MockTransport(respond))
    assert forwarder.send("http://127.0.0.1:1", "PUT", target, headers, b"{}").status == 200
    return seen[0]


def parts(target: bytes) -> list[bytes]:
    """The segments of the path, and the query, as the leader understands them."""
    path, _, query = target.partition(b"?")
    return [*map(unquote_to_bytes, path.split(b"/")), unquote_to_bytes(query)]


@pytest.mark.parametrize(
    "target",
    [
        "/config/.",
        "/config/..",
        "/mode/../config/.",
        "/subjects/%2e%2e/versions",
        "/subjects/a%2F..%2Fb/versions/1",
        "/subjects/a#b/versions?subject=a#b",
        "/subjects/%zz%/versions",
        "/subjects/%ED%A0%80",
        "/subjects/:.c:a;b=1/versions?force=true&force",
        '/subjects/"<>[]|\\^`{}',
        "//subjects//a",
    ],
)
def test_no_part_of_a_path_is_resolved(target: str) -> None:
    assert parts(forwarded(target, {}).url.raw_path) == parts(target.encode())


def test_headers_may_have_any_bytes() -> None:
    sent = {"accept": "\xff/\xe9", "authorization": "Basic \xe9", "content-type": "application/json; a=\xe9"}
    headers = dict(forwarded("/config", {**sent, "cookie": "x"}).headers.raw)
    for name, value in sent.items():
        assert headers[name.encode()] == value.encode("latin-1")
    assert b"cookie" not in headers
