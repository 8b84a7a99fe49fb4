"""Runs one Python client library in a process of its own: produce, consume, or be a member of a group.

    python python_client.py LIBRARY COMMAND '{"bootstrap": ...}'

A process of its own, because two versions of kafka-python cannot share one, and because a killed member must really be
killed. It speaks JSON lines on stdout; `member` also reads commands on stdin. It knows nothing of the tests.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import queue
import sys
import threading
import time
from typing import Any

LONG_VALUE = 10_000
DEADLINE_S = 120.0
KAFKA_PYTHON_POLL_MS = 330


def text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="surrogateescape")


def raw(data: str | None) -> bytes | None:
    return None if data is None else data.encode(errors="surrogateescape")


def value_text(data: bytes | None) -> str | None:
    if data is None or len(data) < LONG_VALUE:
        return text(data)
    return f"{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}"


def payload(record: dict[str, Any]) -> bytes | None:
    """The value; `size` asks for that many bytes of the value repeated."""
    value = raw(record["value"])
    size = record.get("size")
    return value if size is None or value is None else (value * (size // len(value) + 1))[:size]


def say(**event: Any) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def shape(place: tuple[str, int, int], key: Any, value: Any, headers: Any, timestamp: int) -> dict[str, Any]:
    """`place`: topic, partition, offset."""
    topic, partition, offset = place
    return {
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "key": text(key),
        "value": value_text(value),
        "headers": [[name, text(data)] for name, data in headers or ()],
        "timestamp": timestamp,
    }


class Confluent:
    """confluent-kafka: librdkafka."""

    def produce(self, spec: dict[str, Any]) -> list[list[int]]:
        from confluent_kafka import Producer

        settings = {"bootstrap.servers": spec["bootstrap"], "linger.ms": 20, "message.max.bytes": 100_000_000}
        if spec.get("codec"):
            settings["compression.type"] = spec["codec"]
        producer = Producer(settings | spec.get("settings", {}))
        reports: dict[int, list[int]] = {}

        def report(number: int) -> Any:
            def done(error: Any, message: Any) -> None:
                assert error is None, error
                reports[number] = [message.partition(), message.offset()]

            return done

        for number, record in enumerate(spec["records"]):
            where = {} if spec.get("partition") is None else {"partition": spec["partition"]}
            headers = [(name, raw(data)) for name, data in record["headers"]]
            stamp = {} if record.get("timestamp", -1) < 0 else {"timestamp": record["timestamp"]}
            producer.produce(
                spec["topic"], payload(record), raw(record["key"]), headers=headers, on_delivery=report(number),
                **where, **stamp,
            )  # fmt: skip
            producer.poll(0)
        left = producer.flush(DEADLINE_S)
        assert left == 0, f"{left} records were not delivered"
        return [reports[number] for number in range(len(spec["records"]))]

    def open(self, spec: dict[str, Any]) -> None:
        from confluent_kafka import Consumer, TopicPartition

        settings = {
            "bootstrap.servers": spec["bootstrap"],
            "group.id": spec.get("group", "none"),
            "auto.offset.reset": "earliest",
            "enable.auto.commit": spec.get("auto_commit", False),
            "fetch.message.max.bytes": spec.get("fetch_bytes", 1_048_576),
            "receive.message.max.bytes": 200_000_000,
            "topic.metadata.refresh.interval.ms": 1_000,
            "check.crcs": True,
        }
        if spec.get("instance"):
            settings["group.instance.id"] = spec["instance"]
        if "protocol" in spec:
            settings["group.protocol"] = spec["protocol"]
        else:
            settings["session.timeout.ms"] = spec.get("session_timeout_ms", 10_000)
            settings["heartbeat.interval.ms"] = 500
        if spec.get("assignor"):
            assignor = "group.remote.assignor" if "protocol" in spec else "partition.assignment.strategy"
            settings[assignor] = spec["assignor"]
        self.consumer = Consumer(settings | spec.get("settings", {}))
        if "assign" in spec:
            self.consumer.assign([TopicPartition(topic, partition, 0) for topic, partition in spec["assign"]])
        else:
            topics = ["^" + spec["pattern"]] if "pattern" in spec else spec["topics"]
            self.consumer.subscribe(topics)

    def poll(self) -> list[dict[str, Any]]:
        from confluent_kafka import KafkaError

        out = []
        for message in self.consumer.consume(500, 0.1):
            if message.error() is not None:
                # a broker that restarts, or a topic that is not there yet, is not an end
                assert message.error().retriable() or message.error().code() in (
                    KafkaError._TRANSPORT,
                    KafkaError._ALL_BROKERS_DOWN,
                    KafkaError.UNKNOWN_TOPIC_OR_PART,
                ), message.error()
                continue
            out.append(
                shape(
                    (message.topic(), message.partition(), message.offset()),
                    message.key(),
                    message.value(),
                    message.headers(),
                    message.timestamp()[1],
                )
            )
        return out

    def assignment(self) -> set[tuple[str, int]]:
        return {(part.topic, part.partition) for part in self.consumer.assignment()}

    def commit(self) -> None:
        from confluent_kafka import KafkaError, KafkaException

        try:
            self.consumer.commit(asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._NO_OFFSET:
                raise

    def close(self) -> None:
        self.consumer.close()


# kafka-python and aiokafka are of one family, and call most things the same


def producer_settings(spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "bootstrap_servers": spec["bootstrap"],
        "compression_type": spec.get("codec"),
        "linger_ms": 20,
        "max_request_size": 100_000_000,
        **spec.get("settings", {}),
    }


def consumer_settings(spec: dict[str, Any]) -> dict[str, Any]:
    instance = {"group_instance_id": spec["instance"]} if spec.get("instance") else {}
    return {
        "bootstrap_servers": spec["bootstrap"],
        "group_id": spec.get("group"),
        "auto_offset_reset": "earliest",
        "enable_auto_commit": spec.get("auto_commit", False),
        "max_partition_fetch_bytes": spec.get("fetch_bytes", 1_048_576),
        "session_timeout_ms": spec.get("session_timeout_ms", 10_000),
        "heartbeat_interval_ms": 500,
        "metadata_max_age_ms": 1_000,
        **instance,
        **spec.get("settings", {}),
    }


def message(spec: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    """What `send` takes."""
    stamp = {} if record.get("timestamp", -1) < 0 else {"timestamp_ms": record["timestamp"]}
    return {
        "topic": spec["topic"],
        "value": payload(record),
        "key": raw(record["key"]),
        "headers": [(name, raw(data)) for name, data in record["headers"]],
        "partition": spec.get("partition"),
        **stamp,
    }


def shapes(batches: dict[Any, list[Any]]) -> list[dict[str, Any]]:
    return [
        shape((r.topic, r.partition, r.offset), r.key, r.value, r.headers, r.timestamp)
        for records in batches.values()
        for r in records
    ]


class KafkaPython:
    """kafka-python, whichever version is first on the path."""

    def produce(self, spec: dict[str, Any]) -> list[list[int]]:
        from kafka import KafkaProducer

        producer = KafkaProducer(**producer_settings(spec))
        futures = [producer.send(**message(spec, record)) for record in spec["records"]]
        producer.flush(timeout=DEADLINE_S)
        done = [future.get(timeout=DEADLINE_S) for future in futures]
        producer.close()
        return [[meta.partition, meta.offset] for meta in done]

    def open(self, spec: dict[str, Any]) -> None:
        from kafka import KafkaConsumer, TopicPartition

        settings = consumer_settings(spec)
        if spec.get("assignor") == "cooperative-sticky":
            from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

            settings["partition_assignment_strategy"] = [CooperativeStickyAssignor]
        self.consumer = KafkaConsumer(fetch_max_bytes=max(52_428_800, spec.get("fetch_bytes", 0)), **settings)
        if "assign" in spec:
            parts = [TopicPartition(topic, partition) for topic, partition in spec["assign"]]
            self.consumer.assign(parts)
            self.consumer.seek_to_beginning(*parts)
        elif "pattern" in spec:
            self.consumer.subscribe(pattern="^" + spec["pattern"])
        else:
            self.consumer.subscribe(spec["topics"])
            self.consumer.topics()  # asks the broker and waits

    def poll(self) -> list[dict[str, Any]]:
        from kafka.errors import KafkaError

        try:
            batches = self.consumer.poll(timeout_ms=KAFKA_PYTHON_POLL_MS, max_records=500)
        except KafkaError as error:
            if not error.retriable:
                raise
            return []  # of 3.0.12 while a broker restarts: it looks for the coordinator, and nothing sends metadata
        self._remember_join()
        return shapes(batches)

    def _remember_join(self) -> None:
        """Have the next poll wait for a join that this one has begun.

        3.0.12 forgets it, on real Kafka as here: a leader that joins because the partitions of its topics have changed
        no longer knows why once it has sent SyncGroup (need_rejoin() compares snapshots, where Java's also asks for a
        join in progress). If poll() then returns before the response, nothing ever reads it. Its partitions are revoked
        and its heartbeats off, so the member waits forever.
        """
        coordinator = self.consumer._coordinator
        if getattr(coordinator, "_join_task", None) is not None:
            coordinator.request_rejoin()

    def assignment(self) -> set[tuple[str, int]]:
        return {(part.topic, part.partition) for part in self.consumer.assignment() or ()}

    def commit(self) -> None:
        self.consumer.commit()

    def close(self) -> None:
        self.consumer.close()


def with_context(settings: dict[str, Any]) -> dict[str, Any]:
    """aiokafka takes files for TLS as a context."""
    from aiokafka.helpers import create_ssl_context

    files = {
        name: settings.pop(f"ssl_{name}") for name in ("cafile", "certfile", "keyfile") if f"ssl_{name}" in settings
    }
    return {**settings, "ssl_context": create_ssl_context(**files)} if files else settings


class AioKafka:
    """aiokafka, driven from the outside one step at a time."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()

    def produce(self, spec: dict[str, Any]) -> list[list[int]]:
        return self.loop.run_until_complete(self._produce(spec))

    async def _produce(self, spec: dict[str, Any]) -> list[list[int]]:
        from aiokafka import AIOKafkaProducer

        producer = AIOKafkaProducer(**with_context(producer_settings(spec)))
        await producer.start()
        try:
            futures = [await producer.send(**message(spec, record)) for record in spec["records"]]
            done = await asyncio.gather(*futures)
        finally:
            await producer.stop()
        # with acks=0 it says nothing
        return [[meta.partition, meta.offset] for meta in done if meta is not None]

    def open(self, spec: dict[str, Any]) -> None:
        self.loop.run_until_complete(self._open(spec))

    async def _open(self, spec: dict[str, Any]) -> None:
        from aiokafka import AIOKafkaConsumer, TopicPartition

        self.consumer = AIOKafkaConsumer(**with_context(consumer_settings(spec)))
        if "pattern" in spec:
            self.consumer.subscribe(pattern="^" + spec["pattern"])
        elif "topics" in spec:
            self.consumer.subscribe(spec["topics"])
        await self.consumer.start()
        if "assign" in spec:
            parts = [TopicPartition(topic, partition) for topic, partition in spec["assign"]]
            self.consumer.assign(parts)
            await self.consumer.seek_to_beginning(*parts)

    def poll(self) -> list[dict[str, Any]]:
        batches = self.loop.run_until_complete(self.consumer.getmany(timeout_ms=100, max_records=500))
        return shapes(batches)

    def assignment(self) -> set[tuple[str, int]]:
        return {(part.topic, part.partition) for part in self.consumer.assignment()}

    def commit(self) -> None:
        self.loop.run_until_complete(self.consumer.commit())

    def close(self) -> None:
        self.loop.run_until_complete(self.consumer.stop())


LIBRARIES = {"confluent": Confluent, "kafka-python": KafkaPython, "aiokafka": AioKafka}


def produce(client: Any, spec: dict[str, Any]) -> None:
    say(delivered=client.produce(spec))


def consume(client: Any, spec: dict[str, Any]) -> None:
    """Read `count` records from the start of the partitions in `assign`, or as a member of a group, and end."""
    client.open(spec)
    records: list[dict[str, Any]] = []
    end = time.monotonic() + spec.get("deadline_s", DEADLINE_S)
    while len(records) < spec["count"] and time.monotonic() < end:
        records += client.poll()
    if spec.get("group"):
        client.commit()
    client.close()
    say(records=records)


def member(client: Any, spec: dict[str, Any]) -> None:
    """Consume until asked to close; every record, every change of the assignment and every commit is one line."""
    orders: queue.Queue[str] = queue.Queue()
    threading.Thread(target=lambda: list(map(orders.put, map(str.strip, sys.stdin))), daemon=True).start()
    client.open(spec)
    say(event="started")
    held: set[tuple[str, int]] = set()
    while True:
        records = client.poll()
        now = client.assignment()
        if now != held:
            held = now
            say(event="assignment", partitions=sorted(held))
        for record in records:
            say(event="record", **record)
        try:
            order = orders.get_nowait()
        except queue.Empty:
            continue
        if order == "commit":
            client.commit()
            say(event="committed")
        elif order == "close":
            client.close()
            say(event="closed")
            return


COMMANDS = {"produce": produce, "consume": consume, "member": member}


def main() -> None:
    # to stderr, where a test that fails finds what the library had to say
    logging.basicConfig(
        level=os.environ.get("COMPAT_LOG", "INFO"), format="%(asctime)s %(name)s %(levelname)s %(message)s"
    )
    library, command, spec = sys.argv[1:4]
    COMMANDS[command](LIBRARIES[library](), json.loads(sys.stdin.readline() if spec == "-" else spec))


if __name__ == "__main__":
    main()
