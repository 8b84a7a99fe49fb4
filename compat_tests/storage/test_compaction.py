"""Compacted topics as clients see them: what goes, what stays, and that offsets never change.

The brokers look for dirty logs every 100 ms. Nothing reports that a cleaning is done: tests read until they see it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from compat_tests.support import quick
from compat_tests.support.services import Broker
from compat_tests.support.tools import Tools
from compat_tests.support.waiting import eventually

StartBroker = Callable[..., Broker]

COMPACTED: dict[str, Any] = {"cleanup_policy": "compact", "segment_bytes": 10_000, "min_cleanable_dirty_ratio": 0.01}
CLEANED_WITHIN_S = 60.0
PADDING = "x" * 80


def start(own_broker: StartBroker, **overrides: object) -> Broker:
    return own_broker(**{"log_cleaner_backoff_ms": 100, "log_cleaner_dedupe_buffer_size": 20_000_000, **overrides})


class Writer:
    """Writes keyed records and remembers where each went."""

    def __init__(self, bootstrap: str, topic: str, **settings: object) -> None:
        self.topic = topic
        self.written: dict[int, tuple[bytes, bytes | None]] = {}
        small = {"linger.ms": 2, "batch.num.messages": 20}  # than a segment
        self.producer = Producer({"bootstrap.servers": bootstrap, **small, **settings, **quick.QUIET})

    def write(self, *records: tuple[str, str | None]) -> None:
        """Keys with values, None for a tombstone; until they are acknowledged."""
        failures: list[KafkaError] = []

        def report(error: KafkaError | None, message: Message) -> None:
            if error is None:
                self.written[message.offset()] = message.key(), message.value()
            else:
                failures.append(error)

        for key, value in records:
            self.producer.produce(
                self.topic, None if value is None else value.encode(), key.encode(), partition=0, on_delivery=report
            )
        left = self.producer.flush(quick.DEADLINE_S)
        assert (left, failures) == (0, [])

    def table(self) -> dict[bytes, bytes]:
        table: dict[bytes, bytes] = {}
        for _, (key, value) in sorted(self.written.items()):
            if value is None:
                table.pop(key, None)
            else:
                table[key] = value
        return table


def read_all(bootstrap: str, topic: str, isolation: str = "read_uncommitted") -> dict[int, tuple[bytes, bytes | None]]:
    """Everything there is, by offset; that offsets rise is checked."""
    settings = {"group.id": "none", "auto.offset.reset": "earliest", "isolation.level": isolation, "check.crcs": True}
    quickly = {"fetch.wait.max.ms": 20, "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": bootstrap, **quickly, **settings, **quick.QUIET})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: dict[int, tuple[bytes, bytes | None]] = {}
    try:
        while True:
            message = consumer.poll(quick.DEADLINE_S)
            assert message is not None, f"no end of {topic} within {quick.DEADLINE_S} s"
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                return found
            assert message.offset() > max(found, default=-1)
            found[message.offset()] = message.key(), message.value()
    finally:
        consumer.close()


def table_of(records: Mapping[int, tuple[bytes, bytes | None]]) -> dict[bytes, bytes]:
    table: dict[bytes, bytes] = {}
    for key, value in records.values():
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value
    return table


def await_compacted(bootstrap: str, writer: Writer, records_max: int) -> dict[int, tuple[bytes, bytes | None]]:
    """Read until no more than so many records are left; what is there is what was written there.

    Twice: a compaction that ends during a read leaves the beginning as it was, and the end as it is.
    """

    def compacted() -> dict[int, tuple[bytes, bytes | None]]:
        found = read_all(bootstrap, writer.topic)
        assert found.items() <= writer.written.items()
        assert table_of(found) == writer.table()
        assert len(found) <= records_max, f"{len(found)} records are there"
        assert read_all(bootstrap, writer.topic) == found
        return found

    return eventually(compacted, "a compacted log", CLEANED_WITHIN_S)


def updates(count: int, keys: int, generation: str) -> list[tuple[str, str]]:
    return [(f"key-{n % keys}", f"{generation} {n} {PADDING}") for n in range(count)]


@pytest.mark.parametrize("codec", [pytest.param("none", marks=pytest.mark.wide), "zstd"])
def test_the_last_value_of_every_key_stays_at_its_offset(own_broker: StartBroker, codec: str) -> None:
    broker = start(own_broker)
    quick.create_topic(broker.bootstrap, "table", **COMPACTED)
    writer = Writer(broker.bootstrap, "table", **{"compression.type": codec, "batch.num.messages": 7})
    writer.write(*updates(1500, 20, "first"))
    # The active segment is not compacted: of 10 000 bytes some hundred records may be there.
    first = await_compacted(broker.bootstrap, writer, 350)
    assert quick.end_offset(broker.bootstrap, "table", 0) == 1500
    broker.restart()
    assert read_all(broker.bootstrap, "table").keys() <= first.keys()
    writer.write(*updates(1500, 30, "second"))
    await_compacted(broker.bootstrap, writer, 350)
    assert quick.end_offset(broker.bootstrap, "table", 0) == 3000


def test_a_read_may_begin_in_a_gap(own_broker: StartBroker) -> None:
    broker = start(own_broker)
    quick.create_topic(broker.bootstrap, "gaps", **COMPACTED)
    writer = Writer(broker.bootstrap, "gaps")
    writer.write(*updates(1000, 10, "one"))

    def begins_with_a_gap() -> dict[int, tuple[bytes, bytes | None]]:
        found = await_compacted(broker.bootstrap, writer, 300)
        # a reader during a cleaning may meet the first segment as it was, and others as they are now
        assert min(found) > 0
        return found

    found = eventually(begins_with_a_gap, "a gap where the log began", CLEANED_WITHIN_S)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "none", **quick.QUIET})
    try:
        for start_offset in (0, 1, 333, min(found) - 1, 999):
            consumer.assign([TopicPartition("gaps", 0, start_offset)])
            message = consumer.poll(quick.DEADLINE_S)
            assert message is not None
            # a later pass of the cleaner may have taken more, and nothing else
            assert message.offset() in found
            assert message.offset() >= start_offset
    finally:
        consumer.close()


def test_tombstones_go_when_their_time_is_over(own_broker: StartBroker) -> None:
    broker = start(own_broker)
    quick.create_topic(broker.bootstrap, "deleted", delete_retention_ms=100, **COMPACTED)
    writer = Writer(broker.bootstrap, "deleted")
    writer.write(*[(f"gone-{n}", PADDING) for n in range(50)], *[(f"gone-{n}", None) for n in range(50)])

    def gone() -> bool:
        writer.write(*updates(200, 5, "filler"))  # so that there is something to clean
        found = read_all(broker.bootstrap, "deleted")
        assert found.items() <= writer.written.items()
        assert table_of(found) == writer.table()
        return not [key for key, _ in found.values() if key.startswith(b"gone")]

    eventually(gone, "no key that was deleted", CLEANED_WITHIN_S)


def test_a_tombstone_stays_for_its_time(own_broker: StartBroker) -> None:
    broker = start(own_broker)
    quick.create_topic(broker.bootstrap, "kept", delete_retention_ms=86_400_000, **COMPACTED)
    writer = Writer(broker.bootstrap, "kept")
    writer.write(*[(f"gone-{n}", PADDING) for n in range(50)], *[(f"gone-{n}", None) for n in range(50)])
    for generation in ("one", "two"):
        writer.write(*updates(1000, 5, generation))
        found = await_compacted(broker.bootstrap, writer, 350)
        assert [value for key, value in found.values() if key.startswith(b"gone")] == [None] * 50


def test_policy_and_cleaner_are_configured_live(own_broker: StartBroker) -> None:
    """A topic becomes compacted, and a cleaner that rests for an hour is reconfigured to look more often."""
    broker = start(own_broker, log_cleaner_backoff_ms=3_600_000)
    tools = Tools("3.9.1", broker.bootstrap)
    quick.create_topic(broker.bootstrap, "live", segment_bytes=10_000)
    quick.create_topic(broker.bootstrap, "other", **COMPACTED)
    writer, other = Writer(broker.bootstrap, "live"), Writer(broker.bootstrap, "other")
    writer.write(*updates(1000, 10, "one"))
    other.write(*updates(1000, 10, "one"))
    change = "cleanup.policy=compact,min.cleanable.dirty.ratio=0.01"
    tools.run("configs", "--alter", "--entity-type", "topics", "--entity-name", "live", "--add-config", change)
    brokers = ("configs", "--alter", "--entity-type", "brokers", "--entity-default", "--add-config")
    tools.run(*brokers, "log.cleaner.backoff.ms=100,log.cleaner.threads=2,log.cleaner.io.buffer.size=400000")
    await_compacted(broker.bootstrap, writer, 300)
    await_compacted(broker.bootstrap, other, 300)
    refused = tools.run(*brokers, "log.cleaner.threads=9", check=False)
    assert "cannot be increased to more than double the current value 2" in refused.out + refused.err


def test_compaction_and_deletion_together(own_broker: StartBroker) -> None:
    broker = start(own_broker, log_retention_check_interval_ms=200)
    both: dict[str, Any] = {**COMPACTED, "cleanup_policy": "compact,delete"}
    quick.create_topic(broker.bootstrap, "both", retention_ms=-1, **both)
    writer = Writer(broker.bootstrap, "both")
    writer.write(*updates(1000, 10, "old"))
    await_compacted(broker.bootstrap, writer, 300)
    tools = Tools("3.9.1", broker.bootstrap)
    topic = ("--entity-type", "topics", "--entity-name", "both")
    tools.run("configs", "--alter", *topic, "--add-config", "retention.ms=1")
    eventually(lambda: not read_all(broker.bootstrap, "both"), "all deleted", CLEANED_WITHIN_S)
    assert quick.end_offset(broker.bootstrap, "both", 0) == 1000
    tools.run("configs", "--alter", *topic, "--add-config", "retention.ms=-1")
    writer.written.clear()
    writer.write(*updates(1000, 10, "new"))
    found = await_compacted(broker.bootstrap, writer, 300)
    assert min(found) >= 1000


def test_a_compacted_topic_takes_no_record_without_a_key(own_broker: StartBroker) -> None:
    broker = start(own_broker)
    quick.create_topic(broker.bootstrap, "keyed", **COMPACTED)
    errors: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, **quick.QUIET})
    producer.produce("keyed", b"value", on_delivery=lambda error, _: errors.append(error))
    producer.flush(quick.DEADLINE_S)
    assert [error.code() for error in errors if error is not None] == [KafkaError.INVALID_RECORD]


def test_an_idempotent_producer_goes_on_after_its_records_are_compacted(own_broker: StartBroker) -> None:
    """Its last batch stays, if need be without records, and with it its sequence number."""
    broker = start(own_broker)
    quick.create_topic(broker.bootstrap, "sequence", **COMPACTED)
    producer = Writer(broker.bootstrap, "sequence", **{"enable.idempotence": True})
    filler = Writer(broker.bootstrap, "sequence")
    producer.write(*[("same", f"{n}") for n in range(10)])
    filler.write(("same", "over"), *updates(1000, 5, "filler"))
    filler.written |= producer.written
    await_compacted(broker.bootstrap, filler, 300)
    broker.restart()
    producer.write(*[("same", f"again {n}") for n in range(10)])
    filler.written |= producer.written
    assert table_of(read_all(broker.bootstrap, "sequence")) == filler.table()


def test_aborted_transactions_go_and_committed_ones_stay(own_broker: StartBroker) -> None:
    broker = start(own_broker)
    quick.create_topic(broker.bootstrap, "transactions", delete_retention_ms=100, **COMPACTED)
    writer = Writer(broker.bootstrap, "transactions", **{"transactional.id": "writer"})
    writer.producer.init_transactions(quick.DEADLINE_S)
    committed: dict[int, tuple[bytes, bytes | None]] = {}
    for n in range(40):
        writer.producer.begin_transaction()
        writer.written = {}
        writer.write(*[(f"key-{m % 7}", f"{n} {m} {PADDING}") for m in range(20)])
        if n % 3 == 2:
            writer.producer.abort_transaction(quick.DEADLINE_S)
        else:
            writer.producer.commit_transaction(quick.DEADLINE_S)
            committed |= writer.written

    def compacted() -> bool:
        seen = read_all(broker.bootstrap, "transactions", "read_committed")
        assert seen.items() <= committed.items()
        assert table_of(seen) == table_of(dict(sorted(committed.items())))
        return len(seen) < 300 and len(read_all(broker.bootstrap, "transactions")) < 350

    eventually(compacted, "a compacted log", CLEANED_WITHIN_S)
    broker.restart()
    assert compacted()


def test_committed_offsets_outlive_the_compaction_of_their_topic(own_broker: StartBroker) -> None:
    """With the group alive: commits go on while what they replace is removed."""
    keys = {"offsets_topic_num_partitions": 1, "offsets_topic_segment_bytes": 10_000}
    broker = start(own_broker, log_cleaner_min_cleanable_ratio=0.01, **keys)
    quick.create_topic(broker.bootstrap, "read", 3)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "alive", **quick.QUIET})
    consumer.subscribe(["read"])
    eventually(lambda: consumer.poll(0.1) is None and len(consumer.assignment()) == 3, "an assignment")

    def commit(start_offset: int) -> None:
        for offset in range(start_offset, start_offset + 400):
            consumer.commit(offsets=[TopicPartition("read", p, offset + p) for p in range(3)], asynchronous=False)

    def is_compacted() -> bool:
        try:
            files = (broker.data_dir / "__consumer_offsets-0").glob("*.log")
            return sum(file.stat().st_size for file in files) < 30_000
        except FileNotFoundError:  # removed since it was listed
            return False

    try:
        commit(1)
        eventually(is_compacted, "a compacted __consumer_offsets", CLEANED_WITHIN_S)
        commit(1000)
    finally:
        consumer.close()
    parts = [("read", partition) for partition in range(3)]
    assert quick.committed(broker.bootstrap, "alive", parts) == [1399, 1400, 1401]
    eventually(is_compacted, "a compacted __consumer_offsets", CLEANED_WITHIN_S)
    broker.restart()
    assert quick.committed(broker.bootstrap, "alive", parts) == [1399, 1400, 1401]
