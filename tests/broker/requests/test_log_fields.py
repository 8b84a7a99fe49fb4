"""Which client a line is about, and that one client causes so many lines and no more."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from kpybroker.broker.requests.context import PlainConnectionInfo, RequestContext
from kpybroker.broker.requests.log_fields import (
    CURRENT,
    ClientLines,
    client_of,
    fields_of,
    of_connection,
    of_request,
    write_counts,
)
from kpybroker.core.authorizer import AllowAll
from kpybroker.core.line_limit import LINES_MAX, WINDOW_S, about_client
from kpybroker.wire.api import ApiKey


class Lines(logging.Handler):
    """Keeps what it writes; its time stands still until it is moved."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.lines: list[str] = []
        self.addFilter(ClientLines(self, lambda: self.now))

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.fixture
def handler() -> Iterator[Lines]:
    found = Lines()
    logger.addHandler(found)
    logger.setLevel(logging.DEBUG)
    yield found
    logger.removeHandler(found)
    logger.setLevel(logging.NOTSET)


logger = logging.getLogger("kafka.server.TestOfLines")


def client(host: str) -> PlainConnectionInfo:
    return PlainConnectionInfo(connection_id=f"127.0.0.1:9092-{host}:1-1", client=(host, 1))


def request_of(host: str, api_key: ApiKey) -> RequestContext:
    return RequestContext(client(host), AllowAll(), api_key, 0, 7, "shop")


def test_a_client_that_causes_too_many_lines_gets_one_with_their_number(handler: Lines) -> None:
    for number in range(LINES_MAX + 23):
        logger.warning("Refused %d", number, extra=of_connection(client("10.0.0.1")))
    logger.warning("Refused another", extra=of_connection(client("10.0.0.2")))
    logger.warning("Of no client")
    assert handler.lines[LINES_MAX - 1 :] == [f"Refused {LINES_MAX - 1}", "Refused another", "Of no client"]
    write_counts()
    assert len(handler.lines) == LINES_MAX + 2
    handler.now = WINDOW_S
    write_counts()
    write_counts()
    assert handler.lines[LINES_MAX + 2 :] == [
        "23 more lines about the client at 10.0.0.1 were not written: it caused more than a client may in a minute"
    ]


def test_at_the_end_all_are_counted(handler: Lines) -> None:
    for _ in range(LINES_MAX + 1):
        logger.warning("no", extra=about_client("10.0.0.1"))
    write_counts(is_end=True)
    assert handler.lines[-1].startswith("1 more lines about the client at 10.0.0.1")


@pytest.mark.parametrize(
    "extra",
    [
        of_connection(client("10.0.0.1")),
        of_request(request_of("10.0.0.1", ApiKey.PRODUCE), "t", 1),
        about_client("10.0.0.1"),
    ],
)
def test_every_line_about_a_client_counts(handler: Lines, extra: dict[str, object]) -> None:
    for _ in range(10 * LINES_MAX):
        logger.error("no", extra=extra)
    assert len(handler.lines) == LINES_MAX


@pytest.mark.parametrize(("api_key", "is_limited"), [(ApiKey.JOIN_GROUP, True), (ApiKey.LEADER_AND_ISR, False)])
def test_a_line_of_a_request_in_progress_counts_unless_a_broker_sent_it(
    handler: Lines, api_key: ApiKey, is_limited: bool
) -> None:
    token = CURRENT.set(request_of("10.0.0.1", api_key))
    try:
        for _ in range(LINES_MAX + 1):
            logger.warning("no")
        record = logging.LogRecord("x", logging.INFO, "", 0, "no", (), None)
        assert fields_of(record)["correlation_id"] == 7
        assert (client_of(record) == "10.0.0.1") is is_limited
    finally:
        CURRENT.reset(token)
    assert len(handler.lines) == LINES_MAX + (not is_limited)


def test_lines_below_info_are_not_counted(handler: Lines) -> None:
    for _ in range(LINES_MAX + 1):
        logger.debug("no", extra=about_client("10.0.0.1"))
    assert len(handler.lines) == LINES_MAX + 1


@pytest.mark.parametrize(
    ("addresses", "count"),
    [
        (["2001:db8:1:2::1", "2001:db8:1:2:ffff::9"], LINES_MAX),
        (["2001:db8:1:2::1", "2001:db8:1:3::1"], 2 * LINES_MAX),
        (["fe80::1%eth0", "fe80::2%eth0"], LINES_MAX),
        (["::ffff:10.0.0.1", "::ffff:10.0.0.2"], 2 * LINES_MAX),
        (["listener A", "listener B"], 2 * LINES_MAX),
    ],
)
def test_of_ipv6_a_network_is_one_client(handler: Lines, addresses: list[str], count: int) -> None:
    for address in addresses:
        for _ in range(2 * LINES_MAX):
            logger.warning("no", extra=about_client(address))
    assert len(handler.lines) == count
