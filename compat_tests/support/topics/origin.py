"""A topic with everything that a copy must keep, what a reader of it must see, and readers of copies."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import NewPartitions

from compat_tests.support import quick
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually

Content = tuple[Any, ...]
"""Of a record: key, value, timestamp in ms, headers."""

DEADLINE_S = 180.0
START_MS = 1_700_000_000_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Origin:
    """A topic in one cluster, and what a reader of it must see: `expected`, by partition and in order.

    Records have keys (some null), headers, timestamps and tombstones, in every codec. Some are in transactions, of
    which each second one is aborted. Their timestamps are years old, so the topic never deletes them.
    """

    def __init__(self, broker: Broker, topic: str, partitions: int = 2, **config: Any) -> None:
        self.broker, self.topic = broker, topic
        self.expected: list[list[Content]] = [[] for _ in range(partitions)]
        self._number = 0
        quick.create_topic(broker.bootstrap, topic, partitions, **{"retention_ms": -1, **config})

    @property
    def count(self) -> int:
        return sum(map(len, self.expected))

    def write(self, each: int) -> None:
        """`each` records for each partition and codec."""
        for codec in CODECS:
            self._write(Producer(self._settings(codec)), each, is_kept=True)

    def write_in_transactions(self, each: int) -> None:
        """Committed, aborted, committed: `each` records for each partition in each."""
        identity = {"transactional.id": f"{self.topic}-{self._number}"}
        producer = Producer(self._settings("lz4") | identity)
        producer.init_transactions(DEADLINE_S)
        for is_kept in (True, False, True):
            producer.begin_transaction()
            self._write(producer, each, is_kept)
            if is_kept:
                producer.commit_transaction(DEADLINE_S)
            else:
                producer.abort_transaction(DEADLINE_S)

    def _settings(self, codec: str) -> dict[str, Any]:
        return {"bootstrap.servers": self.broker.bootstrap, "compression.codec": codec, "linger.ms": 5, **quick.QUIET}

    def _write(self, producer: Producer, each: int, is_kept: bool) -> None:
        for partition, contents in enumerate(self.expected):
            for _ in range(each):
                number = self._number = self._number + 1
                key = None if number % 7 == 0 else f"k{number}".encode()
                value = None if number % 10 == 9 and key else f"{self.topic} {number} {'' if is_kept else 'aborted'}"
                headers = [("n", str(number).encode()), ("n", b""), ("null", None)] if number % 3 else []
                producer.produce(self.topic, value, key, partition, timestamp=START_MS + number, headers=headers)
                if is_kept:
                    contents.append((key, value and value.encode(), START_MS + number, headers))
        assert producer.flush(DEADLINE_S) == 0

    def grow(self) -> None:
        """One partition more."""
        self.expected.append([])
        admin = quick.admin_client(self.broker.bootstrap)
        admin.create_partitions([NewPartitions(self.topic, len(self.expected))])[self.topic].result(DEADLINE_S)

    def arrived(self, target: Broker, topic: str, share: float = 1.0) -> list[list[Message]]:
        """Wait until `topic` there has this share of the records; with all of them it has nothing else."""
        wanted = int(self.count * share)

        def enough() -> list[list[Message]]:
            found = committed_records(target.bootstrap, topic)
            have = sum(map(len, found))
            assert have >= wanted, f"{have} of {wanted} records"
            return found

        found = eventually(enough, f"{wanted} records in {topic}", DEADLINE_S)
        contents = [[content(message) for message in messages] for messages in found]
        if share == 1.0:
            assert contents == self.expected, f"{topic}: {sum(map(len, contents))} records, {self.count} were written"
        else:
            assert all(part == self.expected[number][: len(part)] for number, part in enumerate(contents)), topic
        return found


def content(message: Message) -> Content:
    return message.key(), message.value(), message.timestamp()[1], message.headers() or []


def committed_records(bootstrap: str, topic: str) -> list[list[Message]]:
    """All records by partition, up to the end of what is committed; an empty list where there is no topic."""
    partitions = partition_count(bootstrap, topic)
    if not partitions:
        return []
    settings = {"group.id": "none", "enable.partition.eof": True, "fetch.wait.max.ms": 50, "check.crcs": True}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings, **quick.QUIET})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    found: list[list[Message]] = [[] for _ in range(partitions)]
    ends: set[int] = set()
    try:
        while len(ends) < partitions:
            message = consumer.poll(DEADLINE_S)
            assert message is not None, f"no end of {topic} within {DEADLINE_S} s"
            partition, error = message.partition(), message.error()
            assert partition is not None
            if error is None:
                found[partition].append(message)
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ends.add(partition)
    finally:
        consumer.close()
    return found


def partition_count(bootstrap: str, topic: str) -> int:
    """0 for no topic."""
    found = topics(bootstrap).get(topic)
    return 0 if found is None else len(found.partitions)


def topics(bootstrap: str) -> dict[str, Any]:
    found: dict[str, Any] = quick.admin_client(bootstrap).list_topics(timeout=DEADLINE_S).topics
    return found
