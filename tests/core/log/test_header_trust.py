"""Which batches are walked: a connection's first, one in so many, those that can't be right, and a caught client's."""

from __future__ import annotations

import pytest

from kpybroker.core.log import header_trust
from kpybroker.core.log.header_trust import (
    CLIENTS_MAX,
    EVERY,
    EVERY_MAX,
    FIRST,
    FUTURE_MS,
    PAST_MS,
    CaughtClients,
    HeaderTrust,
)
from kpybroker.wire.compression import Codec
from kpybroker.wire.records.builder import BatchFields, build_batch
from kpybroker.wire.records.default_record import Record
from kpybroker.wire.records.legacy import build_message_set
from tests.support.storage.batches import claiming

NOW_MS = 1_700_000_000_000
LEFT_OUT = 0x18


def batch(*times: int, codec: Codec = Codec.NONE, size: int = 10) -> bytearray:
    return build_batch([(None, b"v" * size, time) for time in times], BatchFields(codec=codec))


TWO = batch(NOW_MS, NOW_MS + 1)


def settled() -> tuple[HeaderTrust, CaughtClients]:
    """A connection of which the first batches were walked."""
    trust, clients = HeaderTrust(), CaughtClients()
    for _ in range(FIRST):
        assert not trust.believes(TWO)
        clients.walked(trust, "client", NOW_MS)
    return trust, clients


def believed_in_a_row(trust: HeaderTrust, records: bytearray = TWO) -> int:
    return next(count for count in range(10**6) if not trust.believes(records))


def test_the_first_batches_are_walked_and_then_one_in_so_many() -> None:
    trust, clients = settled()
    for _ in range(3):
        assert believed_in_a_row(trust) == EVERY - 1
        clients.walked(trust, "client", NOW_MS)


def test_a_batch_that_is_due_stays_due_until_one_is_walked() -> None:
    trust, clients = settled()
    believed_in_a_row(trust)
    assert not trust.believes(TWO)
    clients.walked(trust, "client", NOW_MS)
    assert trust.believes(TWO)


@pytest.mark.parametrize(("count", "interval"), [(EVERY, 4 * (EVERY - 1)), (100_000, EVERY_MAX)])
def test_large_batches_are_walked_less_often(count: int, interval: int) -> None:
    trust, clients = settled()
    believed_in_a_row(trust)
    trust.believes(batch(*range(NOW_MS, NOW_MS + count), size=0))
    clients.walked(trust, "client", NOW_MS)
    assert believed_in_a_row(trust) == interval - 1


@pytest.mark.parametrize(
    "wrong",
    [
        claiming(TWO, max_timestamp=-1),
        claiming(TWO, max_timestamp=0),
        claiming(TWO, max_timestamp=NOW_MS - 1),
        claiming(TWO, base_timestamp=-1, max_timestamp=-1),
        claiming(TWO, max_timestamp=NOW_MS + FUTURE_MS),
        claiming(TWO, base_timestamp=NOW_MS - PAST_MS),
    ],
)
def test_a_header_that_cannot_be_right_is_always_walked(wrong: bytearray) -> None:
    trust, clients = settled()
    for _ in range(10):
        assert not trust.believes(wrong)
        clients.walked(trust, "client", NOW_MS)
    assert believed_in_a_row(trust) == EVERY - 1 - 10  # and does not put off the others' turn


@pytest.mark.parametrize("size", [0, 50, 57, 58, 63, 64, 5000, 8170, 8190, 9000, 1_000_000])
def test_a_batch_of_one_record_is_checked_whole(size: int) -> None:
    trust = HeaderTrust()
    one = batch(NOW_MS, size=size)
    assert trust.believes(one)
    for wrong in (
        claiming(one, max_timestamp=NOW_MS + 1),
        claiming(one, base_timestamp=NOW_MS - 1),
        claiming(one, base_timestamp=0),
        claiming(one + b"\0", batch_length=len(one) + 1 - 12),
        claiming(one[:-1], batch_length=len(one) - 1 - 12),
    ):
        assert not trust.believes(wrong)
    later = bytearray(one)
    later[64 if len(one) > 126 else 63] = 2  # its timestamp is one above the base, or the varint there is another
    assert len(one) > 8255 or not trust.believes(claiming(later))
    assert not trust.believes(batch(NOW_MS, codec=Codec.GZIP, size=size))


def test_what_is_not_one_plain_batch_is_not_believed() -> None:
    trust, _ = settled()
    transactional = claiming(TWO, attributes=0x10)
    assert trust.believes(transactional)
    assert not trust.believes(transactional, LEFT_OUT)
    for records in (b"", b"short", TWO[:-1], TWO + TWO, build_message_set([Record(0, NOW_MS, None, b"v" * 60)], 1)):
        assert not trust.believes(records)


def test_a_caught_client_is_walked_on_all_its_connections_from_then_on() -> None:
    trust, clients = settled()
    other, stranger = HeaderTrust(), HeaderTrust()
    for _ in range(FIRST):
        for connection, client in ((other, "client"), (stranger, "stranger")):
            connection.believes(TWO)
            clients.walked(connection, client, NOW_MS)
    assert clients.caught(trust, "client", NOW_MS)
    later = HeaderTrust()
    for connection in (trust, other, later):
        for _ in range(EVERY):
            assert not connection.believes(TWO)
            clients.walked(connection, "client", NOW_MS)
    assert not clients.caught(later, "client", NOW_MS)
    assert believed_in_a_row(stranger) == EVERY - 1


def test_a_caught_connection_stays_caught_under_another_name() -> None:
    trust, clients = settled()
    clients.caught(trust, "client", NOW_MS)
    clients.walked(trust, "another", NOW_MS)
    assert not trust.believes(TWO)


def test_the_caught_are_bounded_and_the_oldest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    assert CLIENTS_MAX == 1000
    monkeypatch.setattr(header_trust, "CLIENTS_MAX", 3)
    clients = CaughtClients()
    assert [clients.caught(HeaderTrust(), name, NOW_MS) for name in "abcab"] == [True, True, True, False, False]
    assert clients.caught(HeaderTrust(), "d", NOW_MS)
    assert clients.caught(HeaderTrust(), "a", NOW_MS)
    assert not clients.caught(HeaderTrust(), "d", NOW_MS)
