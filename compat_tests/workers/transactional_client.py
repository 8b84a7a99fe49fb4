"""A transactional producer of one Python client library, in a process of its own that does what it is asked to.

    python transactional_client.py LIBRARY '{"bootstrap": ..., "transactional_id": ..., "timeout_ms": ...}'

Orders are JSON lines on stdin, with one response on stdout each: {} when it is done, {"error": ...} in the library's
words when it fails. It knows nothing of the tests.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

DEADLINE_S = 180.0
Offsets = list[tuple[str, int, int]]


class Confluent:
    """confluent-kafka: librdkafka."""

    def __init__(self, spec: dict[str, Any]) -> None:
        from confluent_kafka import Producer

        self._bootstrap = spec["bootstrap"]
        self._failures: list[str] = []
        self._producer = Producer(
            {
                "bootstrap.servers": spec["bootstrap"],
                "transactional.id": spec["transactional_id"],
                "transaction.timeout.ms": spec["timeout_ms"],
                "linger.ms": 1,
                "log_level": 0,
                # with `rebootstrap` librdkafka 2.16 loses its coordinator when all brokers have gone for a moment
                "metadata.recovery.strategy": "none",
            }
        )

    def init(self) -> None:
        self._producer.init_transactions(DEADLINE_S)

    def begin(self) -> None:
        self._producer.begin_transaction()

    def produce(self, topic: str, partition: int, values: list[str]) -> None:
        for value in values:
            self._producer.produce(topic, value.encode(), partition=partition, on_delivery=self._report)
        assert self._producer.flush(DEADLINE_S) == 0, "not delivered"
        if self._failures:
            raise RuntimeError(self._failures.pop())

    def _report(self, error: object, _message: object) -> None:
        if error is not None:
            self._failures.append(str(error))

    def offsets(self, group: str, offsets: Offsets) -> None:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": group, "log_level": 0})
        metadata = consumer.consumer_group_metadata()
        places = [TopicPartition(*offset) for offset in offsets]
        self._producer.send_offsets_to_transaction(places, metadata, DEADLINE_S)
        consumer.close()

    def commit(self) -> None:
        self._producer.commit_transaction(DEADLINE_S)

    def abort(self) -> None:
        self._producer.abort_transaction(DEADLINE_S)


class KafkaPython:
    """kafka-python 3."""

    def __init__(self, spec: dict[str, Any]) -> None:
        from kafka import KafkaProducer

        self._producer = KafkaProducer(
            bootstrap_servers=spec["bootstrap"],
            transactional_id=spec["transactional_id"],
            transaction_timeout_ms=spec["timeout_ms"],
        )

    def init(self) -> None:
        self._producer.init_transactions()

    def begin(self) -> None:
        self._producer.begin_transaction()

    def produce(self, topic: str, partition: int, values: list[str]) -> None:
        sent = [self._producer.send(topic, value.encode(), partition=partition) for value in values]
        self._producer.flush(timeout=DEADLINE_S)
        for one in sent:
            one.get(timeout=DEADLINE_S)

    def offsets(self, group: str, offsets: Offsets) -> None:
        from kafka.structs import OffsetAndMetadata, TopicPartition

        places = {
            TopicPartition(topic, partition): OffsetAndMetadata(offset, "", -1) for topic, partition, offset in offsets
        }
        self._producer.send_offsets_to_transaction(places, group)

    def commit(self) -> None:
        self._producer.commit_transaction()

    def abort(self) -> None:
        self._producer.abort_transaction()


class AioKafka:
    """aiokafka, whose `start` is also the init."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._loop = asyncio.new_event_loop()
        self._spec = spec

    def _run(self, coroutine: Any) -> Any:
        return self._loop.run_until_complete(asyncio.wait_for(coroutine, DEADLINE_S))

    def init(self) -> None:
        from aiokafka import AIOKafkaProducer

        async def start() -> AIOKafkaProducer:
            producer = AIOKafkaProducer(
                bootstrap_servers=self._spec["bootstrap"],
                transactional_id=self._spec["transactional_id"],
                transaction_timeout_ms=self._spec["timeout_ms"],
            )
            await producer.start()
            return producer

        self._producer = self._run(start())

    def begin(self) -> None:
        self._run(self._producer.begin_transaction())

    def produce(self, topic: str, partition: int, values: list[str]) -> None:
        async def send() -> None:
            sent = [await self._producer.send(topic, value.encode(), partition=partition) for value in values]
            await self._producer.flush()
            for one in sent:
                await one

        self._run(send())

    def offsets(self, group: str, offsets: Offsets) -> None:
        from aiokafka import TopicPartition

        places = {TopicPartition(topic, partition): offset for topic, partition, offset in offsets}
        self._run(self._producer.send_offsets_to_transaction(places, group))

    def commit(self) -> None:
        self._run(self._producer.commit_transaction())

    def abort(self) -> None:
        self._run(self._producer.abort_transaction())


LIBRARIES = {"confluent": Confluent, "kafka-python": KafkaPython, "aiokafka": AioKafka}


def main() -> None:
    library, spec = sys.argv[1:]
    client: Any = LIBRARIES[library](json.loads(spec))
    for line in sys.stdin:
        order, *arguments = json.loads(line)
        response: dict[str, str] = {}
        try:
            getattr(client, order)(*arguments)
        except Exception as error:
            response = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps(response) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
