"""A streaming query with read_committed: exactly the rows that are committed, once they are, over stops and starts.

Each run of `stream` is a new query that goes on from the checkpoint of the one before. `own_broker` comes before
`stream` in a test's arguments: a query that outlives its broker takes a minute to stop.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from confluent_kafka import Producer

from compat_tests.conftest import MakeTopic, StartBroker
from compat_tests.spark.support import Stream
from compat_tests.support import quick
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually

by_both = pytest.mark.usefixtures("readers")
COMMITTED: dict[str, object] = {"startingOffsets": "earliest", "kafka.isolation.level": "read_committed"}
TRANSACTIONAL_PARTITIONS = 2

Rows = list[tuple[int, str]]
"""Partition and value, in the order of partition and offset."""


class Transactional:
    """A producer of transactions."""

    def __init__(self, bootstrap: str, transactional_id: str) -> None:
        settings = {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, **quick.QUIET}
        # see workers/confluent_copier.py
        self._producer = Producer({**settings, "linger.ms": 1, "metadata.recovery.strategy": "none"})
        self._producer.init_transactions(quick.DEADLINE_S)

    def begin(self, topic: str, word: str, count: int) -> Rows:
        """Open a transaction and leave it open, with so many records in the log, dealt out over two partitions."""
        rows = [(n % TRANSACTIONAL_PARTITIONS, f"{word} {n}") for n in range(count)]
        self._producer.begin_transaction()
        for partition, value in rows:
            self._producer.produce(topic, value.encode(), partition=partition)
        assert self._producer.flush(quick.DEADLINE_S) == 0
        return rows

    def commit(self) -> None:
        self._producer.commit_transaction(quick.DEADLINE_S)

    def abort(self) -> None:
        self._producer.abort_transaction(quick.DEADLINE_S)


def plain(bootstrap: str, topic: str, partition: int, value: str) -> Rows:
    """A record that belongs to no transaction."""
    quick.fill(bootstrap, topic, [value], partition)
    return [(partition, value)]


def rows(stream: Stream) -> Rows:
    return [(one.partition, (one.value or b"").decode()) for one in stream.rows()]


def by_partition(expected: Sequence[tuple[int, str]]) -> Rows:
    """In the order in which Spark's rows are looked at; within a partition it stays the order of writing."""
    return sorted(expected, key=lambda row: row[0])


@by_both
def test_rows_are_the_committed_ones(stream: Stream, broker: Broker, topic: MakeTopic, name: str) -> None:
    """Aborted transactions between committed ones, records without a transaction, and an open one that holds back."""
    place = topic(partitions=2)
    producer, other = Transactional(broker.bootstrap, name), Transactional(broker.bootstrap, f"{name}-other")
    expected: Rows = []
    for n in range(5):
        producer.begin(place, f"aborted {n}", 6)
        producer.abort()
        kept = producer.begin(place, f"committed {n}", 7)
        producer.commit()
        expected += kept + plain(broker.bootstrap, place, n % 2, f"plain {n}")
    opened = producer.begin(place, "open", 4)
    behind = other.begin(place, "behind the open one", 3)
    other.commit()
    other.begin(place, "aborted behind", 3)
    other.abort()
    behind += plain(broker.bootstrap, place, 0, "plain behind")
    stream.run(broker.bootstrap, subscribe=place, **COMMITTED)
    assert rows(stream) == by_partition(expected)
    producer.commit()
    stream.run(broker.bootstrap, subscribe=place, **COMMITTED)
    assert rows(stream) == by_partition(expected + opened + behind)
    assert stream.run(broker.bootstrap, subscribe=place, **COMMITTED) == []


def test_batches_cut_anywhere_give_the_same_rows(stream: Stream, broker: Broker, topic: MakeTopic, name: str) -> None:
    """A limit on offsets ends batches within transactions and on markers; some batches have nothing to read at all."""
    place = topic(partitions=2)
    producer = Transactional(broker.bootstrap, name)
    expected: Rows = []
    for n in range(3):
        producer.begin(place, f"aborted {n}", 10)
        producer.abort()
        expected += producer.begin(place, f"committed {n}", 5)
        producer.commit()
    stream.run(broker.bootstrap, subscribe=place, maxOffsetsPerTrigger="9", **COMMITTED)
    assert rows(stream) == by_partition(expected)


def test_a_running_query_waits_for_an_open_transaction(
    stream: Stream, broker: Broker, topic: MakeTopic, name: str
) -> None:
    """A record in a third partition shows that it reads on; of the two that are held back it sees nothing until
    then."""
    place = topic(partitions=3)
    producer, other = Transactional(broker.bootstrap, name), Transactional(broker.bootstrap, f"{name}-other")
    expected = producer.begin(place, "first", 10)
    producer.commit()
    stream.start(broker.bootstrap, follow=True, subscribe=place, **COMMITTED)
    shows(stream, expected)
    producer.begin(place, "open", 10)
    behind = other.begin(place, "behind", 10)
    other.commit()
    expected += plain(broker.bootstrap, place, 2, "it reads on")
    shows(stream, expected)
    producer.abort()
    expected += behind + plain(broker.bootstrap, place, 0, "after the abort")
    shows(stream, expected)


def shows(stream: Stream, expected: Rows) -> None:
    """Wait for the number of rows, then compare them all."""

    def enough() -> bool:
        if stream.query is not None and stream.query.exception() is not None:
            raise RuntimeError(str(stream.query.exception()))
        return len(rows(stream)) >= len(expected)

    eventually(enough, f"{len(expected)} rows", 180)
    assert rows(stream) == by_partition(expected)


def test_a_query_reads_on_after_the_broker_was_killed_within_transactions(
    own_broker: StartBroker, stream: Stream, name: str
) -> None:
    broker = own_broker()
    quick.create_topic(broker.bootstrap, name, 2)
    producer, other = Transactional(broker.bootstrap, name), Transactional(broker.bootstrap, f"{name}-other")
    expected = producer.begin(name, "committed", 10)
    producer.commit()
    stream.run(broker.bootstrap, subscribe=name, **COMMITTED)
    opened = producer.begin(name, "open", 6)
    other.begin(name, "to be aborted", 6)
    broker.kill()
    broker.start()
    stream.run(broker.bootstrap, subscribe=name, **COMMITTED)
    assert rows(stream) == by_partition(expected)
    other.abort()
    producer.commit()
    stream.run(broker.bootstrap, subscribe=name, **COMMITTED)
    assert rows(stream) == by_partition(expected + opened)
