"""MirrorMaker 2 between kpybroker and Kafka, both ways at once and exactly once, killed at any point."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from compat_tests.conftest import Launcher
from compat_tests.connect.mirror.mirrors import (
    VERSIONS,
    MirrorMaker,
    ask_library,
    follow_with_kills,
    mirror_properties,
    new_broker,
)
from compat_tests.connect.workers import DEADLINE_S
from compat_tests.support import quick
from compat_tests.support.services import Broker
from compat_tests.support.topics.origin import Origin, partition_count, topics
from compat_tests.support.waiting import eventually

TOPIC = "shop.orders"
GROUP = "readers"
KILLS = 3


class Pair(NamedTuple):
    """`a` is of the kind under test, `b` is Kafka; each has a topic of the same name and mirrors the other's."""

    a: Broker
    b: Broker
    maker: MirrorMaker
    version: str


@pytest.fixture(params=VERSIONS)
def pair(request: pytest.FixtureRequest, launcher: Launcher, tmp_path: Path) -> Iterator[Pair]:
    names = {"a": launcher.kind, "b": "kafka"}
    brokers = {alias: new_broker(launcher, kind, f"{alias}-{tmp_path.name}") for alias, kind in names.items()}
    addresses = {alias: broker.bootstrap for alias, broker in brokers.items()}
    flows = [("a", "b"), ("b", "a")]
    properties = mirror_properties(addresses, flows, {"topics": r"shop\..*", "groups": GROUP})
    made = Pair(brokers["a"], brokers["b"], MirrorMaker(request.param, tmp_path, properties), request.param)
    try:
        for broker in brokers.values():
            broker.start()
        yield made
    finally:
        made.maker.close()
        for broker in brokers.values():
            broker.service.kill()


def test_two_clusters_mirror_each_other(pair: Pair, seed: int) -> None:
    """Each record once, in order and as it was; no record goes round; settings, partitions, ACLs, groups follow."""
    a = Origin(pair.a, TOPIC, 2, max_message_bytes=2_000_000)
    b = Origin(pair.b, TOPIC, 3, compression_type="zstd", min_cleanable_dirty_ratio=1)
    grant_reading(pair.a, "alice")
    pair.maker.start()
    ways = [(a, pair.b, f"a.{TOPIC}"), (b, pair.a, f"b.{TOPIC}")]
    follow_with_kills(pair.maker, ways, seed, KILLS)

    set_retention(pair.b, "123456789")
    for origin in (a, b):
        origin.grow()
    for origin, target, topic in ways:
        eventually(lambda: partition_count(target.bootstrap, topic) == len(origin.expected), f"{topic} grows")
    for origin in (a, b):
        origin.write(20)
    for origin, target, topic in ways:
        origin.arrived(target, topic)
    check_settings(pair)
    eventually(lambda: readers(pair.b, f"a.{TOPIC}") == {("User:alice", AclOperation.READ)}, "the ACL is mirrored")
    check_groups(pair, a, b)
    check_library(pair)
    check_nothing_goes_round(pair)
    assert pair.maker.service.stop() in (0, 143), pair.maker.service.tail()
    for origin, target, topic in ways:
        origin.arrived(target, topic)


def set_retention(broker: Broker, value: str) -> None:
    entry = ConfigEntry("retention.ms", value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, TOPIC, incremental_configs=[entry])
    admin = quick.admin_client(broker.bootstrap)
    admin.incremental_alter_configs([resource])[resource].result(DEADLINE_S)


def settings(broker: Broker, topic: str, *keys: str) -> list[str]:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    admin = quick.admin_client(broker.bootstrap)
    found = admin.describe_configs([resource])[resource].result(DEADLINE_S)
    return [found[key].value for key in keys]


def check_settings(pair: Pair) -> None:
    """Those of the topic when it was made, and one that was changed later."""
    assert settings(pair.b, f"a.{TOPIC}", "retention.ms", "max.message.bytes") == ["-1", "2000000"]
    keys = ("retention.ms", "compression.type", "min.cleanable.dirty.ratio")
    wanted = ["123456789", "zstd", "1.0"]

    def followed() -> bool:
        found = settings(pair.a, f"b.{TOPIC}", *keys)
        assert [found[0], found[1], str(float(found[2]))] == wanted, found
        return True

    eventually(followed, "the new retention is mirrored", DEADLINE_S)


def grant_reading(broker: Broker, user: str) -> None:
    """READ and WRITE of the topic: only reading goes to the other cluster, where MirrorMaker alone writes."""
    admin = quick.admin_client(broker.bootstrap)
    rules = [
        AclBinding(
            ResourceType.TOPIC,
            TOPIC,
            ResourcePatternType.LITERAL,
            f"User:{user}",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        for operation in (AclOperation.READ, AclOperation.WRITE)
    ]
    for future in admin.create_acls(rules).values():
        future.result(DEADLINE_S)


def readers(broker: Broker, topic: str) -> set[tuple[str, AclOperation]]:
    wanted = AclBindingFilter(
        ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    admin = quick.admin_client(broker.bootstrap)
    found = admin.describe_acls(wanted).result(DEADLINE_S)
    return {(rule.principal, rule.operation) for rule in found}


def check_groups(pair: Pair, a: Origin, b: Origin) -> None:
    """A group that has read everything here has read everything there: translated exactly."""
    for origin, other, alias in ((a, pair.b, "a"), (b, pair.a, "b")):
        parts = [TopicPartition(TOPIC, number, len_log(origin, number)) for number in range(len(origin.expected))]
        admin = quick.admin_client(origin.broker.bootstrap)
        request = [ConsumerGroupTopicPartitions(GROUP, parts)]
        admin.alter_consumer_group_offsets(request)[GROUP].result(DEADLINE_S)
        found = origin.arrived(other, f"{alias}.{TOPIC}")
        ends = [messages[-1].offset() + 1 for messages in found]
        mirrored = [(f"{alias}.{TOPIC}", number) for number in range(len(parts))]

        def translated() -> bool:
            stands = quick.committed(other.bootstrap, GROUP, mirrored)
            assert stands == ends, f"{stands}, not {ends}"
            return True

        eventually(translated, f"{GROUP} stands at the end of {alias}.{TOPIC}", DEADLINE_S)


def len_log(origin: Origin, partition: int) -> int:
    """The offset after the last record."""
    return quick.end_offset(origin.broker.bootstrap, origin.topic, partition)


def check_library(pair: Pair) -> None:
    """Kafka's own client library finds the other cluster, its topics, and where the group stands."""
    for broker, alias, own in ((pair.b, "a", "b"), (pair.a, "b", "a")):
        said = ask_library(pair.version, broker.bootstrap, alias, GROUP)
        assert said["upstream"] == [alias]
        assert said["heartbeat-topics"] == [f"{alias}.heartbeats,heartbeats"]
        assert said["checkpoint-topics"] == [f"{alias}.checkpoints.internal"]
        assert f"{alias}.{TOPIC}" in said["remote-topics"][0].split(",")
        assert said["hops"] == ["1"]
        assert said["heartbeat"] in ([f"{own} {alias}"], [f"{alias} {own}"])
        assert said["checkpoint"] == [GROUP]
        partitions = partition_count(broker.bootstrap, f"{alias}.{TOPIC}")
        mirrored = [(f"{alias}.{TOPIC}", number) for number in range(partitions)]
        stands = quick.committed(broker.bootstrap, GROUP, mirrored)
        assert said["translated"] == [f"{alias}.{TOPIC}-{number} {stands[number]}" for number in range(partitions)]


def check_nothing_goes_round(pair: Pair) -> None:
    """A topic that is made now is followed, so topics have been looked for since: there is no copy of a copy."""
    for broker, other, alias in ((pair.a, pair.b, "a"), (pair.b, pair.a, "b")):
        quick.create_topic(broker.bootstrap, "shop.late")
        eventually(lambda: partition_count(other.bootstrap, f"{alias}.shop.late"), f"{alias}.shop.late is made")
    for broker, alias in ((pair.a, "b"), (pair.b, "a")):
        shop = {name for name in topics(broker.bootstrap) if "shop." in name}
        assert shop == {TOPIC, "shop.late", f"{alias}.{TOPIC}", f"{alias}.shop.late"}
        assert not {name for name in topics(broker.bootstrap) if name.count("heartbeats") and name.count(".") > 1}
