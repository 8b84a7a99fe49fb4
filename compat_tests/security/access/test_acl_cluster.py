"""ACLs of one cluster of Kafka 3.9.1 and kpybroker: the same nodes, either broker's changes known to the other within a
second, and Kafka's tools against both.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from kazoo.client import KazooClient

from compat_tests.security.access.acl_callers import ADMIN_HOST, PRINCIPAL, allow_admin
from compat_tests.security.access.acl_matrix import Asker
from compat_tests.support.services import START_DEADLINE_S, Broker, ZooKeeper
from compat_tests.support.tools import VERSIONS, Result, Tools
from compat_tests.support.waiting import eventually
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode

AUTHORIZED = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:root",
    "offsets.topic.num.partitions": "1",
}
KNOWN_WITHIN_S = 1.0
CHANGES_MAX = 21
"""Of which one is known within that time. Those before it were made while the machine did something else."""
TOPIC, GROUP, TRANSACTIONAL_ID = 2, 3, 5
ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4
READ, WRITE, DESCRIBE, IDEMPOTENT_WRITE = 3, 4, 8, 12
DENY, ALLOW = 2, 3


class Cluster(NamedTuple):
    """Two brokers on one tree."""

    kafka: Broker
    ours: Broker
    tree: KazooClient
    connect: str

    def other(self, broker: Broker) -> Broker:
        return self.ours if broker is self.kafka else self.kafka


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("acl-cluster")
    zookeeper = ZooKeeper(directory / "zookeeper")
    brokers = []
    tree = None
    try:
        zookeeper.start()
        connect = f"{zookeeper.connect}/both"
        allow_admin(connect)
        for node_id, kind in enumerate(("kafka", "kpybroker")):
            broker = Broker(kind, directory / kind, connect, AUTHORIZED | {"broker.id": str(node_id)})
            brokers.append(broker)
            broker.launch()
        tree = KazooClient(connect)
        tree.start(START_DEADLINE_S)
        kafka, ours = brokers
        yield Cluster(kafka, ours, tree, connect)
    finally:
        if tree is not None:
            tree.stop()
            tree.close()
        for broker in brokers:
            broker.service.kill()
        zookeeper.stop()


def ask(broker: Broker, api: ApiKey, version: int, host: str = ADMIN_HOST, **fields: Any) -> dict[str, Any]:
    asker = Asker(broker.port, host)
    try:
        return asker.ask(api, version, fields)
    finally:
        asker.close()


def acl(name: str, operation: int = READ, permission: int = ALLOW, **changes: Any) -> dict[str, Any]:
    fields = {
        "resource_type": TOPIC,
        "resource_name": name,
        "resource_pattern_type": LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": operation,
        "permission_type": permission,
    }
    return fields | changes


def create(broker: Broker, *acls: dict[str, Any]) -> None:
    response = ask(broker, ApiKey.CREATE_ACLS, 3, creations=list(acls))
    assert {result["error_code"] for result in response["results"]} == {0}, response


def acl_filter(name: str | None, pattern: int = ANY, operation: int = ANY) -> dict[str, Any]:
    return {
        "resource_type_filter": ANY,
        "resource_name_filter": name,
        "pattern_type_filter": pattern,
        "principal_filter": None,
        "host_filter": None,
        "operation": operation,
        "permission_type": ANY,
    }


def delete(broker: Broker, *filters: dict[str, Any]) -> list[list[tuple[str, int, int]]]:
    response = ask(broker, ApiKey.DELETE_ACLS, 3, filters=list(filters))
    return [
        sorted((one["resource_name"], one["operation"], one["error_code"]) for one in result["matching_acls"])
        for result in response["filter_results"]
    ]


def described(broker: Broker, **wanted: Any) -> set[tuple[Any, ...]]:
    response = ask(broker, ApiKey.DESCRIBE_ACLS, 3, **wanted)
    assert response["error_code"] == 0, response
    return {
        (one["resource_type"], one["resource_name"], one["pattern_type"], *acl.values())
        for one in response["resources"]
        for acl in one["acls"]
    }


def nodes_about(tree: KazooClient, name: str) -> dict[str, tuple[bytes, int]]:
    """Path -> (data, version) of the ACLs and notifications that name a resource, with `X` for that name.

    Kafka keeps entries in sets whose order is that of identity hashes, so they are sorted.
    """
    found = {}
    for root in ("/kafka-acl", "/kafka-acl-extended/prefixed"):
        for kind in tree.get_children(root):
            for child in tree.get_children(f"{root}/{kind}"):
                if name in child:
                    data, stat = tree.get(f"{root}/{kind}/{child}")
                    found[f"{root}/{kind}/{child.replace(name, 'X')}"] = sorted_acls(data), stat.version
    for root in ("/kafka-acl-changes", "/kafka-acl-extended-changes"):
        named = [tree.get(f"{root}/{child}")[0] for child in sorted(tree.get_children(root))]
        changes = [data.replace(name.encode(), b"X") for data in named if name.encode() in data]
        found[root] = b"\n".join(sorted(changes)), len(changes)
    return found


def sorted_acls(data: bytes) -> bytes:
    """The same bytes, but for the order of the entries."""
    values = json.loads(data)
    assert json.dumps(values, separators=(",", ":"), ensure_ascii=False).encode() == data
    values["acls"].sort(key=str)
    return json.dumps(values, separators=(",", ":"), ensure_ascii=False).encode()


def test_both_brokers_write_the_same_nodes(cluster: Cluster) -> None:
    for broker, name in ((cluster.kafka, "written-by-kafka"), (cluster.ours, "written-by-ours")):
        create(broker, acl(name), acl(name, WRITE, DENY), acl(name, READ, ALLOW))
        create(broker, acl(name, host="10.0.0.1"), acl(f'{name}-ü"\\', principal='User:CN=a,O="b"'))
        create(broker, acl(name, resource_type=GROUP, resource_pattern_type=PREFIXED))
        create(broker, acl(name, IDEMPOTENT_WRITE, resource_type=TRANSACTIONAL_ID, resource_pattern_type=PREFIXED))
        create(broker, acl(name))  # no change, but a new version
        create(broker, acl(f"{name}-gone"))
        assert delete(broker, acl_filter(f"{name}-gone"), acl_filter(name, LITERAL, WRITE)) == [
            [(f"{name}-gone", READ, 0)],
            [(name, WRITE, 0)],
        ]
    kafka = nodes_about(cluster.tree, "written-by-kafka")
    assert len(kafka) == 6
    assert kafka == nodes_about(cluster.tree, "written-by-ours")


def found_by_both(cluster: Cluster, wanted: dict[str, Any]) -> bool:
    return described(cluster.kafka, **wanted) == described(cluster.ours, **wanted)


def test_both_brokers_find_the_same_acls(cluster: Cluster) -> None:
    create(cluster.ours, acl("found"), acl("fou", resource_pattern_type=PREFIXED), acl("*", DESCRIBE))
    filters = [
        acl_filter(None),
        acl_filter("found"),
        acl_filter("found", MATCH),
        acl_filter("fou", PREFIXED),
        acl_filter(None, LITERAL, DESCRIBE),
    ]
    for wanted in filters:
        eventually(partial(found_by_both, cluster, wanted), f"{wanted} on both")


@pytest.mark.parametrize("changed_by", ["kafka", "ours"])
def test_a_change_is_known_to_open_connections_of_the_other_broker_within_a_second(
    cluster: Cluster, changed_by: str
) -> None:
    here: Broker = getattr(cluster, changed_by)
    name, host = f"seen-by-{changed_by}", f"127.77.0.{len(changed_by)}"
    asker = Asker(cluster.other(here).port, host)

    def code() -> int:
        topics = [{"name": name}]
        response = asker.ask(ApiKey.METADATA, 9, {"topics": topics, "allow_auto_topic_creation": False})
        found: int = response["topics"][0]["error_code"]
        return found

    def until(expected: ErrorCode) -> float:
        start = time.monotonic()
        eventually(lambda: code() == expected, f"{expected!r} for {name}")
        return time.monotonic() - start

    mine = acl(name, DESCRIBE, principal=PRINCIPAL, host=host)
    assert code() == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    create(here, mine)
    times = [until(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    while len(times) < 3 or (min(times) > KNOWN_WITHIN_S and len(times) < CHANGES_MAX):
        create(here, mine | {"permission_type": DENY})
        times.append(until(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        delete(here, acl_filter(name))
        create(here, mine)
        times.append(until(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    asker.close()
    assert min(times) <= KNOWN_WITHIN_S, f"a busy machine may need longer for some of them: {times}"


# --- Kafka's tools


def test_kafka_acls_adds_lists_and_removes(cluster: Cluster) -> None:
    outputs = {}
    for version in VERSIONS:
        for broker in (cluster.kafka, cluster.ours):
            tools = Tools(version, broker.bootstrap)
            principal, topic = f"User:tool-{version}", f"tool-{version}"
            added = tools.run("acls", "--add", "--allow-principal", principal, "--producer", "--topic", topic)
            listed = listed_acls(tools, topic, lambda lines: len(lines) >= 4)
            removed = tools.run("acls", "--remove", "--force", "--topic", topic)
            left = listed_acls(tools, topic, lambda lines: not lines)
            outputs[version, broker.kind] = [
                sorted(line.strip() for line in one.lines) for one in (added, listed, removed, left)
            ]
    for version in VERSIONS:
        assert outputs[version, "kpybroker"] == outputs[version, "kafka"]


def listed_acls(tools: Tools, topic: str, is_wanted: Callable[[Sequence[str]], bool]) -> Result:
    """What a broker lists once it has read what may have been written by the other one."""

    def listed() -> Result | None:
        found = tools.run("acls", "--list", "--topic", topic)
        return found if is_wanted(found.lines) else None

    return eventually(listed, f"the ACLs of {topic}")


def test_kafka_acls_writes_to_the_tree_itself(cluster: Cluster) -> None:
    tools = Tools("3.9.1", cluster.ours.bootstrap)
    on_tree = ("--authorizer-properties", f"zookeeper.connect={cluster.connect}")
    added = ("--add", "--allow-principal", "User:alice", "--operation", "Read", "--topic", "from-the-tool")
    tools.run("acls-zookeeper", *on_tree, *added)
    wanted = acl_filter("from-the-tool")
    eventually(lambda: len(described(cluster.ours, **wanted)) == 1, "the tool's ACL")
    create(cluster.ours, acl("for-the-tool"))
    assert any("User:alice" in line for line in tools.run("acls-zookeeper", *on_tree, "--list").lines)
    listed = tools.run("acls-zookeeper", *on_tree, "--list", "--topic", "for-the-tool")
    assert any("operation=READ" in line for line in listed.lines)
    tools.run("acls-zookeeper", *on_tree, "--remove", "--force", "--topic", "from-the-tool")
    eventually(lambda: not described(cluster.ours, **wanted), "no ACL of the tool")


def test_a_broker_starts_with_what_another_has_written(cluster: Cluster, tmp_path: Path) -> None:
    create(cluster.kafka, acl("before"))
    broker = Broker("kpybroker", tmp_path / "third", cluster.connect, AUTHORIZED | {"broker.id": "2"})
    try:
        broker.launch()
        assert described(broker, **acl_filter(None)) == described(cluster.kafka, **acl_filter(None))
    finally:
        broker.kill()
