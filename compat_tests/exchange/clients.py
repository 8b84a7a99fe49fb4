"""The clients of an exchange: librdkafka for most, bare requests where a client would hide what the broker says."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from compat_tests.exchange.contents import Entry, Partition
from compat_tests.overload.raw import Raw
from compat_tests.support.waiting import eventually
from kpybroker.wire.compression import Codec
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.init_producer_id import InitProducerIdRequest
from kpybroker.wire.messages.metadata import MetadataRequest
from kpybroker.wire.messages.produce import ProduceRequest
from kpybroker.wire.records.builder import BatchFields, build_batch

DEADLINE_S = 90.0
QUIET: dict[str, Any] = {"log_level": 0, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200}


def text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def entry_of(message: Message) -> Entry:
    headers = tuple((name, data.decode()) for name, data in message.headers() or ())
    return Entry(text(message.key()), text(message.value()), headers)


class Written:
    """A producer whose delivery reports are kept: [(partition, offset, entry)]."""

    def __init__(self, bootstrap: str, **settings: Any) -> None:
        keys = {name.replace("_", "."): value for name, value in settings.items()}
        self.producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 2, **QUIET, **keys})
        self.delivered: list[tuple[Partition, int, Entry]] = []
        self._failures: list[KafkaError] = []

    def send(self, partition: Partition, entries: Iterable[Entry]) -> None:
        topic, index = partition
        for entry in entries:
            self.producer.produce(
                topic,
                None if entry.value is None else entry.value.encode(),
                None if entry.key is None else entry.key.encode(),
                partition=index,
                headers=[(name, data.encode()) for name, data in entry.headers],
                on_delivery=self._report(entry),
            )
            self.producer.poll(0)

    def _report(self, entry: Entry) -> Any:
        def report(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self._failures.append(error)
            else:
                self.delivered.append(((message.topic(), message.partition()), message.offset(), entry))

        return report

    def flush(self) -> list[tuple[Partition, int, Entry]]:
        """Everything delivered since the last time."""
        left = self.producer.flush(DEADLINE_S)
        assert (left, self._failures) == (0, []), f"{left} not delivered, {self._failures[:3]}"
        delivered, self.delivered = self.delivered, []
        return delivered

    def abandon(self) -> list[tuple[Partition, int, Entry]]:
        """What was delivered; the rest is given up, and its outcome is unknown."""
        self.producer.purge()
        assert self.producer.flush(DEADLINE_S) == 0
        return self.delivered


def consumer(bootstrap: str, group: str, **settings: Any) -> Consumer:
    keys = {name.replace("_", "."): value for name, value in settings.items()}
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
            "check.crcs": True,
            "fetch.wait.max.ms": 50,
            **QUIET,
            **keys,
        }
    )


def read_whole(bootstrap: str, partitions: Sequence[Partition], isolation: str) -> dict[Partition, dict[int, Entry]]:
    """Every record from the start to the end (for read_committed to the last stable offset)."""
    reader = consumer(bootstrap, "none", isolation_level=isolation, enable_partition_eof=True)
    reader.assign([TopicPartition(*partition, OFFSET_BEGINNING) for partition in partitions])
    found: dict[Partition, dict[int, Entry]] = {partition: {} for partition in partitions}
    waiting = set(partitions)
    try:
        while waiting:
            message = reader.poll(DEADLINE_S)
            assert message is not None, f"no end of {sorted(waiting)} within {DEADLINE_S} s"
            partition = (message.topic(), message.partition())
            error = message.error()
            if error is None:
                assert message.offset() not in found[partition], f"{partition} gives offset {message.offset()} twice"
                found[partition][message.offset()] = entry_of(message)
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                waiting.discard(partition)
    finally:
        reader.close()
    return found


def continue_group(bootstrap: str, group: str, partition: Partition, count: int) -> list[int]:
    """Subscribe, read `count` records of the topic's one partition from where the group is, and commit behind them."""
    reader = consumer(bootstrap, group, isolation_level="read_committed", session_timeout_ms=6000)
    offsets: list[int] = []
    try:
        reader.subscribe([partition[0]])
        while len(offsets) < count:
            message = reader.poll(DEADLINE_S)
            assert message is not None, f"{group} read {len(offsets)} of {count} records within {DEADLINE_S} s"
            assert message.error() is None, message.error()
            offsets.append(message.offset())
        reader.commit(offsets=[TopicPartition(*partition, offsets[-1] + 1)], asynchronous=False)
    finally:
        reader.close()
    return offsets


def committed(bootstrap: str, group: str, partitions: Sequence[Partition]) -> dict[Partition, int]:
    reader = consumer(bootstrap, group)
    try:
        found = reader.committed([TopicPartition(*partition) for partition in partitions], timeout=DEADLINE_S)
        return {(part.topic, part.partition): part.offset for part in found}
    finally:
        reader.close()


# --- administration


def create(bootstrap: str, topic: str, partitions: int, config: dict[str, str]) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    made = admin.create_topics([NewTopic(topic, partitions, 1, config=config)], operation_timeout=DEADLINE_S)
    made[topic].result(timeout=DEADLINE_S)


def delete(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    admin.delete_topics([topic], operation_timeout=DEADLINE_S)[topic].result(timeout=DEADLINE_S)


def grow(bootstrap: str, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    admin.create_partitions([NewPartitions(topic, partitions)], operation_timeout=DEADLINE_S)[topic].result(DEADLINE_S)


def _resource(topic: str | None) -> ConfigResource:
    return ConfigResource(ResourceType.BROKER, "0") if topic is None else ConfigResource(ResourceType.TOPIC, topic)


def set_config(bootstrap: str, topic: str | None, key: str, value: str) -> None:
    """Of a topic, or with None of the broker."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    resource = _resource(topic)
    resource.add_incremental_config(ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET))
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(timeout=DEADLINE_S)


def overrides(bootstrap: str, topic: str | None) -> dict[str, str]:
    """The keys set for this topic, or for this broker while it runs."""
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    source = 2 if topic is None else 1  # DYNAMIC_BROKER_CONFIG, DYNAMIC_TOPIC_CONFIG
    (future,) = admin.describe_configs([_resource(topic)]).values()
    entries = future.result(timeout=DEADLINE_S)
    return {name: entry.value for name, entry in entries.items() if entry.source == source}


def topic_ids(port: int) -> dict[str, tuple[bytes, int]]:
    """Id and number of partitions of every topic, by Metadata."""
    with Raw(("127.0.0.1", port)) as raw:
        response = raw.ask(MetadataRequest(topics=None, allow_auto_topic_creation=False), 12)
    return {topic.name: (bytes(topic.topic_id), len(topic.partitions)) for topic in response.topics}


# --- idempotent production by hand


class Sequenced:
    """An idempotent producer that remembers only what a real one does, and can repeat itself."""

    def __init__(self, port: int) -> None:
        self.port = port
        with Raw(("127.0.0.1", port)) as raw:
            response = eventually(lambda: _granted(raw), "a producer id")
        self.producer_id, self.producer_epoch = response.producer_id, response.producer_epoch
        self.next_sequence: dict[Partition, int] = {}
        self.last: dict[Partition, tuple[bytes, int]] = {}

    def write(self, partition: Partition, entries: Sequence[Entry], codec: Codec) -> int:
        """Append the next batch; its first offset."""
        sequence = self.next_sequence.get(partition, 0)
        batch = self._batch(entries, codec, sequence)
        code, offset = self._produce(partition, batch)
        assert code == ErrorCode.NONE, f"sequence {sequence} of {partition}: {ErrorCode(code).name}"
        self.next_sequence[partition] = sequence + len(entries)
        self.last[partition] = batch, offset
        return offset

    def repeat(self, partition: Partition) -> tuple[int, int]:
        """Send the last batch again: what the broker says, and what it said the first time."""
        batch, offset = self.last[partition]
        code, again = self._produce(partition, batch)
        assert code == ErrorCode.NONE, f"the last batch of {partition} sent again: {ErrorCode(code).name}"
        return again, offset

    def skip(self, partition: Partition) -> ErrorCode:
        """Send a batch that leaves sequence numbers out: the error."""
        sequence = self.next_sequence[partition] + 7
        batch = self._batch([Entry(None, "never")], Codec.NONE, sequence)
        return ErrorCode(self._produce(partition, batch)[0])

    def _batch(self, entries: Sequence[Entry], codec: Codec, sequence: int) -> bytes:
        timestamp_ms = int(time.time() * 1000)
        batch = build_batch(
            [(_bytes(entry.key), _bytes(entry.value), timestamp_ms) for entry in entries],
            BatchFields(
                codec=codec, producer_id=self.producer_id, producer_epoch=self.producer_epoch, base_sequence=sequence
            ),
        )
        return bytes(batch)

    def _produce(self, partition: Partition, batch: bytes) -> tuple[int, int]:
        topic, index = partition
        records = ProduceRequest.PartitionProduceData(index=index, records=batch)
        data = ProduceRequest.TopicProduceData(name=topic, partition_data=[records])
        with Raw(("127.0.0.1", self.port)) as raw:
            response = raw.ask(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data]), 7)
        (said,) = response.responses[0].partition_responses
        return said.error_code, said.base_offset


def _granted(raw: Raw) -> Any:
    response = raw.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), 1)
    return response if response.error_code == ErrorCode.NONE else None


def _bytes(content: str | None) -> bytes | None:
    return None if content is None else content.encode()
