"""A log line says which client it is about, whatever that client calls itself, and some lines are written once."""

from __future__ import annotations

import tracemalloc

import pytest

from kpybroker.broker.requests.clients import REMEMBERED_MAX, SHOWN_CHARACTERS_MAX, FirstTimes, client_name, shown
from kpybroker.broker.requests.context import PlainConnectionInfo


def client(client_id: str | None = None, *software: str, host: str = "127.0.0.1") -> PlainConnectionInfo:
    connection = PlainConnectionInfo(connection_id="here-there-0", client=(host, 1))
    connection.client_id = client_id
    if software:
        connection.client_software_name, connection.client_software_version = software
    return connection


def test_a_client_is_named_by_what_is_known() -> None:
    assert client_name(client()) == "here-there-0"
    assert client_name(client("orders")) == "here-there-0 client_id=orders"
    known = client("orders", "apache-kafka-java", "3.9.1")
    assert client_name(known) == "here-there-0 client_id=orders software=apache-kafka-java-3.9.1"


@pytest.mark.parametrize(
    "client_id", ["", "two words", "a=b", "line\nERROR forged", "quote's", '"', "\x1b[2J", "naïve", "back\\slash"]
)
def test_a_client_id_that_is_not_plain_is_quoted_on_one_line(client_id: str) -> None:
    line = client_name(client(client_id, "java", "1"))
    assert line == f"here-there-0 client_id={client_id!a} software=java-1"
    assert line.isascii()
    assert line.isprintable()


def test_a_long_client_id_is_cut() -> None:
    assert shown("x" * 30_000) == "x" * SHOWN_CHARACTERS_MAX + "..."
    assert len(shown("\n" * 30_000)) < 3 * SHOWN_CHARACTERS_MAX


def test_a_line_is_written_once_for_each_client_and_subject() -> None:
    times = FirstTimes()
    assert times.is_first(client("a"), "share groups")
    assert not times.is_first(client("a"), "share groups")
    assert times.is_first(client("a"), "share groups", "topic")
    assert times.is_first(client("b"), "share groups")
    assert times.is_first(client("a", "java", "1"), "share groups")
    assert times.is_first(client("a", host="127.0.0.2"), "share groups")


def test_what_is_remembered_is_bounded() -> None:
    times = FirstTimes()
    assert all(times.is_first(client(str(number)), "x") for number in range(REMEMBERED_MAX + 1))
    assert not times.is_first(client("1"), "x")
    assert times.is_first(client("0"), "x"), "the oldest is forgotten"


def test_long_names_are_not_kept() -> None:
    """A client id and the names of software may have 32 KB each; a thousand of them are remembered."""
    times = FirstTimes()
    tracemalloc.start()
    try:
        for number in range(REMEMBERED_MAX):
            long = f"{number}" + "x" * 30_000
            assert times.is_first(client(long, long, long), "subject")
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 1024 * 1024
    assert not times.is_first(client(long, long, long), "subject")
    assert times.is_first(client(long + "y", long, long), "subject")
