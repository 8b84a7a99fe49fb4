"""Records that librdkafka cannot represent. `tests/console/test_odd.py` has all of them, through every tool."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import Consumer, TopicPartition

from kpybroker.client.connect.errors import CommandError
from kpybroker.client.records.exact import ANY_PARTITION, Exact, is_plain
from kpybroker.client.records.record import Record
from kpybroker.wire.records.partitioner import murmur2_partition
from kpybroker.wire.records.record import Record as WireRecord
from tests.client.conftest import Run
from tests.support.requests import odd

PLAIN = Record("t", b"k", b"v", [("h", b"1")], timestamp_ms=5)


@pytest.fixture
def exact(bootstrap: str) -> Iterator[Exact]:
    with closing(Exact(odd.settings(bootstrap))) as made:
        yield made


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (PLAIN, True),
        (PLAIN._replace(timestamp_ms=None), True),
        (PLAIN._replace(timestamp_ms=-1), True),
        (PLAIN._replace(timestamp_ms=0), False),
        (PLAIN._replace(headers=[("ключ", None)]), True),
        (PLAIN._replace(headers=[("h", b"\xff"), ("\udcff", None)]), False),
        (PLAIN._replace(headers=[("a\0b", None)]), False),
    ],
)
def test_what_librdkafka_can_send(record: Record, expected: bool) -> None:
    assert is_plain(record) is expected


def test_a_record_arrives_as_it_is(run: Run, bootstrap: str, exact: Exact, name: str) -> None:
    run("topic", "create", name, "-p", "5")
    headers = [("\udcff", b"1"), ("a\0b", None), ("\udcff", b"1")]
    sent = exact.send(name, ANY_PARTITION, PLAIN._replace(headers=headers, timestamp_ms=0))
    assert sent == (murmur2_partition(b"k", 5), 0)
    (found,) = odd.stored(bootstrap, name, sent.partition)
    assert (found.key, found.value, found.timestamp, list(found.headers)) == (b"k", b"v", 0, headers)
    assert exact.headers((name, sent.partition), 0) == headers


def test_many_such_records_are_fetched_together(run: Run, bootstrap: str, exact: Exact, name: str) -> None:
    run("topic", "create", name)
    odd.append(bootstrap, name, [WireRecord(0, 5, None, b"v", (("\udcff", b"%d" % number),)) for number in range(100)])
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "x"})
    consumer.assign([TopicPartition(name, 0, 0)])
    found: list[Record] = []
    asked = 0
    while len(found) < 100:
        for message in consumer.consume(100 - len(found), 1):
            assert message.error() is None
            asked += not exact._kept.get((name, 0))
            found.append(exact.record(message))
    consumer.close()
    assert [one.headers for one in found] == [[("\udcff", b"%d" % number)] for number in range(100)]
    assert asked == 1


def test_what_cannot_be_is_named(run: Run, exact: Exact, name: str) -> None:
    run("topic", "create", name)
    with pytest.raises(CommandError, match=f"topic {name} has no partition 7"):
        exact.send(name, 7, PLAIN)
    with pytest.raises(CommandError, match="is no timestamp"):
        exact.send(name, 0, PLAIN._replace(timestamp_ms=2**63))
    with pytest.raises(CommandError, match=f"in {name}-0 at offset 5 is no UTF-8"):
        exact.headers((name, 0), 5)
