"""Steps of scripts about transactions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compat_tests.differential.grouped import G, committed
from compat_tests.differential.records import Batch
from compat_tests.differential.script import Ask, ask
from compat_tests.differential.steps import fetch_one, produce
from kpybroker.wire.api import ApiKey

INIT = ApiKey.INIT_PRODUCER_ID
ADD = ApiKey.ADD_PARTITIONS_TO_TXN
ADD_OFFSETS = ApiKey.ADD_OFFSETS_TO_TXN
END = ApiKey.END_TXN
COMMIT_OFFSETS = ApiKey.TXN_OFFSET_COMMIT
MARKERS = ApiKey.WRITE_TXN_MARKERS
DESCRIBE = ApiKey.DESCRIBE_TRANSACTIONS
LIST = ApiKey.LIST_TRANSACTIONS
PRODUCERS = ApiKey.DESCRIBE_PRODUCERS

T = "{t}-id"
STRANGER = 987_654_321  # a producer id that no one has
Partitions = dict[str, Iterable[int]]


def init(name: str | None = T, *, timeout: int = 60_000, pid: Any = -1, epoch: Any = -1, **options: Any) -> Ask:
    fields: dict[str, Any] = {"transactional_id": name, "transaction_timeout_ms": timeout, **options}
    return ask(INIT, producer_id=pid, producer_epoch=epoch, **fields)


def begin(name: str = T, pid: str = "pid", **options: Any) -> Ask:
    """A producer that waits for what was open before; its id is bound."""
    return init(name, v=4, until={"error_code": 0}, bind={pid: "producer_id"}, **options)


def topics_of(partitions: Partitions) -> list[dict[str, Any]]:
    return [{"name": name, "partitions": list(indexes)} for name, indexes in partitions.items()]


def add(partitions: Partitions, *, name: str = T, pid: Any = "{pid}", epoch: Any = 0, **options: Any) -> Ask:
    """As a producer up to version 3, as a broker from version 4 on."""
    topics = topics_of(partitions)
    transaction = {"transactional_id": name, "producer_id": pid, "producer_epoch": epoch, "topics": topics}
    return ask(
        ADD,
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=pid,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=topics,
        transactions=[transaction],
        **options,
    )


def added(partitions: Partitions, **options: Any) -> Ask:
    """Once the transaction before is complete."""
    path = "results_by_topic_v3_and_below.0.results_by_partition.0.partition_error_code"
    return add(partitions, v=3, until={path: 0}, **options)


def verify(*transactions: dict[str, Any], **options: Any) -> Ask:
    return ask(ADD, transactions=list(transactions), **options)


def asked(
    partitions: Partitions, *, name: str = T, pid: Any = "{pid}", epoch: Any = 0, only: bool = True
) -> dict[str, Any]:
    return {
        "transactional_id": name,
        "producer_id": pid,
        "producer_epoch": epoch,
        "verify_only": only,
        "topics": topics_of(partitions),
    }


def add_offsets(group: str = G, *, name: str = T, pid: Any = "{pid}", epoch: Any = 0, **options: Any) -> Ask:
    return ask(ADD_OFFSETS, transactional_id=name, producer_id=pid, producer_epoch=epoch, group_id=group, **options)


def end(committed: bool, *, name: str = T, pid: Any = "{pid}", epoch: Any = 0, **options: Any) -> Ask:
    fields = {"transactional_id": name, "producer_id": pid, "producer_epoch": epoch, **options}
    return ask(END, committed=committed, **fields)


def done(*states: str, name: str = T) -> Ask:
    """Wait for one of the states, and compare everything about it."""
    return ask(DESCRIBE, v=0, transactional_ids=[name], until={"transaction_states.0.transaction_state": list(states)})


def describe(*names: str, **options: Any) -> Ask:
    return ask(DESCRIBE, transactional_ids=list(names), **options)


def offset(partition: int, value: int, metadata: str | None = "") -> dict[str, Any]:
    return {
        "partition_index": partition,
        "committed_offset": value,
        "committed_leader_epoch": 1,
        "committed_metadata": metadata,
    }


def commit_offsets(*offsets: dict[str, Any], topic: str = "{t}", name: str = T, **options: Any) -> Ask:
    fields: dict[str, Any] = {
        "group_id": G,
        "producer_id": "{pid}",
        "producer_epoch": 0,
        "generation_id": -1,
        "member_id": "",
        "group_instance_id": None,
        **options,
    }
    topics = [{"name": topic, "partitions": list(offsets)}]
    return ask(COMMIT_OFFSETS, transactional_id=name, topics=topics, **fields)


def batch(
    *values: bytes, seq: int = 0, pid: Any = "{pid}", epoch: Any = 0, transactional: bool = True, **options: Any
) -> Batch:
    return Batch(values, producer_id=pid, producer_epoch=epoch, sequence=seq, transactional=transactional, **options)


def write(records: Any, *, name: str | None = T, topic: str = "{t}", partition: int = 0, **options: Any) -> Ask:
    return produce(topic, records, partition=partition, transactional_id=name, **options)


def read(committed: bool = True, *, partition: int = 0, offset: int = 0, **options: Any) -> Ask:
    return fetch_one("{t}", offset, partition=partition, isolation_level=int(committed), **options)


def ends(committed: bool, partition: int = 0) -> Ask:
    place = {"partition_index": partition, "timestamp": -1, "current_leader_epoch": -1}
    topics = [{"name": "{t}", "partitions": [place]}]
    return ask(ApiKey.LIST_OFFSETS, v=7, replica_id=-1, isolation_level=int(committed), topics=topics)


def producers(*partitions: int, topic: str = "{t}", **options: Any) -> Ask:
    return ask(PRODUCERS, topics=[{"name": topic, "partition_indexes": list(partitions)}], **options)


def marker(
    partitions: Partitions, *, committed: bool = True, pid: Any = "{pid}", epoch: Any = 0, coordinator: int = 0
) -> dict[str, Any]:
    return {
        "producer_id": pid,
        "producer_epoch": epoch,
        "transaction_result": committed,
        "coordinator_epoch": coordinator,
        "topics": [{"name": name, "partition_indexes": list(indexes)} for name, indexes in partitions.items()],
    }


def markers(*wanted: dict[str, Any], **options: Any) -> Ask:
    return ask(MARKERS, markers=list(wanted), **options)


def stable(partition: int = 0, **options: Any) -> Ask:
    return committed(partition, require_stable=True, v=7, **options)
