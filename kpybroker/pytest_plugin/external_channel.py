"""What of the control channel any Kafka can do, by confluent-kafka: the methods that look, create, produce and delete.

It takes the place of `kpybroker.testing`'s channel, so that a test makes the same calls and gets the same values.
Everything else skips the test: it needs a broker of kpybroker.

What no client can see is left out: sizes, leader epochs of partitions, producer ids, and what of a subscription is not
assigned.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pytest

from kpybroker.pytest_plugin.real import NEEDS_OURS
from kpybroker.testing import TestingError, UsageError, look
from kpybroker.testing.checking.calls import did_you_mean

if TYPE_CHECKING:
    from confluent_kafka import Message
    from confluent_kafka.admin import AdminClient

WAIT_S: Final = 30.0
PAUSE_S: Final = 0.05
CLIENT: Final = "kpybroker-tests"
METHODS: Final = (
    "topics",
    "topic",
    "records",
    "produce",
    "create_topic",
    "delete_topic",
    "delete_records",
    "groups",
    "group",
    "committed",
)


class ExternalChannel:
    """As `kpybroker.testing.running.channel.Channel`, for a cluster that was there before."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        from confluent_kafka.admin import AdminClient

        self._config = {**config, "client.id": CLIENT}
        self._admin: AdminClient = AdminClient(self._config)

    def call(self, method: str, /, *, wait_s: float = 0, **arguments: Any) -> Any:
        """The method's result. Raises TestingError, or skips the test."""
        from confluent_kafka import KafkaException

        if method not in METHODS:
            needs_ours(method)
        try:
            return getattr(self, f"_{method}")(**arguments)
        except KafkaException as error:
            raise _refused(method, error) from error

    def close(self) -> None:
        """Nothing is kept open but the admin client, which ends with this."""

    # --- topics

    def _topics(self, internal: bool = False) -> list[Any]:
        listed = self._admin.list_topics(timeout=WAIT_S).topics
        wanted = [name for name in sorted(listed) if internal or not name.startswith("__")]
        return [topic for topic in map(self._topic_if_there, wanted) if topic is not None]

    def _topic_if_there(self, name: str) -> Any:
        """None for one that is deleted in between: others use the cluster too."""
        from confluent_kafka import KafkaError, KafkaException

        try:
            return self._topic(name)
        except UsageError:
            return None
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return None
            raise

    def _topic(self, name: str) -> Any:
        from confluent_kafka import TopicCollection

        indexes = self._indexes(name)
        start, high_watermark, stable = (self._offsets(name, indexes, which) for which in ("first", "last", "stable"))
        (described,) = self._admin.describe_topics(TopicCollection([name])).values()
        found = described.result(WAIT_S)
        return {
            "name": name,
            "topic_id": str(found.topic_id),
            "is_internal": found.is_internal,
            "config": self._settings(name),
            "partitions": [
                {
                    "index": one.id,
                    "leader": None if one.leader is None else one.leader.id,
                    "leader_epoch": -1,
                    "replicas": [node.id for node in one.replicas],
                    "isr": [node.id for node in one.isr],
                    "start_offset": start[one.id],
                    "high_watermark": high_watermark[one.id],
                    "last_stable_offset": stable[one.id],
                    "end_offset": high_watermark[one.id],
                    "bytes": None,
                }
                for one in sorted(found.partitions, key=lambda one: one.id)
            ],
        }

    def _indexes(self, topic: str) -> list[int]:
        """Of its partitions. Raises UsageError."""
        topics = self._admin.list_topics(timeout=WAIT_S).topics
        if topic not in topics or topics[topic].error is not None:
            raise UsageError(f"there is no topic {topic!r}", did_you_mean(topic, sorted(topics)))
        return sorted(topics[topic].partitions)

    def _offsets(self, topic: str, indexes: list[int], which: str) -> dict[int, int | None]:
        """Asked again while a broker says that it does not lead: its leader is in the metadata before it knows that it
        is, in KRaft, and moves at any time.
        """
        from confluent_kafka import KafkaError, KafkaException

        end = time.monotonic() + WAIT_S
        while True:
            try:
                return self._offsets_now(topic, indexes, which)
            except KafkaException as error:
                moves = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)
                if error.args[0].code() not in moves or time.monotonic() > end:
                    raise
            time.sleep(PAUSE_S)

    def _offsets_now(self, topic: str, indexes: list[int], which: str) -> dict[int, int | None]:
        from confluent_kafka import IsolationLevel, TopicPartition
        from confluent_kafka.admin import OffsetSpec

        spec = OffsetSpec.earliest() if which == "first" else OffsetSpec.latest()
        level = IsolationLevel.READ_COMMITTED if which == "stable" else IsolationLevel.READ_UNCOMMITTED
        asked = {TopicPartition(topic, index): spec for index in indexes}
        results = self._admin.list_offsets(asked, isolation_level=level, request_timeout=WAIT_S)
        return {partition.partition: result.result(WAIT_S).offset for partition, result in results.items()}

    def _settings(self, topic: str) -> dict[str, str]:
        """Those that the topic has of its own."""
        from confluent_kafka.admin import ConfigResource, ConfigSource

        (described,) = self._admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]).values()
        own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        return {name: entry.value for name, entry in described.result(WAIT_S).items() if entry.source == own}

    def _create_topic(
        self, name: str, partitions: int | None, replication_factor: int | None, config: Mapping[str, str]
    ) -> None:
        from confluent_kafka.admin import NewTopic

        factor, count = replication_factor or -1, partitions or -1
        (created,) = self._admin.create_topics([NewTopic(name, count, factor, config=dict(config))]).values()
        created.result(WAIT_S)
        self._until(lambda: self._has_leaders(name, count), f"{name} has no leaders")

    def _has_leaders(self, topic: str, partitions: int) -> bool:
        found = self._admin.list_topics(timeout=WAIT_S).topics.get(topic)
        if found is None or found.error is not None or len(found.partitions) < partitions:
            return False
        return all(one.leader >= 0 and one.error is None for one in found.partitions.values())

    def _delete_topic(self, name: str) -> None:
        self._indexes(name)
        (deleted,) = self._admin.delete_topics([name]).values()
        deleted.result(WAIT_S)
        self._until(lambda: name not in self._admin.list_topics(timeout=WAIT_S).topics, f"{name} is still there")

    def _delete_records(self, topic: str, partition: int, before: int) -> None:
        from confluent_kafka import TopicPartition

        (deleted,) = self._admin.delete_records([TopicPartition(topic, partition, before)]).values()
        deleted.result(WAIT_S)

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + WAIT_S
        while not condition():
            if time.monotonic() > end:
                raise TestingError(f"{what} after {WAIT_S:g} s", "look into the cluster's log")
            time.sleep(PAUSE_S)

    # --- records

    def _records(
        self,
        topic: str,
        partition: int | None,
        start: int | None,
        end: int | None,
        limit: int,
        isolation: str,
    ) -> list[Any]:
        indexes = self._indexes(topic)
        if partition is not None and partition not in indexes:
            raise UsageError(f"{topic} has no partition {partition}", f"give one of 0 to {indexes[-1]}")
        wanted = indexes if partition is None else [partition]
        first = self._offsets(topic, wanted, "first")
        last = self._offsets(topic, wanted, "stable" if isolation == "read_committed" else "last")
        found: list[Any] = []
        for index in wanted:
            begin = max(start or 0, first[index] or 0)
            bound = last[index] or 0
            bound = bound if end is None else min(end, bound)
            if begin < bound and len(found) < limit:
                messages = self._messages((topic, index), (begin, bound), isolation)
                found += [_record(message) for message in messages][: limit - len(found)]
        return found

    def _messages(self, place: tuple[str, int], offsets: tuple[int, int], isolation: str) -> Iterator[Message]:
        """Up to the position that reaches the end: the last offsets may be those of transactions' markers."""
        from confluent_kafka import Consumer, KafkaException, TopicPartition

        own = {"group.id": CLIENT, "enable.auto.commit": False, "isolation.level": isolation}
        own |= {"auto.offset.reset": "error", "enable.partition.eof": True}
        consumer = Consumer({**self._config, **own})
        try:
            consumer.assign([TopicPartition(*place, offsets[0])])
            deadline = time.monotonic() + WAIT_S
            while consumer.position([TopicPartition(*place)])[0].offset < offsets[1]:
                if time.monotonic() > deadline:
                    raise TestingError(f"{place[0]} was not read within {WAIT_S:g} s", "look into the cluster's log")
                message = consumer.poll(1)
                if message is None:
                    continue
                error = message.error()
                if error is not None:
                    if error.name() == "_PARTITION_EOF":
                        return
                    raise KafkaException(error)
                if message.offset() < offsets[1]:
                    yield message
        finally:
            consumer.close()

    def _produce(self, topic: str, records: list[Mapping[str, Any]]) -> list[Any]:
        """As the broker does for our own tests: by Kafka's hash of the key, else in turn."""
        from confluent_kafka import Producer

        from kpybroker.wire.records.partitioner import murmur2_partition

        indexes = self._produced_indexes(topic)
        producer = Producer({**self._config, "acks": "all"})
        placed: dict[int, Any] = {}
        failures: list[Any] = []

        def delivered(number: int, error: Any, message: Any) -> None:
            if error is not None:
                failures.append(error)
            else:
                placed[number] = {"partition": message.partition(), "offset": message.offset()}

        for number, record in enumerate(records):
            key = look.to_bytes(record.get("key"))
            index = record.get("partition")
            if index is None:
                index = indexes[number % len(indexes)] if key is None else murmur2_partition(key, len(indexes))
            producer.produce(
                topic,
                look.to_bytes(record.get("value")),
                key,
                index,
                timestamp=record.get("timestamp_ms") or 0,
                headers=_headers(record.get("headers") or []),
                on_delivery=partial(delivered, number),
            )
            producer.poll(0)
        if producer.flush(WAIT_S):
            raise TestingError(f"producing to {topic}: not acknowledged within {WAIT_S:g} s", "look into its log")
        if failures:
            raise UsageError(f"producing to {topic}: {failures[0].str()}", "change what the cluster names")
        return [placed[number] for number in range(len(records))]

    def _produced_indexes(self, topic: str) -> list[int]:
        """A topic that does not exist is created, as by any producer, where the cluster lets it be."""
        found = self._admin.list_topics(timeout=WAIT_S).topics
        if topic not in found:
            from confluent_kafka import Producer

            Producer(self._config).list_topics(topic, timeout=WAIT_S)
            self._until(lambda: self._has_leaders(topic, 1), f"{topic} was not created")
        return self._indexes(topic)

    # --- groups

    def _groups(self) -> list[Any]:
        listed = self._admin.list_consumer_groups(request_timeout=WAIT_S).result(WAIT_S)
        found = [self._group(one.group_id) for one in listed.valid]
        return [one for one in found if one is not None]

    def _group(self, group: str) -> Any:
        from confluent_kafka import KafkaException

        (described,) = self._admin.describe_consumer_groups([group], request_timeout=WAIT_S).values()
        try:
            found = described.result(WAIT_S)
        except KafkaException as error:
            if error.args[0].name() == "GROUP_ID_NOT_FOUND":
                return None
            raise
        state = "".join(word.capitalize() for word in found.state.name.split("_"))
        if state == "Dead":
            return None
        return {
            "group_id": group,
            "type": found.type.name.lower() if found.type.name != "UNKNOWN" else "classic",
            "state": state,
            "coordinator": found.coordinator.id,
            "generation": -1,
            "protocol_type": "consumer",
            "protocol": found.partition_assignor,
            "leader": None,
            "members": [_member(one) for one in found.members],
        }

    def _committed(self, group: str) -> list[Any]:
        from confluent_kafka import ConsumerGroupTopicPartitions

        asked = [ConsumerGroupTopicPartitions(group)]
        (listed,) = self._admin.list_consumer_group_offsets(asked, request_timeout=WAIT_S).values()
        commits = [one for one in listed.result(WAIT_S).topic_partitions if one.offset >= 0]
        ends: dict[str, dict[int, int | None]] = {}
        for one in commits:
            if one.topic not in ends:
                ends[one.topic] = self._offsets(one.topic, self._indexes(one.topic), "last")
        return [
            {
                "topic": one.topic,
                "partition": one.partition,
                "offset": one.offset,
                "lag": max((ends[one.topic][one.partition] or 0) - one.offset, 0),
            }
            for one in sorted(commits, key=lambda one: (one.topic, one.partition))
        ]


def needs_ours(what: str) -> NoReturn:
    """Skip the test."""
    pytest.skip(f"{NEEDS_OURS}: `{what}` is not something that stock clients can do")


def _headers(headers: Any) -> list[tuple[str, bytes | None]]:
    pairs = headers.items() if isinstance(headers, dict) else headers
    return [(name, look.to_bytes(value)) for name, value in pairs]


def _record(message: Message) -> Any:
    kind, timestamp = message.timestamp()
    return {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp_ms": timestamp,
        "timestamp_type": "LogAppendTime" if kind == 2 else "CreateTime",
        "key": look.to_json(message.key()),
        "value": look.to_json(message.value()),
        "headers": [[name, look.to_json(value)] for name, value in message.headers() or ()],
        "leader_epoch": -1 if message.leader_epoch() is None else message.leader_epoch(),
    }


def _member(member: Any) -> Any:
    assignment: dict[str, list[int]] = {}
    for one in member.assignment.topic_partitions:
        assignment.setdefault(one.topic, []).append(one.partition)
    return {
        "member_id": member.member_id,
        "instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.host.lstrip("/"),
        "subscription": sorted(assignment),
        "assignment": {topic: sorted(indexes) for topic, indexes in assignment.items()},
    }


def _refused(method: str, error: Any) -> TestingError:
    reason = error.args[0]
    return UsageError(f"{method}: {reason.name()}: {reason.str()}", "change what the cluster names, and try again")
