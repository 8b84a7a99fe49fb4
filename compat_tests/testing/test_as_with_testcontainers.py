"""Twenty tests as people write them for testcontainers' KafkaContainer. Only the fixture is another one.

With testcontainers it is:

    @pytest.fixture(scope="module")
    def bootstrap_server():
        with KafkaContainer() as kafka:
            yield kafka.get_bootstrap_server()
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, ResourceType
from kafka import KafkaConsumer, KafkaProducer

from kpybroker.testing import Broker

WAIT_S = 120


@pytest.fixture(scope="module")
def bootstrap_server() -> Iterator[str]:
    with Broker() as kafka:
        yield kafka.bootstrap_server


@pytest.fixture
def topic() -> str:
    return f"topic-{uuid.uuid4()}"


@pytest.fixture
def admin(bootstrap_server: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap_server})


@pytest.fixture
def producer(bootstrap_server: str) -> Producer:
    return Producer({"bootstrap.servers": bootstrap_server})


@pytest.fixture
def make_consumer(bootstrap_server: str) -> Iterator[Any]:
    made = []

    def make(topic: str, group: str = "", **settings: Any) -> Consumer:
        given = {"group.id": group or str(uuid.uuid4()), "auto.offset.reset": "earliest", **settings}
        consumer = Consumer({"bootstrap.servers": bootstrap_server, **given})
        consumer.subscribe([topic])
        made.append(consumer)
        return consumer

    yield make
    for consumer in made:
        with contextlib.suppress(RuntimeError):  # closed by the test
            consumer.close()


def read(consumer: Consumer, count: int) -> list[Any]:
    messages: list[Any] = []
    end = time.monotonic() + WAIT_S
    while len(messages) < count and time.monotonic() < end:
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            messages.append(message)
    assert len(messages) == count
    return messages


def create(admin: AdminClient, topic: str, partitions: int = 1, **config: str) -> None:
    keys = {name.replace("_", "."): value for name, value in config.items()}
    admin.create_topics([NewTopic(topic, partitions, 1, config=keys)])[topic].result(WAIT_S)


def test_the_broker_is_reachable(admin: AdminClient) -> None:
    assert len(admin.list_topics(timeout=WAIT_S).brokers) == 1


def test_a_produced_message_is_consumed(producer: Producer, make_consumer: Any, topic: str) -> None:
    producer.produce(topic, b"hello")
    assert producer.flush(WAIT_S) == 0
    assert read(make_consumer(topic), 1)[0].value() == b"hello"


def test_kafka_python_round_trip(bootstrap_server: str, topic: str) -> None:
    sender = KafkaProducer(
        bootstrap_servers=bootstrap_server, value_serializer=lambda value: json.dumps(value).encode()
    )
    sender.send(topic, {"id": 1}).get(WAIT_S)
    sender.close()
    reader = KafkaConsumer(
        topic, bootstrap_servers=bootstrap_server, auto_offset_reset="earliest", consumer_timeout_ms=WAIT_S * 1000
    )
    assert json.loads(next(reader).value) == {"id": 1}
    reader.close()


def test_aiokafka_round_trip(bootstrap_server: str, topic: str) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async def run() -> bytes:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap_server) as sender:
            await sender.send_and_wait(topic, b"async")
        async with AIOKafkaConsumer(topic, bootstrap_servers=bootstrap_server, auto_offset_reset="earliest") as reader:
            found: bytes = (await asyncio.wait_for(reader.getone(), WAIT_S)).value
            return found

    assert asyncio.run(run()) == b"async"


def test_keys_headers_and_timestamps(producer: Producer, make_consumer: Any, topic: str) -> None:
    producer.produce(topic, b"v", b"k", headers={"trace": "1"}, timestamp=1_700_000_000_000)
    producer.flush(WAIT_S)
    message = read(make_consumer(topic), 1)[0]
    assert (message.key(), message.headers(), message.timestamp()[1]) == (b"k", [("trace", b"1")], 1_700_000_000_000)


def test_the_order_of_a_key_is_kept(admin: AdminClient, producer: Producer, make_consumer: Any, topic: str) -> None:
    create(admin, topic, partitions=3)
    for number in range(30):
        producer.produce(topic, str(number), "same")
    producer.flush(WAIT_S)
    assert [int(message.value()) for message in read(make_consumer(topic), 30)] == list(range(30))


def test_a_topic_is_created_with_its_partitions(admin: AdminClient, topic: str) -> None:
    create(admin, topic, partitions=4)
    assert len(admin.list_topics(topic, WAIT_S).topics[topic].partitions) == 4


def test_a_topic_cannot_be_created_twice(admin: AdminClient, topic: str) -> None:
    create(admin, topic)
    with pytest.raises(KafkaException) as caught:
        create(admin, topic)
    assert caught.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS


def test_a_topic_is_deleted(admin: AdminClient, topic: str) -> None:
    create(admin, topic)
    admin.delete_topics([topic])[topic].result(WAIT_S)
    end = time.monotonic() + WAIT_S
    while topic in admin.list_topics(timeout=WAIT_S).topics:
        assert time.monotonic() < end


def test_partitions_are_added(admin: AdminClient, topic: str) -> None:
    create(admin, topic)
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(WAIT_S)
    end = time.monotonic() + WAIT_S
    while len(admin.list_topics(topic, WAIT_S).topics[topic].partitions) != 3:
        assert time.monotonic() < end


def test_settings_of_a_topic(admin: AdminClient, topic: str) -> None:
    create(admin, topic, retention_ms="60000")
    resource = ConfigResource(ResourceType.TOPIC, topic)
    (described,) = admin.describe_configs([resource]).values()
    assert described.result(WAIT_S)["retention.ms"].value == "60000"


def test_a_message_that_is_too_large_is_refused(admin: AdminClient, producer: Producer, topic: str) -> None:
    create(admin, topic, max_message_bytes="1000")
    errors: list[Any] = []
    producer.produce(topic, b"x" * 5_000, on_delivery=lambda error, _: errors.append(error))
    producer.flush(WAIT_S)
    assert errors[0].code() == KafkaError.MSG_SIZE_TOO_LARGE


def test_a_group_goes_on_where_it_committed(producer: Producer, make_consumer: Any, topic: str) -> None:
    for number in range(4):
        producer.produce(topic, str(number))
    producer.flush(WAIT_S)
    group = str(uuid.uuid4())
    first = make_consumer(topic, group, **{"enable.auto.commit": False})
    first.commit(read(first, 2)[-1], asynchronous=False)
    first.close()
    second = make_consumer(topic, group)
    assert [message.value() for message in read(second, 2)] == [b"2", b"3"]


def test_two_groups_read_everything(producer: Producer, make_consumer: Any, topic: str) -> None:
    producer.produce(topic, b"both")
    producer.flush(WAIT_S)
    assert read(make_consumer(topic), 1)[0].value() == read(make_consumer(topic), 1)[0].value() == b"both"


def test_members_share_partitions(admin: AdminClient, make_consumer: Any, topic: str) -> None:
    create(admin, topic, partitions=4)
    group = str(uuid.uuid4())
    members = [make_consumer(topic, group) for _ in range(2)]
    end = time.monotonic() + WAIT_S
    while sorted(len(member.assignment()) for member in members) != [2, 2]:
        assert time.monotonic() < end
        for member in members:
            member.poll(0.1)


def test_seek_reads_again(producer: Producer, make_consumer: Any, topic: str) -> None:
    producer.produce(topic, b"again")
    producer.flush(WAIT_S)
    consumer = make_consumer(topic)
    read(consumer, 1)
    consumer.seek(TopicPartition(topic, 0, 0))
    assert read(consumer, 1)[0].value() == b"again"


def test_watermarks(producer: Producer, make_consumer: Any, topic: str) -> None:
    for _ in range(5):
        producer.produce(topic, b"x")
    producer.flush(WAIT_S)
    assert make_consumer(topic).get_watermark_offsets(TopicPartition(topic, 0), WAIT_S) == (0, 5)


def test_an_aborted_transaction_is_not_seen(bootstrap_server: str, make_consumer: Any, topic: str) -> None:
    sender = Producer({"bootstrap.servers": bootstrap_server, "transactional.id": topic})
    sender.init_transactions(WAIT_S)
    for value, ends in ((b"aborted", sender.abort_transaction), (b"committed", sender.commit_transaction)):
        sender.begin_transaction()
        sender.produce(topic, value)
        sender.flush(WAIT_S)
        ends(WAIT_S)
    consumer = make_consumer(topic, **{"isolation.level": "read_committed"})
    assert read(consumer, 1)[0].value() == b"committed"


def test_a_service_in_a_thread_responds(bootstrap_server: str, producer: Producer, make_consumer: Any) -> None:
    requests, replies = f"requests-{uuid.uuid4()}", f"replies-{uuid.uuid4()}"
    asked = make_consumer(requests)

    def serve() -> None:
        sender = Producer({"bootstrap.servers": bootstrap_server})
        sender.produce(replies, read(asked, 1)[0].value().upper())
        sender.flush(WAIT_S)

    service = threading.Thread(target=serve)
    service.start()
    producer.produce(requests, b"ping")
    producer.flush(WAIT_S)
    assert read(make_consumer(replies), 1)[0].value() == b"PING"
    service.join(WAIT_S)


def test_many_producers_at_once(bootstrap_server: str, make_consumer: Any, topic: str) -> None:
    def send(number: int) -> int:
        sender = Producer({"bootstrap.servers": bootstrap_server})
        for index in range(50):
            sender.produce(topic, f"{number}-{index}")
        left: int = sender.flush(WAIT_S)
        return left

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(send, range(4))) == [0, 0, 0, 0]
    found = {message.value().decode() for message in read(make_consumer(topic), 200)}
    assert found == {f"{number}-{index}" for number in range(4) for index in range(50)}
