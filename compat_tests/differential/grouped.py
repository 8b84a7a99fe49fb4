"""Steps of scripts about groups and the offsets that they commit."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.script import Ask, Step, ask
from kpybroker.wire.api import ApiKey

G = "{t}-g"
# whose commits are tried in every state: members a and b, no one, a stranger
COMMIT_PROBES = (
    *((member, generation) for member in ("{a}", "{b}") for generation in (-1, 0, 1, 2, 3)),
    ("", -1),
    ("", 1),
    ("who", 1),
    ("who", -1),
)
RANGE = {"name": "range", "metadata": b"r"}
ROBIN = {"name": "roundrobin", "metadata": b"rr"}


def find(*keys: str, key_type: int = 0, **options: Any) -> Ask:
    return ask(
        ApiKey.FIND_COORDINATOR, key=keys[0] if keys else "", coordinator_keys=list(keys), key_type=key_type, **options
    )


SLOW_MS = 4000
"""A timeout that ends in a script: long enough for the few requests that have to be in time, on a busy machine too."""


def join(member_id: str = "", *protocols: dict[str, Any], group: str = G, **options: Any) -> Ask:
    fields: dict[str, Any] = {
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 30_000,
        "protocol_type": "consumer",
        **options,
    }
    return ask(ApiKey.JOIN_GROUP, group_id=group, member_id=member_id, protocols=list(protocols or [RANGE]), **fields)


def sync(member_id: str, generation: Any, *assigned: tuple[str, bytes], **options: Any) -> Ask:
    """As a leader where something is assigned, or else as a follower."""
    fields: dict[str, Any] = {"protocol_type": "consumer", "protocol_name": "range", "group_id": G, **options}
    assignments = [{"member_id": to, "assignment": part} for to, part in assigned]
    return ask(ApiKey.SYNC_GROUP, member_id=member_id, generation_id=generation, assignments=assignments, **fields)


def beat(member_id: str, generation: Any, group: str = G, **options: Any) -> Ask:
    return ask(ApiKey.HEARTBEAT, group_id=group, member_id=member_id, generation_id=generation, **options)


def leave(*members: tuple[str, str | None], group: str = G, **options: Any) -> Ask:
    first = members[0][0] if members else ""
    identities = [{"member_id": member, "group_instance_id": instance} for member, instance in members]
    return ask(ApiKey.LEAVE_GROUP, group_id=group, member_id=first, members=identities, **options)


def describe(*groups: str, **options: Any) -> Ask:
    return ask(ApiKey.DESCRIBE_GROUPS, groups=list(groups or [G]), **options)


def joined(name: str, group: str = G, *protocols: dict[str, Any], **options: Any) -> list[Step]:
    """A lone member `name` (its id is bound to it) with generation 1, stable."""
    return [
        join("", *protocols, group=group, v=5, bind={name: "member_id"}, **options),
        join(f"{{{name}}}", *protocols, group=group, v=5, bind={f"{name}_gen": "generation_id"}, **options),
        sync(f"{{{name}}}", f"{{{name}_gen}}", (f"{{{name}}}", b"all"), v=3, group_id=group),
    ]


def state(expected: str) -> Ask:
    """Wait until the group has a state: what other connections sent has arrived."""
    return describe(v=5, until={"groups.0.group_state": expected})


def part(partition: int, offset: int, metadata: str | None = "", epoch: int = -1) -> dict[str, Any]:
    return {
        "partition_index": partition,
        "committed_offset": offset,
        "committed_leader_epoch": epoch,
        "commit_timestamp": -1,
        "committed_metadata": metadata,
    }


def commit(*parts: dict[str, Any], topic: str = "{t}", member: str = "", generation: Any = -1, **options: Any) -> Ask:
    fields: dict[str, Any] = {"group_id": G, "retention_time_ms": -1, **options}
    topics = [{"name": topic, "partitions": list(parts)}] if parts else []
    return ask(
        ApiKey.OFFSET_COMMIT, topics=topics, member_id=member, generation_id_or_member_epoch=generation, **fields
    )


def committed(*partitions: int, topic: str = "{t}", group: str = G, **options: Any) -> Ask:
    topics = [{"name": topic, "partition_indexes": list(partitions)}]
    return ask(
        ApiKey.OFFSET_FETCH, group_id=group, topics=topics, groups=[{"group_id": group, "topics": topics}], **options
    )


def everything(group: str = G, **options: Any) -> Ask:
    return ask(
        ApiKey.OFFSET_FETCH, group_id=group, topics=None, groups=[{"group_id": group, "topics": None}], **options
    )


def drop(topic: str, *partitions: int, group: str = G) -> Ask:
    topics = [{"name": topic, "partitions": [{"partition_index": partition} for partition in partitions]}]
    return ask(ApiKey.OFFSET_DELETE, group_id=group, topics=topics)
