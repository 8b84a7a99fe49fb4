"""What the users of each Python client and of kcat lean on besides reading and writing: positions, timestamps,
idempotence, tombstones, missing topics, reading on while others write."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import OFFSET_END, Consumer, KafkaError, Message, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PythonTopicPartition

from compat_tests.conftest import MakeTopic
from compat_tests.support import quick
from compat_tests.support.clients import CLIENTS, PYTHON_CLIENTS, Client, python_call
from compat_tests.support.groups.members import Member
from compat_tests.support.records import Record, make_records
from compat_tests.support.services import Broker
from compat_tests.support.tools import run_process

DEADLINE_S = 90.0
# young enough for the stock retention of seven days, and a whole second
START_MS = (int(time.time()) - 3600) * 1000

Join = Callable[..., Member]


@pytest.mark.parametrize("client", CLIENTS)
def test_missing_topic_is_created_by_a_producer(broker: Broker, name: str, client: str) -> None:
    """auto.create.topics.enable is Kafka's default: the first record makes the topic and is in it."""
    records = make_records(client, 10)
    Client(client, broker.bootstrap).produce(name, records)
    assert [m.value().decode() for m in quick.read(broker.bootstrap, [(name, 0)], 10)] == [r.value for r in records]


@pytest.mark.parametrize("client", PYTHON_CLIENTS)
def test_delivery_reports(broker: Broker, topic: MakeTopic, client: str) -> None:
    """A producer receives the partition and the offset of each record, in its order."""
    made = topic(partitions=3)
    reported = Client(client, broker.bootstrap).produce(made, make_records("r", 100), partition=1)
    assert reported == [(1, n) for n in range(100)]


@pytest.mark.parametrize("client", PYTHON_CLIENTS)
def test_timestamps(broker: Broker, topic: MakeTopic, client: str) -> None:
    """CreateTime keeps what the producer said, LogAppendTime replaces it."""
    created, appended = topic(suffix="-create"), topic(suffix="-append", message_timestamp_type="LogAppendTime")
    records = [Record(str(n), "k", timestamp=START_MS + n) for n in range(5)]
    one = Client(client, broker.bootstrap)
    for made in (created, appended):
        one.produce(made, records, partition=0)
    assert [r.timestamp for r in one.consume([created], 5)] == [START_MS + n for n in range(5)]
    stamps = [r.timestamp for r in one.consume([appended], 5)]
    assert all(stamp > START_MS + 1000 for stamp in stamps)
    assert stamps == sorted(stamps)


@pytest.mark.parametrize("client", PYTHON_CLIENTS)
def test_headers(broker: Broker, topic: MakeTopic, client: str) -> None:
    """Headers keep order, duplicates, empty values and bytes that are no text."""
    headers = (("a", "1"), ("b", ""), ("a", "2"), ("raw", "\udcff\udc80"))
    made = topic()
    one = Client(client, broker.bootstrap)
    one.produce(made, [Record("v", "k", headers)])
    (read,) = one.consume([made], 1)
    assert read.headers == headers


@pytest.mark.parametrize("client", PYTHON_CLIENTS)
def test_nulls(made: str, broker: Broker, client: str) -> None:
    """A null key, a null value (a tombstone) and an empty value are three things."""
    records = [Record("v", None), Record(None, "k"), Record("", ""), Record("v", "k")]
    one = Client(client, broker.bootstrap)
    one.produce(made, records)
    assert one.consume([made], 4) == records


@pytest.mark.parametrize(
    ("client", "settings"),
    [
        ("confluent", {"acks": "0"}),
        ("confluent", {"acks": "1"}),
        ("confluent", {"enable.idempotence": True}),
        ("kafka-python-3.0.12", {"acks": 0, "enable_idempotence": False}),
        ("kafka-python-3.0.12", {"acks": 1, "enable_idempotence": False}),
        ("kafka-python-3.0.12", {"enable_idempotence": True}),
        # not kafka-python 2.2.15 with acks=0: it drops what it has not sent yet when it closes, on real Kafka too
        ("kafka-python-2.2.15", {"acks": 1}),
        ("kafka-python-2.2.15", {"acks": "all"}),
        ("kafka-python-2.2.15", {"enable_idempotence": True}),
        ("aiokafka", {"acks": 0}),
        ("aiokafka", {"acks": "all"}),
        ("aiokafka", {"enable_idempotence": True}),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(f"{k}={v}" for k, v in value.items()),
)
def test_acks_and_idempotence(made: str, broker: Broker, client: str, settings: dict[str, Any]) -> None:
    records: list[dict[str, Any]] = [{"key": None, "value": str(n), "headers": []} for n in range(500)]
    python_call(client, "produce", bootstrap=broker.bootstrap, topic=made, records=records, settings=settings)
    read = quick.read(broker.bootstrap, [(made, 0)], 500)
    assert [(m.offset(), m.value()) for m in read] == [(n, str(n).encode()) for n in range(500)]


def test_many_batches_in_flight(made: str, broker: Broker) -> None:
    """Thousands of small batches from an idempotent producer, five in flight: every record once and in order."""
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 0,
            "batch.num.messages": 10,
            "log_level": 0,
        }
    )
    for n in range(20_000):
        producer.produce(made, str(n).encode())
        if n % 1000 == 0:
            producer.poll(0)
    assert producer.flush(DEADLINE_S) == 0
    read = quick.read(broker.bootstrap, [(made, 0)], 20_000)
    assert [int(m.value()) for m in read] == list(range(20_000))


def test_unknown_topic_without_creation(broker: Broker, name: str) -> None:
    """A consumer that does not allow creation gets an error, and the topic is not made."""
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": name, "allow.auto.create.topics": False, "log_level": 0}
    )
    consumer.subscribe([name])
    message = consumer.poll(DEADLINE_S)
    consumer.close()
    assert message is not None
    assert message.error().code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert name not in quick.admin_client(broker.bootstrap).list_topics(timeout=DEADLINE_S).topics


def test_confluent_positions(made: str, broker: Broker, name: str) -> None:
    """Watermarks, lookup by time, seek, and reading from the end."""
    quick.fill(broker.bootstrap, made, [str(n) for n in range(10)], timestamps=[START_MS + n * 1000 for n in range(10)])
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": name, "log_level": 0})
    assert consumer.get_watermark_offsets(TopicPartition(made, 0), timeout=DEADLINE_S) == (0, 10)
    (found,) = consumer.offsets_for_times([TopicPartition(made, 0, START_MS + 4500)], timeout=DEADLINE_S)
    assert found.offset == 5

    def next_value() -> bytes:
        message: Message | None = consumer.poll(DEADLINE_S)
        assert message is not None
        assert message.error() is None, message.error()
        value = message.value()
        assert isinstance(value, bytes)
        return value

    consumer.assign([TopicPartition(made, 0, 7)])
    assert next_value() == b"7"
    consumer.seek(TopicPartition(made, 0, 2))
    assert next_value() == b"2"
    consumer.assign([TopicPartition(made, 0, OFFSET_END)])
    assert consumer.poll(1.0) is None
    quick.fill(broker.bootstrap, made, ["new"])
    assert next_value() == b"new"
    consumer.close()


def test_confluent_offset_out_of_range(made: str, broker: Broker, name: str) -> None:
    """An offset that is not there: an error when asked for, else a jump to where auto.offset.reset points."""
    quick.fill(broker.bootstrap, made, ["a", "b"])
    outcomes: list[object] = []
    for reset in ("error", "earliest"):
        consumer = Consumer(
            {"bootstrap.servers": broker.bootstrap, "group.id": name, "auto.offset.reset": reset, "log_level": 0}
        )
        consumer.assign([TopicPartition(made, 0, 99)])
        message = consumer.poll(DEADLINE_S)
        assert message is not None
        outcomes.append(message.error().code() if message.error() else message.value())
        consumer.close()
    assert outcomes == [KafkaError._AUTO_OFFSET_RESET, b"a"]


def test_kafka_python_positions(broker: Broker, topic: MakeTopic) -> None:
    made = topic(partitions=2)
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    for n in range(10):
        producer.send(made, str(n).encode(), partition=0, timestamp_ms=START_MS + n * 1000)
    producer.flush(timeout=DEADLINE_S)
    assert producer.partitions_for(made) == {0, 1}
    producer.close()
    part = PythonTopicPartition(made, 0)
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, consumer_timeout_ms=5000)
    consumer.assign([part])
    assert consumer.beginning_offsets([part]) == {part: 0}
    assert consumer.end_offsets([part]) == {part: 10}
    assert consumer.offsets_for_times({part: START_MS + 4500})[part].offset == 5
    consumer.seek(part, 8)
    assert [next(consumer).value for _ in range(2)] == [b"8", b"9"]
    assert consumer.position(part) == 10
    assert made in consumer.topics()
    consumer.close()


def test_aiokafka_reads_while_it_writes(broker: Broker, topic: MakeTopic, name: str) -> None:
    made = topic(partitions=2)

    async def write() -> None:
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            for n in range(200):
                await producer.send_and_wait(made, str(n).encode(), partition=n % 2)

    async def read() -> dict[int, list[int]]:
        seen: dict[int, list[int]] = {0: [], 1: []}
        consumer = AIOKafkaConsumer(
            made, bootstrap_servers=broker.bootstrap, group_id=name, auto_offset_reset="earliest"
        )
        async with consumer:
            async for message in consumer:
                seen[message.partition].append(int(message.value))
                if sum(map(len, seen.values())) == 200:
                    return seen
        raise AssertionError("the consumer ended")

    async def both() -> dict[int, list[int]]:
        _, seen = await asyncio.wait_for(asyncio.gather(write(), read()), DEADLINE_S)
        return seen

    assert asyncio.run(both()) == {0: list(range(0, 200, 2)), 1: list(range(1, 200, 2))}


def test_kcat_metadata(broker: Broker, topic: MakeTopic) -> None:
    made = topic(partitions=3)
    listed = json.loads(run_process(["kcat", "-L", "-J", "-b", broker.bootstrap, "-t", made]).out)
    assert listed["brokers"] == [{"id": broker.node_id, "name": f"127.0.0.1:{broker.port}"}]
    (described,) = listed["topics"]
    assert described["topic"] == made
    assert [part["leader"] for part in described["partitions"]] == [broker.node_id] * 3


def test_kcat_offsets_by_time(made: str, broker: Broker) -> None:
    quick.fill(broker.bootstrap, made, [str(n) for n in range(10)], timestamps=[START_MS + n * 1000 for n in range(10)])
    query = run_process(["kcat", "-Q", "-b", broker.bootstrap, "-t", f"{made}:0:{START_MS + 4500}"])
    assert query.out.strip() == f"{made} [0] offset 5"
    slice_of_time = ["-o", f"s@{START_MS + 2000}", "-o", f"e@{START_MS + 5000}"]
    read = run_process(["kcat", "-C", "-q", "-e", "-b", broker.bootstrap, "-t", made, *slice_of_time])
    assert read.lines == ["2", "3", "4"]
    last = run_process(["kcat", "-C", "-q", "-e", "-b", broker.bootstrap, "-t", made, "-o", "-2"])
    assert last.lines == ["8", "9"]


def test_kcat_group(broker: Broker, topic: MakeTopic, name: str) -> None:
    """kcat -G balances, commits as it leaves, and the next one reads on."""
    made = topic(partitions=2)
    settings = ["-X", "auto.offset.reset=earliest", "-q", "-e"]
    quick.fill(broker.bootstrap, made, ["a", "b"], 0)
    quick.fill(broker.bootstrap, made, ["c"], 1)
    first = run_process(["kcat", "-b", broker.bootstrap, *settings, "-G", name, made])
    assert sorted(first.lines) == ["a", "b", "c"]
    quick.fill(broker.bootstrap, made, ["d"], 1)
    second = run_process(["kcat", "-b", broker.bootstrap, *settings, "-G", name, made])
    assert second.lines == ["d"]
