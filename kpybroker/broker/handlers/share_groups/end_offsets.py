"""The ends of partitions, as their leaders say them: what share groups have not read is counted up to there.

As Kafka's NetworkPartitionMetadataClient: the high watermark, of this broker's own partitions or by ListOffsets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kpybroker.core.topic_partition import PartitionKey
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError, ProtocolError
from kpybroker.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

if TYPE_CHECKING:
    from kpybroker.broker.handlers.broker import Broker

LIST_OFFSETS_VERSION: Final = 7
"""That of Kafka 3.9, which every broker of a cluster has."""
LATEST: Final = -1
CONSUMER: Final = -1


async def end_offsets(broker: Broker, partitions: Iterable[PartitionKey]) -> dict[PartitionKey, int | ErrorCode]:
    """The end of each partition, or why it is not known."""
    ends: dict[PartitionKey, int | ErrorCode] = {}
    of_leader: defaultdict[int, list[PartitionKey]] = defaultdict(list)
    for key in partitions:
        found = broker.metadata.leader_and_epoch(*key)
        if found is None:
            ends[key] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif not broker.metadata.is_alive(found[0]):
            ends[key] = ErrorCode.LEADER_NOT_AVAILABLE
        elif found[0] == broker.node_id:
            ends[key] = _own_end(broker, key)
        else:
            of_leader[found[0]].append(key)
    for leader, keys in of_leader.items():
        ends |= await _ask(broker, leader, keys)
    return ends


def _own_end(broker: Broker, key: PartitionKey) -> int | ErrorCode:
    try:
        return broker.replicas.hosted(*key).readable_log(-1, only_leader=True).high_watermark
    except KafkaError as error:
        return error.code


async def _ask(broker: Broker, leader: int, keys: list[PartitionKey]) -> dict[PartitionKey, int | ErrorCode]:
    topics: defaultdict[str, list[ListOffsetsRequest.ListOffsetsPartition]] = defaultdict(list)
    for name, index in keys:
        topics[name].append(ListOffsetsRequest.ListOffsetsPartition(partition_index=index, timestamp=LATEST))
    request = ListOffsetsRequest(
        replica_id=CONSUMER,
        topics=[ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=wanted) for name, wanted in topics.items()],
    )
    try:
        response: ListOffsetsResponse = await broker.peers.ask(
            leader, ApiKey.LIST_OFFSETS, request, LIST_OFFSETS_VERSION
        )
    except (OSError, ProtocolError):
        return dict.fromkeys(keys, ErrorCode.NETWORK_EXCEPTION)
    said: dict[PartitionKey, int | ErrorCode] = dict.fromkeys(keys, ErrorCode.UNKNOWN_SERVER_ERROR)
    for topic in response.topics:
        for one in topic.partitions:
            said[topic.name, one.partition_index] = ErrorCode(one.error_code) if one.error_code else one.offset
    return said
