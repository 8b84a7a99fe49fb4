"""What web pages and silent or greedy clients send to a door, and what it has to say. One table for every door."""

from __future__ import annotations

from typing import Final, NamedTuple


class Attack(NamedTuple):
    """A request of a kind that must be refused. `verb` and `headers` replace those of a good one."""

    kind: str
    status: int
    headers: tuple[tuple[str, str], ...]
    verb: str = "POST"


HOSTS: Final = (
    *("evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "localhost-evil"),
    *("a@127.0.0.1", "127.0.0.1@evil.example", "[::1", "::1", "2130706433", "0x7f000001", "127.1", "[evil.example]"),
    *("localhost/../evil.example", "localhost#evil.example", "localhost:80:80", "127.0.0.1, evil.example", "*", "."),
)
SITES: Final = (
    (("Origin", "http://evil.example"),),
    (("Origin", "null"),),
    (("Origin", ""),),
    (("Origin", "http://localhost:1"),),
    (("Origin", "http://127.0.0.1.evil.example"),),
    (("Origin", "chrome-extension://abcdefgh"),),
    (("Origin", "{own}.evil.example"),),
    (("Sec-Fetch-Site", "cross-site"),),
    (("Sec-Fetch-Site", "same-site"), ("Origin", "http://localhost:3000")),
    (("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "iframe")),
    (("Sec-Fetch-Site", "anything new"),),
)
LINK: Final = (("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document"))

ATTACKS: Final = (
    *(Attack(f"host {host}", 421, (("Host", host),), verb) for host in HOSTS for verb in ("GET", "POST")),
    *(Attack(f"site {site}", 403, site, verb) for site in SITES for verb in ("GET", "POST", "OPTIONS", "DELETE")),
    *(Attack(f"a link that writes by {verb}", 403, LINK, verb) for verb in ("POST", "PUT", "DELETE")),
    *(
        Attack(f"type {kind}", 415, (("Content-Type", kind), ("Content-Length", "2")))
        for kind in ("text/plain", "multipart/form-data; boundary=x", "text/html", "Text/XML; charset=utf-8", "json")
    ),
    Attack("a type in pieces", 415, (("Content-Type", "text/plain"), ("Transfer-Encoding", "chunked"))),
    *(Attack(f"{size} bytes", 413, (("Content-Length", str(size)),)) for size in (1 << 30, 1 << 62, 10**17)),
)

LET_IN: Final = (
    (("Host", "localhost"),),
    (("Host", "LocalHost.:8080"),),
    (("Host", "127.0.0.1:1"),),
    (("Host", "10.1.2.3"),),
    (("Host", "[::1]:8080"),),
    (("Host", "[fe80::1%25eth0]"),),
    (("Origin", "{own}"),),
    (("Sec-Fetch-Site", "none"),),
    (("Sec-Fetch-Site", "same-origin"), ("Origin", "{own}")),
    LINK,
)
"""Of requests that only read."""

HALF_HEADS: Final = (b"", b"G", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
