"""Steps of scripts about share groups (KIP-932)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat_tests.differential.grouped import G
from compat_tests.differential.kafka_4.steps import delete
from compat_tests.differential.kafka_4.topics import FILLED, made
from compat_tests.differential.script import Ask, Step, ask
from compat_tests.differential.scripts.configs import GROUP, SET, change, describe
from kpybroker.wire.api import ApiKey

HEARTBEAT, DESCRIBE = ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_GROUP_DESCRIBE
FETCH, ACKNOWLEDGE = ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE
OFFSETS, ALTER, FORGET = (
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS,
)
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
RESET, LOCK = "share.auto.offset.reset", "share.record.lock.duration.ms"
NONE_IS_WANTED: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 0}


def sets(*values: tuple[str, str], group: str = G) -> list[Step]:
    """Settings of a group, and wait until the broker has them."""
    wanted = [(SET, key, value) for key, value in values]
    known = [describe(GROUP, group, [key], v=4, until={"results.0.configs.0.value": value}) for key, value in values]
    return [change(GROUP, group, *wanted), *known]


EARLIEST = sets((RESET, "earliest"))


def beat(member: str = "a", epoch: Any = 1, *, group: str = G, **options: Any) -> Ask:
    return ask(HEARTBEAT, **{"v": 1, **options}, group_id=group, member_id=member, member_epoch=epoch)


def joins(member: str, *topics: str, **options: Any) -> Ask:
    return beat(member, 0, **{"subscribed_topic_names": list(topics), **options})


def assigned(member: str = "a", *topics: str, partitions: int = 2, group: str = G) -> list[Step]:
    """A member joins, again and again until the state of its partitions was made."""
    last = {f"assignment.topic_partitions.{n}.partitions.{partitions - 1}": partitions - 1 for n in range(len(topics))}
    return [joins(member, *topics, until=last, group=group)]


def leaves(member: str = "a", **options: Any) -> Ask:
    return beat(member, -1, **options)


def view(*groups: str, **options: Any) -> Ask:
    return ask(DESCRIBE, **{"v": 1, **options}, group_ids=list(groups or [G]))


def acks(first: int, last: int, *types: int) -> dict[str, Any]:
    return {"first_offset": first, "last_offset": last, "acknowledge_types": list(types)}


def place(index: int, *acknowledged: dict[str, Any]) -> dict[str, Any]:
    return {"partition_index": index, "acknowledgement_batches": list(acknowledged)}


def entry(topic_id: Any, *places: dict[str, Any]) -> dict[str, Any]:
    return {"topic_id": topic_id, "partitions": list(places)}


def fetch(epoch: int, *places: dict[str, Any], member: Any = "a", topic_id: Any = "{id}", **options: Any) -> Ask:
    """A fetch that waits for a record, unless `options` say otherwise."""
    fields: dict[str, Any] = {
        "group_id": G,
        "max_wait_ms": 10_000,
        "min_bytes": 1,
        "max_records": 500,
        "batch_size": 500,
        "topics": [entry(topic_id, *places)] if places else [],
        **options,
    }
    return ask(FETCH, member_id=member, share_session_epoch=epoch, **fields)


def at_once(epoch: int, *places: dict[str, Any], **options: Any) -> Ask:
    """A fetch that takes what there is."""
    return fetch(epoch, *places, **{**NONE_IS_WANTED, **options})


def acknowledge(epoch: int, *places: dict[str, Any], member: Any = "a", topic_id: Any = "{id}", **options: Any) -> Ask:
    fields: dict[str, Any] = {"group_id": G, "topics": [entry(topic_id, *places)] if places else [], **options}
    return ask(ACKNOWLEDGE, member_id=member, share_session_epoch=epoch, **fields)


def offsets(*topics: tuple[str, Sequence[int]], groups: Sequence[str] = (G,), **options: Any) -> Ask:
    """Where groups are: in these partitions, or in all that they have a state of."""
    named = [{"topic_name": name, "partitions": list(indexes)} for name, indexes in topics] or None
    return ask(OFFSETS, **{"v": 1, **options}, groups=[{"group_id": group, "topics": named} for group in groups])


def alter(*topics: tuple[str, Sequence[tuple[int, int]]], group: str = G) -> Ask:
    """(topic, [(partition, offset)])."""
    entries = [
        {"topic_name": name, "partitions": [{"partition_index": index, "start_offset": new} for index, new in places]}
        for name, places in topics
    ]
    return ask(ALTER, v=0, group_id=group, topics=entries)


def forget(*topics: str, group: str = G) -> Ask:
    return ask(FORGET, v=0, group_id=group, topics=[{"topic_name": name} for name in topics])


def a_share_group(partitions: int = 2) -> list[Step]:
    """A topic of three records, and a group of one member that may fetch them."""
    return [*made(partitions=partitions), *FILLED, *EARLIEST, *assigned("a", "{t}", partitions=partitions)]


HOLDING: list[Step] = [*a_share_group(), fetch(0, place(0))]
"""Then the member holds the three records. Of several partitions a first fetch gets those whose state is read first."""
EMPTIED: list[Step] = [leaves(), view(until={"groups.0.group_state": "Empty"})]
DELETED: list[Step] = [*EMPTIED, delete()]
