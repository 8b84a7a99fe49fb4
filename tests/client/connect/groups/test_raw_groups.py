"""Assignments of members, whatever their bytes are. `tests/console/test_odd.py` has groups with such members."""

from __future__ import annotations

import pytest

from kpybroker.client.connect.groups.raw_groups import assigned, shown_bytes
from tests.support.requests import odd

READABLE = {
    "empty": [],
    "more than is read": [("t", 0)],
    "a topic without a name": [("", 0), ("t", 0)],
    "a topic of control characters": [("\x1b[31m", 0), ("t", 0)],
    "a topic with a long name": [("x" * 30_000, 0)],
    "partitions that cannot be": [("t", -1), ("t", 0), ("t", 2**31 - 1)],
}


@pytest.mark.parametrize(
    "what", [name for name, member in odd.members("t").items() if member.protocol_type == "consumer"]
)
def test_an_assignment_is_read_or_it_is_bytes(what: str) -> None:
    assert assigned(odd.members("t")[what].assignment) == READABLE.get(what)


def test_every_cut_of_an_assignment_is_bytes() -> None:
    whole = odd.assignment((b"topic", [0, 1]), (b"other", [2]))
    assert assigned(whole) == [("other", 2), ("topic", 0), ("topic", 1)]
    assert [assigned(whole[:length]) for length in range(1, len(whole))] == [None] * (len(whole) - 1)


def test_many_bytes_are_counted() -> None:
    assert shown_bytes(b"\x00\xff") == "00 ff"
    assert shown_bytes(b"\xff" * 100) == f"{'ff ' * 63}ff and 36 bytes more"
