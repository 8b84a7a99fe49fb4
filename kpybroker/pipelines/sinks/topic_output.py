"""Batches of rows in a topic, each row once for a reader of committed records, whatever is killed.

Spark's own sink writes a batch again if the run dies before it is noted in the checkpoint. Here the rows of a batch
are spread over a few writers by the hash of their key, so that a batch that is repeated is spread in the same way. Each
writer has a transaction for each batch, and in it commits the number of the batch as the offset of a group of its own:
rows and number are there together or not at all, and a writer whose group has the number already writes nothing.

The numbers are offsets of a group without members: a broker forgets them after `offsets.retention.minutes` (7 days).
A job that was killed between a write and its checkpoint must be started again before that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message, Producer
    from pyspark.sql import DataFrame, Row

WRITERS = 4
DEADLINE_S = 60.0
TRANSACTION_MS = 600_000


@dataclass(frozen=True, slots=True)
class Target:
    """Where a batch goes. `writer` names the transactions and groups: it is that of the job and the result."""

    topic: str
    writer: str
    batch: int
    client: Mapping[str, str]
    """Settings of librdkafka."""


def write(frame: DataFrame, target: Target) -> None:
    """Write a batch (`key`, `value`, and optionally `headers` as Spark's Kafka source has them)."""
    frame.repartition(WRITERS, "key").foreachPartition(partial(write_rows, target))


def write_rows(target: Target, rows: Iterator[Row]) -> None:
    """One writer's part, in a process of Spark's. Raises KafkaException."""
    from pyspark import TaskContext

    first = next(rows, None)
    if first is None:
        return
    context = TaskContext.get()
    assert context is not None
    name = f"{target.writer}-{context.partitionId()}"
    producer, consumer = _clients(target, name)
    try:
        # the transaction of a writer that died is ended by this, so its group says what it committed
        producer.init_transactions(DEADLINE_S)
        if _written(consumer, target) > target.batch:
            return
        producer.begin_transaction()
        try:
            _produce(producer, target, first, rows)
            _note(producer, consumer, target)
            producer.commit_transaction(DEADLINE_S)
        except BaseException:
            producer.abort_transaction(DEADLINE_S)
            raise
    finally:
        consumer.close()


def _clients(target: Target, name: str) -> tuple[Producer, Consumer]:
    from confluent_kafka import Consumer, Producer

    own = {"transactional.id": name, "transaction.timeout.ms": TRANSACTION_MS, "linger.ms": 20}
    # keys go to the partitions to which the Java client, and so Spark's own sink, sends them
    producer = Producer({**target.client, **own, "compression.type": "lz4", "partitioner": "murmur2_random"})
    consumer = Consumer({**target.client, "group.id": name, "enable.auto.commit": False})
    return producer, consumer


def _written(consumer: Consumer, target: Target) -> int:
    """The number of batches that this writer has committed."""
    from confluent_kafka import TopicPartition

    (found,) = consumer.committed([TopicPartition(target.topic, 0)], DEADLINE_S)
    return max(int(found.offset), 0)


def _note(producer: Producer, consumer: Consumer, target: Target) -> None:
    from confluent_kafka import TopicPartition

    number = TopicPartition(target.topic, 0, target.batch + 1)
    producer.send_offsets_to_transaction([number], consumer.consumer_group_metadata(), DEADLINE_S)


def _produce(producer: Producer, target: Target, first: Row, rows: Iterator[Row]) -> None:
    from confluent_kafka import KafkaException

    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(error)

    def produce(row: Any) -> None:
        headers = [(one.key, _plain(one.value)) for one in row.headers or ()] if "headers" in row else None
        while True:
            try:
                producer.produce(
                    target.topic, _plain(row.value), _plain(row.key), headers=headers, on_delivery=delivered
                )
            except BufferError:
                producer.poll(1.0)
            else:
                producer.poll(0)
                return

    produce(first)
    for row in rows:
        produce(row)
    left = producer.flush(DEADLINE_S)
    if failures:
        raise KafkaException(failures[0])
    if left:
        raise TimeoutError(f"{left} rows for topic {target.topic} were not acknowledged within {DEADLINE_S:.0f} s")


def _plain(data: str | bytearray | None) -> str | bytes | None:
    """Binary columns are bytearrays, which librdkafka does not take."""
    return bytes(data) if isinstance(data, bytearray) else data
