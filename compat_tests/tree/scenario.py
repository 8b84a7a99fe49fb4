"""A scenario that makes a broker write every kind of znode it writes, and what the tree looks like after it.

Clients alone play the scenario. A dump has every znode below a chroot: data (null and empty are different), version,
whether it is ephemeral, and its ACL; what is random or counted by the clock is replaced by what it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
)
from kazoo.client import KazooClient

from compat_tests.support import quick
from compat_tests.support.waiting import eventually

# Times, ids made up by chance, ports.
_RANDOM = re.compile(rb'("timestamp":)"?\d+"?|("(?:topic_id|id)":)"[\w-]{22}"|("port":)\d+|(127\.0\.0\.1:)\d+')


Connect = Callable[[], KazooClient]
"""Makes a client in the broker's chroot, with its rights."""


class Znode(NamedTuple):
    data: bytes | None
    version: int
    is_ephemeral: bool
    acl: tuple[str, ...]


def tell(bootstrap: str, connect: Connect) -> None:
    """Topics made in three ways, grown, configured and deleted; groups; producer ids; an election."""
    admin = quick.admin_client(bootstrap)
    _done(admin.create_topics([NewTopic("plain", 3, 1), NewTopic("configured", 1, 1, config={"retention.ms": "7"})]))
    _done(admin.create_topics([NewTopic("doomed", 2, 1)]))
    _done(admin.create_partitions([NewPartitions("plain", 5)]))
    for kind, name, key, value in (
        (ConfigResource.Type.TOPIC, "plain", "cleanup.policy", "compact"),
        (ConfigResource.Type.BROKER, "0", "log.segment.bytes", "100000000"),
    ):
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        _done(admin.incremental_alter_configs([ConfigResource(kind, name, incremental_configs=[entry])]))
    quick.fill(bootstrap, "configured", ["a", "b"])
    quick.read(bootstrap, [("configured", 0)], 2, group="readers")
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **quick.QUIET})
    producer.produce("configured", b"c")
    assert producer.flush(quick.DEADLINE_S) == 0
    _done(admin.delete_topics(["doomed"]))
    _elect(connect)


def _done(futures: Any) -> None:
    for future in futures.values():
        future.result(timeout=quick.DEADLINE_S)


def _elect(connect: Connect) -> None:
    """By the znode, as the tools of old did."""
    client = connect()
    client.start(quick.DEADLINE_S)
    try:
        wanted = {"version": 1, "partitions": [{"topic": "plain", "partition": 0}]}
        client.create("/admin/preferred_replica_election", json.dumps(wanted).encode())
        eventually(lambda: client.exists("/admin/preferred_replica_election") is None, "the election's end")
        eventually(lambda: not client.get_children("/admin/delete_topics"), "the deletion's end")
        eventually(lambda: not client.get_children("/isr_change_notification"), "no notification left")
    finally:
        client.stop()
        client.close()


def dump(connect: Connect) -> dict[str, Znode]:
    client = connect()
    client.start(quick.DEADLINE_S)
    found: dict[str, Znode] = {}
    try:
        paths = ["/"]
        while paths:
            path = paths.pop()
            data, stat = client.get(path)
            acls, _ = client.get_acls(path)
            reported = sorted(f"{acl.id.scheme}:{acl.id.id}:{acl.perms}" for acl in acls)
            found[path] = Znode(_without_chance(data), stat.version, stat.ephemeralOwner != 0, tuple(reported))
            paths += [f"{path.rstrip('/')}/{child}" for child in client.get_children(path)]
    finally:
        client.stop()
        client.close()
    return found


def _without_chance(data: bytes | None) -> bytes | None:
    return None if data is None else _RANDOM.sub(lambda m: next(filter(None, m.groups())) + b"*", data)


def differences(reference: dict[str, Znode], compared: dict[str, Znode]) -> list[str]:
    """In words; the root is the chroot, which each made or found."""
    return [
        f"{path}: Kafka {reference.get(path)}, ours {compared.get(path)}"
        for path in sorted((reference.keys() | compared.keys()) - {"/"})
        if reference.get(path) != compared.get(path)
    ]
