"""confluent-kafka with `group.protocol=consumer` (KIP-848), on a broker in this process that has `group.version` 1.

No build supports that level yet, so the broker is opened with it by hand, on a thread of its own.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import trio
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupType, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from compat_tests.support.waiting import eventually
from kpybroker.broker.app import Broker
from kpybroker.config.broker import BrokerConfig
from kpybroker.core.features import GROUP_VERSION, VersionRange

START_S = 60
SETTLE_S = 90.0
PARTITIONS = 4
RECORDS = 200


@contextmanager
def serving(directory: Path) -> Iterator[str]:
    """The address of a broker with heartbeats short enough for a test."""
    config = BrokerConfig(
        {
            "broker.id": "0",
            "log.dirs": str(directory),
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "2",
            "group.consumer.min.heartbeat.interval.ms": "100",
            "group.consumer.heartbeat.interval.ms": "100",
            "group.consumer.assignment.interval.ms": "0",
        }
    )
    started: queue.Queue[tuple[int, trio.lowlevel.TrioToken, trio.CancelScope] | BaseException] = queue.Queue()

    async def serve() -> None:
        with trio.CancelScope() as scope:
            async with Broker.open(config, features={GROUP_VERSION: VersionRange(0, 1)}) as broker:
                started.put((broker.bound[0].listener.address[1], trio.lowlevel.current_trio_token(), scope))
                await trio.sleep_forever()

    def run() -> None:
        try:
            trio.run(serve)
        except BaseException as error:
            started.put(error)
            raise

    thread = threading.Thread(target=run, name="broker")
    thread.start()
    begun = started.get(timeout=START_S)
    assert not isinstance(begun, BaseException), begun
    port, token, scope = begun
    try:
        yield f"127.0.0.1:{port}"
    finally:
        token.run_sync_soon(scope.cancel)
        thread.join(START_S)
        assert not thread.is_alive()


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[str]:
    with serving(tmp_path) as address:
        yield address


@pytest.fixture
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


def create(admin: AdminClient, name: str, partitions: int = PARTITIONS) -> None:
    for future in admin.create_topics([NewTopic(name, partitions, 1)]).values():
        future.result(START_S)


def produce(bootstrap: str, topic: str, first: int = 0) -> set[str]:
    producer = Producer({"bootstrap.servers": bootstrap})
    values = {str(number) for number in range(first, first + RECORDS)}
    for value in values:
        producer.produce(topic, value, partition=int(value) % PARTITIONS)
    assert producer.flush(START_S) == 0
    return values


class Group:
    """Consumers of one group, polled together; `seen` has the values of what they received."""

    def __init__(self, bootstrap: str, stack: ExitStack) -> None:
        self._bootstrap = bootstrap
        self._stack = stack
        self.members: list[Consumer] = []
        self.seen: set[str] = set()

    def join(self, *topics: str, **settings: str) -> Consumer:
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "g",
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )
        self._stack.callback(consumer.close)
        consumer.subscribe(list(topics))
        self.members.append(consumer)
        return consumer

    def leave(self, consumer: Consumer) -> None:
        self.members.remove(consumer)
        consumer.close()

    def counts(self) -> list[int]:
        """How many partitions each member has."""
        return [len(consumer.assignment()) for consumer in self.members]

    def poll_until(self, is_so: Callable[[], bool], what: str) -> None:
        def one_round() -> bool:
            for consumer in self.members:
                for message in consumer.consume(RECORDS, 0.05):
                    if (error := message.error()) is not None:
                        raise KafkaException(error)
                    self.seen.add((message.value() or b"").decode())
            return is_so()

        eventually(one_round, what, SETTLE_S)


@pytest.fixture
def group(bootstrap: str) -> Iterator[Group]:
    with ExitStack() as stack:
        yield Group(bootstrap, stack)


def test_members_share_partitions_and_who_stays_takes_over(bootstrap: str, admin: AdminClient, group: Group) -> None:
    create(admin, "t")
    first = group.join("t")
    group.poll_until(lambda: group.counts() == [4], "the whole topic")
    second = group.join("t")
    group.poll_until(lambda: group.counts() == [2, 2], "halves")
    assert not {one.partition for one in first.assignment()} & {one.partition for one in second.assignment()}
    values = produce(bootstrap, "t")
    group.poll_until(lambda: group.seen == values, "all records")
    for consumer in group.members:
        consumer.commit(asynchronous=False)
    described = admin.describe_consumer_groups(["g"])["g"].result(START_S)
    assert (described.state, described.type) == (ConsumerGroupState.STABLE, ConsumerGroupType.CONSUMER)
    assert sorted(len(member.assignment.topic_partitions) for member in described.members) == [2, 2]
    group.leave(first)
    group.poll_until(lambda: group.counts() == [4], "the partitions of the one that left")
    more = produce(bootstrap, "t", RECORDS)
    group.poll_until(lambda: group.seen == values | more, "the records after that")


def test_a_group_goes_on_where_it_committed(bootstrap: str, admin: AdminClient, group: Group) -> None:
    create(admin, "t")
    values = produce(bootstrap, "t")
    first = group.join("t")
    group.poll_until(lambda: group.seen == values, "all records")
    first.commit(asynchronous=False)
    group.leave(first)
    group.seen.clear()
    more = produce(bootstrap, "t", RECORDS)
    group.join("t")
    group.poll_until(lambda: len(group.seen) >= RECORDS, "the records after the commit")
    assert group.seen == more


def test_a_pattern_brings_topics_and_a_topic_may_grow(bootstrap: str, admin: AdminClient, group: Group) -> None:
    for name in ("orders-1", "orders-2", "other"):
        create(admin, name, 1)
    consumer = group.join("^orders-.*")
    group.poll_until(
        lambda: {one.topic for one in consumer.assignment()} == {"orders-1", "orders-2"}, "what the pattern matches"
    )
    for future in admin.create_partitions([NewPartitions("orders-1", 3)]).values():
        future.result(START_S)
    group.poll_until(lambda: group.counts() == [4], "the new partitions")


def test_a_static_member_that_restarts_moves_nothing(bootstrap: str, admin: AdminClient, group: Group) -> None:
    create(admin, "t")
    first = group.join("t", group_instance_id="one")
    second = group.join("t", group_instance_id="two")
    group.poll_until(lambda: group.counts() == [2, 2], "halves")
    kept = {one.partition for one in second.assignment()}
    had = {one.partition for one in first.assignment()}
    group.leave(first)
    again = group.join("t", group_instance_id="one")
    group.poll_until(lambda: group.counts() == [2, 2], "halves again")
    assert {one.partition for one in again.assignment()} == had
    assert {one.partition for one in second.assignment()} == kept
