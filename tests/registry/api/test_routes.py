"""The table of requests: complete, documented, and apart from what is absent."""

from __future__ import annotations

from kpybroker.registry.api.absent import ABSENT, missing
from kpybroker.registry.api.routes import ENTRIES


def test_each_request_says_what_it_does() -> None:
    for entry in ENTRIES:
        said = " ".join((entry.handler.__doc__ or "").split())
        assert said.startswith(entry.method) or entry.path == "/", entry
        assert said.partition(": ")[2], entry


def test_a_request_with_a_body_knows_its_members() -> None:
    for entry in ENTRIES:
        takes = entry.method in ("POST", "PUT") and entry.path != "/"
        assert (entry.body is not None) == takes, entry


def test_what_is_absent_is_no_route() -> None:
    served = {f"{entry.method} {entry.path}" for entry in ENTRIES}
    for one in ABSENT:
        assert not served & set(one.paths)
        for path in one.paths:
            assert missing(path.partition(" ")[2].replace("{", "").replace("}", "")) == one.what
    assert all(missing(entry.path) is None for entry in ENTRIES)
