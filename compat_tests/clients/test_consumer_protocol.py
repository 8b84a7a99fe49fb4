"""confluent-kafka with `group.protocol=consumer` (KIP-848), groups that change to it, and what its admin client says
of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupType, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from compat_tests.conftest import StartBroker
from compat_tests.support.groups.serving import group_broker
from compat_tests.support.waiting import eventually

START_S = 60
SETTLE_S = 90.0
PARTITIONS = 4
RECORDS = 200


@pytest.fixture
def bootstrap(own_broker: StartBroker) -> str:
    return group_broker(own_broker).bootstrap


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
                "log_level": 0,
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


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_a_group_of_stateless_assignors_changes_while_it_has_members(
    admin: AdminClient, group: Group, assignor: str
) -> None:
    classic_members(admin, group, assignor)
    group.join("t")
    group.poll_until(lambda: sorted(group.counts()) == [1, 1, 2], "a share of the new member")
    assert type_of(admin) is ConsumerGroupType.CONSUMER


def test_cooperative_sticky_keeps_data_in_assignments_and_the_group_stays_classic(
    admin: AdminClient, group: Group
) -> None:
    """That of librdkafka, from the second rebalance on: see the guide New groups. Without members the group changes."""
    classic_members(admin, group, "cooperative-sticky")
    group.join("t")
    with pytest.raises(KafkaException) as refused:
        group.poll_until(lambda: False, "the refusal")
    assert refused.value.args[0].code() == KafkaError._FATAL
    assert "The group id does not exist" in refused.value.args[0].str()
    assert type_of(admin) is ConsumerGroupType.CLASSIC
    for consumer in list(group.members):
        group.leave(consumer)
    group.join("t")
    group.poll_until(lambda: group.counts() == [4], "the whole topic")
    assert type_of(admin) is ConsumerGroupType.CONSUMER


def classic_members(admin: AdminClient, group: Group, assignor: str) -> None:
    """Two, in the second generation or a later one."""
    create(admin, "t")
    settings = {
        "group_protocol": "classic",
        "partition_assignment_strategy": assignor,
        "heartbeat_interval_ms": "300",
    }
    group.join("t", **settings)
    group.poll_until(lambda: group.counts() == [4], "the whole topic")
    group.join("t", **settings)
    group.poll_until(lambda: group.counts() == [2, 2], "halves")


def type_of(admin: AdminClient) -> ConsumerGroupType:
    (listed,) = admin.list_consumer_groups().result(START_S).valid
    kind: ConsumerGroupType = listed.type
    return kind
