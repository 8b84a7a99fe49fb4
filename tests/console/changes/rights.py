"""For each change of the console: something that it can change, and the rights that it needs for that, in the order in
which a user is given them. What only lets a user see things comes first.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from kpybroker.testing import Cluster

CLUSTER: Final = (ResourceType.BROKER, "kafka-cluster")
DESCRIBE, READ, WRITE = AclOperation.DESCRIBE, AclOperation.READ, AclOperation.WRITE
ALTER, CREATE, DELETE = AclOperation.ALTER, AclOperation.CREATE, AclOperation.DELETE
SEE_CONFIGS, ALTER_CONFIGS = AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS
Right = tuple[tuple[ResourceType, str], AclOperation]
Do = Callable[..., Any]
"""Makes a change as the administrator."""


class Scene(NamedTuple):
    """What to change, the rights for it, and what is typed at the end."""

    values: Mapping[str, str]
    rights: Sequence[Right]
    again: str = ""
    end: str = "Done."
    """What is said with all rights."""


def grant(cluster: Cluster, user: str, right: Right) -> None:
    (kind, name), operation = right
    literal, allow = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
    binding = AclBinding(kind, name, literal, f"User:{user}", "*", operation, allow)
    admin = cluster.admin()
    admin.create_acls([binding])[binding].result()


def _topic(name: str) -> tuple[ResourceType, str]:
    return ResourceType.TOPIC, name


def _group(name: str) -> tuple[ResourceType, str]:
    return ResourceType.GROUP, name


def _made(cluster: Cluster, replicas: int = 1) -> str:
    """A topic of one partition."""
    name = f"right-{uuid.uuid4().hex[:8]}"
    cluster.create_topic(name, 1, replication_factor=replicas)
    return name


def _replicas(cluster: Cluster, topic: str) -> list[int]:
    found: list[int] = cluster.admin().list_topics(timeout=30).topics[topic].partitions[0].replicas
    return found


def create(_: Cluster, __: Do) -> Scene:
    name = f"right-{uuid.uuid4().hex[:8]}"
    return Scene({"topic": name}, [(_topic(name), CREATE)])


def partitions(cluster: Cluster, _: Do) -> Scene:
    name = _made(cluster)
    return Scene({"topic": name, "partitions": "2"}, [(_topic(name), DESCRIBE), (_topic(name), ALTER)])


def trim(cluster: Cluster, _: Do) -> Scene:
    name = _made(cluster)
    cluster.produce(name, ["a", "b"])
    return Scene({"topic": name, "to": "end"}, [(_topic(name), DESCRIBE), (_topic(name), DELETE)], name)


def delete(cluster: Cluster, _: Do) -> Scene:
    name = _made(cluster)
    return Scene({"topic": name}, [(_topic(name), DESCRIBE), (_topic(name), DELETE)], name)


def config(cluster: Cluster, _: Do) -> Scene:
    name = _made(cluster)
    values = {"kind": "topic", "name": name, "key": "retention.ms", "value": "60000"}
    return Scene(values, [(_topic(name), SEE_CONFIGS), (_topic(name), ALTER_CONFIGS)])


def elect(cluster: Cluster, _: Do) -> Scene:
    name = _made(cluster, 2)
    cluster.move_leader(name, to=_replicas(cluster, name)[1])
    return Scene({"places": name}, [(_topic(name), DESCRIBE), (CLUSTER, ALTER)])


def elect_unclean(cluster: Cluster, _: Do) -> Scene:
    name = _made(cluster, 2)
    cluster.move_leader(name, to=None)
    rights = [(_topic(name), DESCRIBE), (CLUSTER, ALTER)]
    return Scene({"places": name}, rights, name, "ELIGIBLE_LEADERS_NOT_AVAILABLE")  # it is kept without one


def move(cluster: Cluster, _: Do) -> Scene:
    name = _made(cluster)
    (now,) = _replicas(cluster, name)
    to = next(broker for broker in cluster.ids if broker != now)
    rights = [(_topic(name), DESCRIBE), (_topic(name), ALTER_CONFIGS), (CLUSTER, ALTER_CONFIGS), (CLUSTER, ALTER)]
    return Scene({"places": name, "to": str(to), "throttle": "1000000"}, rights)


def cancel(cluster: Cluster, do: Do) -> Scene:
    scene = move(cluster, do)
    name = scene.values["places"]
    for _ in range(2):  # the first is fetched at once, and then a limit holds
        cluster.produce(name, [b"x" * 900_000])
    do("move", **{**scene.values, "throttle": "1"})
    return Scene({"places": name}, [(_topic(name), DESCRIBE), (CLUSTER, DESCRIBE), (CLUSTER, ALTER)])


def end_throttle(cluster: Cluster, do: Do) -> Scene:
    name = _made(cluster)
    key = "leader.replication.throttled.replicas"
    do("config", kind="topic", name=name, key=key, value="0:0")
    rights = [(_topic(name), DESCRIBE), (CLUSTER, DESCRIBE), (_topic(name), SEE_CONFIGS), (CLUSTER, SEE_CONFIGS)]
    return Scene({}, [*rights, (CLUSTER, ALTER_CONFIGS), (_topic(name), ALTER_CONFIGS)])


def _transaction(cluster: Cluster) -> str:
    """Open, in a topic and with an id of this name."""
    name = _made(cluster)
    producer = cluster.producer(user="admin", transactional_id=name)
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(name, b"pending", partition=0)
    producer.flush(60)
    _kept.append(producer)
    return name


_kept: list[Any] = []
"""Producers whose transactions are open: one that is collected aborts its own."""


def abort(cluster: Cluster, _: Do) -> Scene:
    name = _transaction(cluster)
    of = (ResourceType.TRANSACTIONAL_ID, name)
    return Scene({"id": name}, [(of, DESCRIBE), (of, WRITE)], name)


def abort_hanging(cluster: Cluster, _: Do) -> Scene:
    name = _transaction(cluster)
    values = {"topic": name, "partition": "0", "start_offset": "0"}
    return Scene(values, [(_topic(name), READ), (CLUSTER, ALTER)], name)


def _committed(cluster: Cluster) -> str:
    """A group at the end of a topic, both of this name."""
    name = _made(cluster)
    cluster.produce(name, ["a", "b", "c"])
    consumer = cluster.consumer(name, user="admin")
    consumer.commit(offsets=[TopicPartition(name, 0, 3)], asynchronous=False)
    consumer.close()
    return name


def offsets(cluster: Cluster, _: Do) -> Scene:
    name = _committed(cluster)
    rights = [(_group(name), DESCRIBE), (_topic(name), READ), (_group(name), READ)]
    return Scene({"group": name, "offsets": f"{name} 0 1"}, rights)


def move_group(cluster: Cluster, _: Do) -> Scene:
    name = _committed(cluster)
    rights = [(_group(name), DESCRIBE), (_topic(name), READ), (_group(name), READ)]
    return Scene({"group": name, "to": "start"}, rights)


def forget(cluster: Cluster, _: Do) -> Scene:
    name = _committed(cluster)
    rights = [(_group(name), DESCRIBE), (_topic(name), READ), (_group(name), DELETE)]
    return Scene({"group": name, "topics": name}, rights, name)


def delete_group(cluster: Cluster, _: Do) -> Scene:
    name = _committed(cluster)
    return Scene({"group": name}, [(_group(name), DESCRIBE), (_topic(name), DESCRIBE), (_group(name), DELETE)], name)


def _acl() -> dict[str, str]:
    return {"principal": f"User:{uuid.uuid4().hex[:8]}", "name": "t", "operations": "read"}


def create_acl(_: Cluster, __: Do) -> Scene:
    return Scene(_acl(), [(CLUSTER, DESCRIBE), (CLUSTER, ALTER)])


def delete_acl(_: Cluster, do: Do) -> Scene:
    values = _acl()
    do("acl-create", **values)
    return Scene(values, [(CLUSTER, DESCRIBE), (CLUSTER, ALTER)], values["principal"])


def set_user(_: Cluster, __: Do) -> Scene:
    values = {"user": f"u-{uuid.uuid4().hex[:8]}", "password": "secret-of-a-right"}
    return Scene(values, [(CLUSTER, DESCRIBE), (CLUSTER, ALTER)])


def delete_user(cluster: Cluster, do: Do) -> Scene:
    values = dict(set_user(cluster, do).values)
    do("user-set", **values)
    user = values["user"]
    return Scene({"user": user}, [(CLUSTER, DESCRIBE), (CLUSTER, ALTER)], user)


def set_quota(_: Cluster, __: Do) -> Scene:
    user = f"u-{uuid.uuid4().hex[:8]}"
    values = {"user": user, "values": "producer_byte_rate=1000000"}
    return Scene(values, [(CLUSTER, SEE_CONFIGS), (CLUSTER, ALTER_CONFIGS)])


def unset_quota(cluster: Cluster, do: Do) -> Scene:
    values = dict(set_quota(cluster, do).values)
    do("quota-set", **values)
    rights = [(CLUSTER, SEE_CONFIGS), (CLUSTER, ALTER_CONFIGS)]
    return Scene({"user": values["user"], "keys": "producer_byte_rate"}, rights, values["user"])


SCENES: Final[Mapping[str, Callable[[Cluster, Do], Scene]]] = {
    "topic-create": create,
    "topic-partitions": partitions,
    "topic-trim": trim,
    "topic-delete": delete,
    "config": config,
    "elect": elect,
    "elect-unclean": elect_unclean,
    "move": move,
    "move-cancel": cancel,
    "throttle-end": end_throttle,
    "transaction-abort": abort,
    "transaction-abort-hanging": abort_hanging,
    "group-offsets": offsets,
    "group-move": move_group,
    "group-forget": forget,
    "group-delete": delete_group,
    "acl-create": create_acl,
    "acl-delete": delete_acl,
    "user-set": set_user,
    "user-delete": delete_user,
    "quota-set": set_quota,
    "quota-unset": unset_quota,
}
"""All but those of the schema registry, whose rights no ACL has."""
