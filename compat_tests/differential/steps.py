"""Steps that many scripts take."""

from __future__ import annotations

from typing import Any

from compat_tests.differential.script import Ask, ask
from kpybroker.wire.api import ApiKey


def create(
    topic: str,
    partitions: int = 1,
    *,
    bind: dict[str, str] | None = None,
    until: dict[str, Any] | None = None,
    v: int = 7,
    compared: bool = True,
    **config: object,
) -> Ask:
    """A topic; keys of `config` have `_` for `.`."""
    configs = [{"name": key.replace("_", "."), "value": str(value)} for key, value in config.items()]
    wanted = {"name": topic, "num_partitions": partitions, "replication_factor": 1, "configs": configs}
    fields: dict[str, Any] = {"topics": [wanted], "timeout_ms": 60_000}
    return ask(ApiKey.CREATE_TOPICS, v=v, bind=bind, until=until, compared=compared, **fields)


def produce(topic: str, records: Any, *, partition: int = 0, acks: int = 1, **options: Any) -> Ask:
    return produce_to((topic, partition, records), acks=acks, **options)


def produce_to(*places: tuple[str, int, Any], acks: int = 1, **options: Any) -> Ask:
    """One request; neighbours of one topic share its entry."""
    topics: list[dict[str, Any]] = []
    for topic, partition, records in places:
        if not topics or topics[-1]["name"] != topic:
            topics.append({"name": topic, "partition_data": []})
        topics[-1]["partition_data"].append({"index": partition, "records": records})
    return ask(ApiKey.PRODUCE, acks=acks, timeout_ms=60_000, topic_data=topics, **options)


def fetch_one(topic: str, offset: int = 0, *, partition: int = 0, max_bytes: int = 1_000_000, **options: Any) -> Ask:
    """One partition without a session, at once. `v` up to 12: later ones want a topic id."""
    place = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": max_bytes}
    topics = [{"topic": topic, "partitions": [place]}]
    fields: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 0, "v": 12, **options}
    return ask(ApiKey.FETCH, topics=topics, **fields)


def everything(topic: str, partition: int = 0) -> Ask:
    """All that was written, batch by batch."""
    return fetch_one(topic, 0, partition=partition)
