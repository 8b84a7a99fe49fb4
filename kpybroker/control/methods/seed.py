"""Topics: created, deleted, shortened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.control.errors import ControlError
from kpybroker.control.inside import LEADER_WAIT_S, any_broker, ask, check, leading, partitions_of, wait_for_leaders
from kpybroker.control.levers.leadership import awake
from kpybroker.control.registry import JSON, methods
from kpybroker.wire.api import ApiKey

if TYPE_CHECKING:
    from kpybroker.control.hosted import Hosted

TIMEOUT_MS = 30_000
BY_DEFAULT = -1
"""In CreateTopics: `num.partitions`, `default.replication.factor`."""


async def create_topic(
    hosted: Hosted,
    name: str,
    partitions: int | None = None,
    replication_factor: int | None = None,
    config: dict[str, str | int | float | bool] | None = None,
) -> JSON:
    """Create a topic; return when every broker knows its leaders. Unset numbers are the brokers' defaults."""
    from kpybroker.wire.messages.create_topics import CreateTopicsRequest

    wanted = CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=BY_DEFAULT if partitions is None else partitions,
        replication_factor=BY_DEFAULT if replication_factor is None else replication_factor,
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=key, value=_config_text(value))
            for key, value in (config or {}).items()
        ],
    )
    request = CreateTopicsRequest(topics=[wanted], timeout_ms=TIMEOUT_MS)
    created = (await ask(any_broker(hosted), ApiKey.CREATE_TOPICS, request)).topics[0]
    check(created.error_code, f"creating topic {name}", created.error_message)
    await wait_for_leaders(hosted, name)
    return {"name": name, "partitions": created.num_partitions, "replication_factor": created.replication_factor}


def _config_text(value: str | int | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


async def delete_topic(hosted: Hosted, name: str) -> JSON:
    """Delete a topic; return when no broker knows it any more."""
    from kpybroker.wire.messages.delete_topics import DeleteTopicsRequest

    partitions_of(hosted, name)
    wanted = DeleteTopicsRequest.DeleteTopicState(name=name)
    request = DeleteTopicsRequest(topics=[wanted], timeout_ms=TIMEOUT_MS)
    deleted = (await ask(any_broker(hosted), ApiKey.DELETE_TOPICS, request)).responses[0]
    check(deleted.error_code, f"deleting topic {name}", deleted.error_message)
    for broker in awake(hosted):
        if not await broker.metadata.wait_until(lambda snapshot: name not in snapshot.topics, LEADER_WAIT_S):
            raise ControlError(f"broker {broker.node_id} still knows {name}", "look at `log` for the cause", status=408)


async def delete_records(hosted: Hosted, topic: str, partition: int, before: int) -> JSON:
    """Delete the records of a partition before an offset; -1 is the high watermark. Returns the new log start."""
    from kpybroker.wire.messages.delete_records import DeleteRecordsRequest

    broker, _ = leading(hosted, topic, partition)
    wanted = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=partition, offset=before)
    of_topic = DeleteRecordsRequest.DeleteRecordsTopic(name=topic, partitions=[wanted])
    request = DeleteRecordsRequest(topics=[of_topic], timeout_ms=TIMEOUT_MS)
    deleted = (await ask(broker, ApiKey.DELETE_RECORDS, request)).topics[0].partitions[0]
    check(deleted.error_code, f"deleting the records of {topic}-{partition} before {before}")
    return {"start_offset": deleted.low_watermark}


METHODS = methods(create_topic, delete_topic, delete_records)
