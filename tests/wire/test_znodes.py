"""Our znodes equal Kafka 3.9's byte for byte, and read back as they were.

`znodes_of_kafka.tsv` holds what Kafka 3.9.1's own encoders print (ZnodesOfKafka.java, run with its jars); the
literals in `DUMPED` come from the tree of a running Kafka 3.9.1 broker on ZooKeeper 3.8.4.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpybroker.wire import znodes as z
from kpybroker.wire.map_order import java_properties_order, scala_immutable_order, scala_mutable_order

KAFKA = dict(
    line.split("\t", 1)
    for line in (Path(__file__).parent / "znodes_of_kafka.tsv").read_text("utf-8").split("\n")
    if line
)
TOPIC_ID = z.decode_uuid("ZCw0FbB4RmuDPnTtGxkSYQ")
CONFIG_KEYS = [
    "cleanup.policy",
    "retention.ms",
    "segment.bytes",
    "min.insync.replicas",
    "compression.type",
    "max.message.bytes",
    "retention.bytes",
    "unclean.leader.election.enable",
    "preallocate",
    "flush.ms",
    "flush.messages",
    "segment.ms",
    "segment.jitter.ms",
    "index.interval.bytes",
    "delete.retention.ms",
    "min.cleanable.dirty.ratio",
    "file.delete.delay.ms",
    "message.timestamp.type",
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
    "max.compaction.lag.ms",
    "min.compaction.lag.ms",
    "segment.index.bytes",
    "message.downconversion.enable",
    "local.retention.ms",
    "remote.storage.enable",
]
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def topic_of(partitions: int) -> z.TopicAssignment:
    return z.TopicAssignment(
        TOPIC_ID,
        {
            p: z.PartitionAssignment((p % 3, (p + 1) % 3), (1,) if p % 2 == 0 else (), (2, 3) if p % 3 == 0 else ())
            for p in range(partitions)
        },
    )


def timestamp_in(name: str) -> int:
    return int(json.loads(KAFKA[name])["timestamp"])


def broker_of(listeners: int) -> z.BrokerRegistration:
    endpoints = tuple(
        z.Endpoint("::1" if i == 1 else f"host{i}", 9092 + i, f"L{i}", PROTOCOLS[i % 4]) for i in range(listeners)
    )
    rack = "r1" if listeners % 2 == 0 else None
    return z.BrokerRegistration(endpoints, timestamp_in(f"broker{listeners}"), rack, 9999)


BROKER_V2 = z.BrokerRegistration(
    (z.Endpoint("h", 1, "PLAINTEXT", "PLAINTEXT"),), timestamp_in("broker_v2"), "r", version=2
)
BROKER_WITHOUT_PLAINTEXT = z.BrokerRegistration(
    (z.Endpoint("h", 1, "SSL", "SSL"),),
    timestamp_in("broker_null"),
    features={"f1": (0, 3), "metadata.version": (0, 3)},
)
TOKEN = z.DelegationToken("tok1", "User:al ice*~", "User:bob", ("User:bob", "User:al ice*~"), 1, 2, 3)

ENCODED = {
    "controller": z.encode_controller(3, 1_700_000_000_000),
    "cluster": z.encode_cluster_id("abc_DEF-1234567890xyzQ"),
    **{f"topic{n}": z.encode_topic(topic_of(n)) for n in (0, 1, 3, 10, 11, 12, 13, 24, 50, 100, 1000)},
    "topicNoId": z.encode_topic(z.TopicAssignment(None, {0: z.PartitionAssignment((1,))})),
    "state": z.encode_partition_state(z.PartitionState(1, 2, (1, 2), 5)),
    "stateRecovering": z.encode_partition_state(z.PartitionState(-1, 2, (), 5, z.RECOVERING)),
    **{
        f"config{n}": z.encode_config({key: f"v{i}" for i, key in enumerate(CONFIG_KEYS[:n])})
        for n in (0, 1, 2, 3, 6, 11, 12, 13, 23, 24, 26)
    },
    "configEscapes": z.encode_config({"a": 'q"\\\x1f\x01\né\\u001f\x7f/'}),
    "change": z.encode_config_change("topics/t"),
    "isr": z.encode_partitions([("t", 3)]),
    "logdir": z.encode_log_dir_event(2),
    "reassign": z.encode_reassignment({("t", 1): (1, 2)}),
    "pid": z.encode_producer_id_block(z.ProducerIdBlock(1, 1000, 1999)),
    "preferred": z.encode_partitions([("t", 3)]),
    "consumerOffset": z.encode_number(42),
    **{f"broker{n}": z.encode_broker(broker_of(n)) for n in (1, 4, 5, 6, 9, 40)},
    "broker_v2": z.encode_broker(BROKER_V2),
    "broker_null": z.encode_broker(BROKER_WITHOUT_PLAINTEXT),
    **{
        f"feature{v}_{n}": z.encode_features(z.FinalizedFeatures(v == 2, {f"feature{i}": i + 1 for i in range(n)}, v))
        for v in (1, 2)
        for n in (0, 2, 5)
    },
    "acl": z.encode_acls([z.AclEntry("User:alice", "Allow", "IdempotentWrite", "*")]),
    "aclChange": z.encode_acl_change("LITERAL", "TRANSACTIONAL_ID", "foo"),
    "aclChangePath": z.acl_change_path("LITERAL").encode(),
    "aclExtChange": z.encode_acl_change("PREFIXED", "TOPIC", "foo"),
    "aclPath": z.acl_path("PREFIXED", "TransactionalId", "foo").encode(),
    "secure": f"[{', '.join(z.SECURE_ROOT_PATHS)}]".encode(),
    "persistent": f"[{', '.join(z.PERSISTENT_PATHS)}]".encode(),
    "token": z.encode_delegation_token(TOKEN),
    "sanitize": z.sanitize("a b*c~d+e/é%.-_:'()!").encode(),
}


def test_every_value_kafka_printed_is_compared() -> None:
    assert ENCODED.keys() == KAFKA.keys()


@pytest.mark.parametrize("name", KAFKA)
def test_bytes_equal_kafkas(name: str) -> None:
    assert ENCODED[name].decode() == KAFKA[name]


# The tree of Kafka 3.9.1 on ZooKeeper 3.8.4 after a topic of 14 partitions, a few configurations and ACLs were made.
DUMPED: list[tuple[bytes, Callable[[bytes], bytes]]] = [
    (
        b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT","OTHER":"PLAINTEXT"},'
        b'"endpoints":["PLAINTEXT://127.0.0.1:19392","OTHER://127.0.0.1:19393"],"rack":"r1","jmx_port":-1,"port":19392,'
        b'"host":"127.0.0.1","version":5,"timestamp":"1795227897557"}',
        lambda data: z.encode_broker(z.decode_broker(1, data)),
    ),
    (
        b'{"partitions":{"11":[1],"12":[1],"13":[1],"0":[1],"1":[1],"2":[1],"3":[1],"4":[1],"5":[1],"6":[1],"7":[1],'
        b'"8":[1],"9":[1],"10":[1]},"topic_id":"bQBKTUKdQZSbWYNk7quxDg","adding_replicas":{},"removing_replicas":{},'
        b'"version":3}',
        lambda data: z.encode_topic(z.decode_topic("t1", data)),
    ),
    (
        b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}',
        lambda data: z.encode_partition_state(z.decode_partition_state(data)),
    ),
    (
        b'{"version":1,"config":{"cleanup.policy":"compact","retention.ms":"1000","segment.bytes":"100000"}}',
        lambda data: z.encode_config(z.decode_config(data)),
    ),
    (b'{"version":1,"config":{"producer_byte_rate":"1000"}}', lambda data: z.encode_config(z.decode_config(data))),
    (
        b'{"version":1,"config":{"SCRAM-SHA-256":"salt=cDRyYnU0aTdmMDBzYnBibG05cjgwaG5ydQ==,stored_key=3BEEfH4EqdtTIvo6'
        b'WSNI1vcLW4aAoiNstnJEeWS42N8=,server_key=WaEglJTqrDN/Zy4X7SPMNUFshVtsx36weZLvacLkJmM=,iterations=4096"}}',
        lambda data: z.encode_config(z.decode_config(data)),
    ),
    (
        b'{"version":2,"entity_path":"users/al%20ice/clients/app%2A"}',
        lambda data: z.encode_config_change(z.decode_config_change(data)),
    ),
    (
        b'{"version":2,"brokerid":1,"timestamp":"1795227897663","kraftControllerEpoch":-1}',
        lambda data: z.encode_controller(z.decode_controller(data), 1795227897663),
    ),
    (b"1", lambda data: z.encode_number(z.decode_number(data))),
    (
        b'{"version":"1","id":"OFcan9nLSHKyapPSTKx6fg"}',
        lambda data: z.encode_cluster_id(z.decode_cluster_id(data)),
    ),
    (b'{"features":{},"version":2,"status":1}', lambda data: z.encode_features(z.decode_features(data))),
    (
        b'{"acls":[{"principal":"User:alice","permissionType":"Allow","host":"*","operation":"Read"}],"version":1}',
        lambda data: z.encode_acls(z.decode_acls(data)),
    ),
    (b"TOPIC:t1", lambda data: z.encode_acl_change(*z.decode_acl_change(False, data))),
    (
        b'{"version":1,"resourceType":"GROUP","name":"g","patternType":"PREFIXED"}',
        lambda data: z.encode_acl_change(*z.decode_acl_change(True, data)),
    ),
    (
        b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}',
        lambda data: z.encode_producer_id_block(z.decode_producer_id_block(data)),
    ),
]


@pytest.mark.parametrize(("data", "again"), DUMPED)
def test_what_a_running_kafka_wrote_is_read_and_written_again(data: bytes, again: Callable[[bytes], bytes]) -> None:
    assert again(data) == data


def test_values_read_back_as_they_were() -> None:
    for n in (0, 1, 13, 1000):
        assert z.decode_topic("t", z.encode_topic(topic_of(n))) == topic_of(n)
    for n in (1, 4, 5, 40):
        assert z.decode_broker(1, z.encode_broker(broker_of(n))) == broker_of(n)
    assert z.decode_broker(1, z.encode_broker(BROKER_WITHOUT_PLAINTEXT)) == BROKER_WITHOUT_PLAINTEXT
    for state in (z.PartitionState(1, 2, (1, 2), 5), z.PartitionState(-1, 2, (), 5, z.RECOVERING)):
        assert z.decode_partition_state(z.encode_partition_state(state)) == state
    assert z.decode_controller(z.encode_controller(3, 1)) == 3
    assert z.decode_number(z.encode_number(-7)) == -7
    assert z.decode_cluster_id(z.encode_cluster_id("x")) == "x"
    assert z.decode_config_change(z.encode_config_change("users/a/clients/b")) == "users/a/clients/b"
    assert z.decode_partitions(z.encode_partitions([("t", 3), ("u", 0)])) == [("t", 3), ("u", 0)]
    assert z.decode_log_dir_event(z.encode_log_dir_event(2)) == 2
    assert z.decode_reassignment(z.encode_reassignment({("t", 1): (1, 2)})) == {("t", 1): (1, 2)}
    block = z.ProducerIdBlock(1, 1000, 1999)
    assert z.decode_producer_id_block(z.encode_producer_id_block(block)) == block
    for version in (1, 2):
        features = z.FinalizedFeatures(True, {"a": 1, "b": 2}, version)
        assert z.decode_features(z.encode_features(features)) == features
    acls = [z.AclEntry("User:alice", "Allow", "Read", "*"), z.AclEntry("User:bob", "Deny", "All", "10.0.0.1")]
    assert z.decode_acls(z.encode_acls(acls)) == acls
    assert z.decode_delegation_token(z.encode_delegation_token(TOKEN)) == TOKEN
    assert z.decode_acl_change(False, z.encode_acl_change("LITERAL", "TOPIC", "a:b")) == (
        "LITERAL",
        "TOPIC",
        "a:b",
    )
    extended = z.encode_acl_change("PREFIXED", "GROUP", "g")
    assert z.decode_acl_change(True, extended) == ("PREFIXED", "GROUP", "g")


@given(st.dictionaries(st.text(), st.text()))
def test_any_configuration_reads_back(config: dict[str, str]) -> None:
    assert z.decode_config(z.encode_config(config)) == config


@given(st.text())
def test_any_name_reads_back_from_a_path(name: str) -> None:
    assert z.desanitize(z.sanitize(name)) == name
    assert "/" not in z.sanitize(name)


@given(st.lists(st.text(), unique=True))
def test_the_orders_are_permutations(keys: list[str]) -> None:
    for order in (scala_mutable_order, scala_immutable_order, java_properties_order):
        assert sorted(order(tuple(keys))) == sorted(keys)


def test_older_versions_are_read() -> None:
    v1 = b'{"version":1,"host":"h","port":9092,"jmx_port":9999,"timestamp":"2233345666"}'
    assert z.decode_broker(1, v1).endpoints == (z.Endpoint("h", 9092, "PLAINTEXT", "PLAINTEXT"),)
    v2 = b'{"version":2,"host":"h","port":1,"jmx_port":-1,"timestamp":"1","endpoints":["SSL://h:9093"]}'
    assert z.decode_broker(1, v2).endpoints == (z.Endpoint("h", 9093, "SSL", "SSL"),)
    assert z.decode_topic("t", b'{"version":1,"partitions":{"0":[1]}}') == z.TopicAssignment(
        None, {0: z.PartitionAssignment((1,))}
    )
    change = b'{"version":1,"entity_type":"topics","entity_name":"t"}'
    assert z.decode_config_change(change) == "topics/t"
    assert z.decode_config(b"") == {}
    assert z.decode_config(b'{"version":1}') == {}


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"{}", b'{"version":"x"}', b"\xff", b'{"brokerid":true}'])
def test_what_cannot_be_read_raises_one_error(data: bytes) -> None:
    for decode in (
        z.decode_controller,
        z.decode_cluster_id,
        lambda d: z.decode_broker(1, d),
        z.decode_partition_state,
        z.decode_partitions,
        z.decode_reassignment,
        z.decode_producer_id_block,
        z.decode_features,
        z.decode_delegation_token,
        z.decode_number,
        z.decode_config_change,
        z.decode_log_dir_event,
    ):
        with pytest.raises(z.ZnodeError):
            decode(data)


def test_paths() -> None:
    assert z.partition_state_path("t", 3) == "/brokers/topics/t/partitions/3/state"
    assert z.config_path(z.CONFIG_USERS, z.user_client_entity("a", "b")) == "/config/users/a/clients/b"
    assert z.consumer_offset_path("g", "t", 1) == "/consumers/g/offsets/t/1"
    assert z.sequence_number("/isr_change_notification/isr_change_0000000012", z.ISR_CHANGE_PREFIX) == "0000000012"
    assert z.is_sensitive("/config/users/alice")
    assert not z.is_sensitive("/config/topics/t")
