"""kafka-python's admin clients: 3.0.12 in this process, 2.2.15 in one of its own."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kafka import TopicPartition, errors
from kafka.admin import ConfigResource, KafkaAdminClient
from kafka.admin._groups import MemberToRemove
from kafka.admin._partitions import OffsetSpec
from kafka.structs import OffsetAndMetadata

from compat_tests.conftest import MakeTopic
from compat_tests.deps import ROOT, old_kafka_python_dir
from compat_tests.support import quick
from compat_tests.support.groups.members import Member
from compat_tests.support.services import Broker
from compat_tests.support.tools import run_process
from compat_tests.support.waiting import eventually

OLD_ADMIN = ROOT / "compat_tests" / "workers" / "kafka_python_2_admin.py"


@pytest.fixture
def admin(broker: Broker) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    yield client
    client.close()


def test_old_admin_client(broker: Broker, name: str) -> None:
    """kafka-python 2.2.15: everything that its admin client can ask of one broker."""
    command = [sys.executable, str(OLD_ADMIN), broker.bootstrap, name]
    said = json.loads(run_process(command, env={"PYTHONPATH": str(old_kafka_python_dir())}).out)
    assert said == {
        "again": "TopicAlreadyExistsError",
        "listed": True,
        "partitions": 2,
        "segment": "4242000",
        "brokers": [[broker.node_id, "127.0.0.1", broker.port]],
        "controller": broker.node_id,
        "read": ["0", "1", "2", "3", "4"],
        "group listed": True,
        "group state": "Empty",
        "offsets": {f"{name}-0": 5},
        "low watermark": 2,
        "log dirs": [str(broker.data_dir)],
        "deleted groups": [[name, "NoError"]],
        "partitions after": 3,
        "segment after": "77000",
        "missing": "UnknownTopicOrPartitionError",
    }


def partition_count(admin: KafkaAdminClient, topic: str) -> int:
    (described,) = admin.describe_topics([topic])
    return len(described["partitions"])


def test_topics(admin: KafkaAdminClient, broker: Broker, name: str) -> None:
    admin.create_topics({name: {"num_partitions": 2, "configs": {"retention.ms": "4242"}}}, wait_for_metadata=True)
    assert name in admin.list_topics()
    with pytest.raises(errors.TopicAlreadyExistsError):
        admin.create_topics([name])
    (described,) = admin.describe_topics([name])
    assert [part["leader_id"] for part in described["partitions"]] == [broker.node_id] * 2
    by_id = admin.describe_topics([uuid.UUID(str(described["topic_id"]))])
    assert by_id[0]["name"] == name
    admin.create_partitions({name: 4})
    eventually(lambda: partition_count(admin, name) == 4, "four partitions")
    with pytest.raises(errors.InvalidPartitionsError):
        admin.create_partitions({name: 1})
    admin.delete_topics([name])
    eventually(lambda: name not in admin.list_topics(), "the topic gone")


def test_cluster(admin: KafkaAdminClient, broker: Broker) -> None:
    cluster = admin.describe_cluster()
    assert cluster["controller_id"] == broker.node_id
    assert [(b["broker_id"], b["host"], b["port"]) for b in cluster["brokers"]] == [
        (broker.node_id, "127.0.0.1", broker.port)
    ]
    (of_broker,) = admin.describe_log_dirs()
    assert [entry["log_dir"] for entry in of_broker["log_dirs"]] == [str(broker.data_dir)]


def test_configs(admin: KafkaAdminClient, topic: MakeTopic, broker: Broker) -> None:
    made = topic(retention_ms=4242)

    def modified() -> dict[str, str]:
        found = admin.describe_configs([ConfigResource("TOPIC", made)], config_filter="modified")
        return {key: entry["value"] for key, entry in found["topic"][made].items()}

    assert modified() == {"retention.ms": "4242"}
    admin.alter_configs([ConfigResource("TOPIC", made, {"retention.ms": "77", "segment.ms": "60000"})])
    eventually(lambda: modified() == {"retention.ms": "77", "segment.ms": "60000"}, "both")
    admin.reset_configs([ConfigResource("TOPIC", made, ["segment.ms"])])
    eventually(lambda: modified() == {"retention.ms": "77"}, "one left")
    everything: dict[str, Any] = admin.describe_configs(
        [ConfigResource("BROKER", str(broker.node_id))], include_synonyms=True, config_filter="all"
    )["broker"][str(broker.node_id)]
    assert len(everything) >= 200
    assert everything["log.dirs"]["value"] == str(broker.data_dir)


def test_offsets_and_records(admin: KafkaAdminClient, topic: MakeTopic, broker: Broker) -> None:
    # nothing so old would outlive the stock retention
    made = topic(retention_ms=-1)
    part = TopicPartition(made, 0)
    quick.fill(broker.bootstrap, made, ["a", "b", "c"], timestamps=[1_000_000, 3_000_000, 2_000_000])

    def offset(spec: Any) -> int:
        found: int = admin.list_partition_offsets({part: spec})[part].offset
        return found

    assert [offset(spec) for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST, OffsetSpec.MAX_TIMESTAMP)] == [0, 3, 1]
    assert offset(1_500_000) == 1
    assert admin.delete_records({part: 2})[part]["low_watermark"] == 2
    assert offset(OffsetSpec.EARLIEST) == 2


def test_groups(made: str, admin: KafkaAdminClient, broker: Broker, name: str, join: Callable[..., Member]) -> None:
    part = TopicPartition(made, 0)
    quick.fill(broker.bootstrap, made, ["a", "b", "c"])
    member = join("kafka-python-3.0.12", group=name, topics=[made])
    member.has(3)
    member.commit()
    assert name in {group["group_id"] for group in admin.list_groups(states_filter=["Stable"])}
    described = admin.describe_groups([name])[name]
    assert described["group_state"] == "Stable"
    (only,) = described["members"]
    assert admin.list_group_offsets({name: None})[name][part].offset == 3
    assert admin.delete_group_offsets(name, [part])[part] is errors.GroupSubscribedToTopicError
    member.kill()
    removed = admin.remove_group_members(name, [MemberToRemove(member_id=only["member_id"])])
    assert list(removed.values()) == [errors.NoError]
    eventually(lambda: admin.describe_groups([name])[name]["group_state"] == "Empty", "the group empty")
    altered = admin.alter_group_offsets(name, {part: OffsetAndMetadata(1, "a note", -1)})
    assert altered[part] is errors.NoError
    assert admin.list_group_offsets({name: [part]})[name][part] == OffsetAndMetadata(1, "a note", -1)
    admin.reset_group_offsets(name, {part: OffsetSpec.LATEST})
    assert admin.list_group_offsets({name: [part]})[name][part].offset == 3
    assert admin.delete_group_offsets(name, [part])[part] is errors.NoError
    assert admin.list_group_offsets({name: None})[name] == {}
    admin.delete_groups([name])
    assert name not in {group["group_id"] for group in admin.list_groups()}
