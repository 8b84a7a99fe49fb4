"""Offsets in the tree: `/consumers/<group>/offsets/<topic>/<partition>`, as consumers of Kafka 0.8 keep them.

Version 0 of OffsetCommit and OffsetFetch uses them. As in Kafka, they never expire and a topic's deletion leaves them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.coordination.tree import create_recursive, retry_until_connected
from kpybroker.core.group.values import FetchedOffset
from kpybroker.core.topic_partition import PartitionKey
from kpybroker.core.tree import Get, NodeData, NoNode, SetData, TreeError
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.znodes import ZnodeError, consumer_offset_path, decode_number, encode_number

if TYPE_CHECKING:
    from kpybroker.coordination.tree import Tree


async def write_offset(tree: Tree, group_id: str, partition: PartitionKey, offset: int) -> ErrorCode:
    """Commit one offset. UNKNOWN_SERVER_ERROR if the tree fails."""
    path, data = consumer_offset_path(group_id, *partition), encode_number(offset)
    try:
        (result,) = await retry_until_connected(tree, [SetData(path, data)])
        if isinstance(result, NoNode):
            await create_recursive(tree, path, data)
        elif isinstance(result, TreeError):
            raise result
    except TreeError:
        # Kafka's Errors.forException has no codes for ZooKeeper errors either.
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return ErrorCode.NONE


async def read_offset(tree: Tree, group_id: str, partition: PartitionKey) -> FetchedOffset:
    """A committed offset. UNKNOWN_TOPIC_OR_PARTITION if there is none, UNKNOWN_SERVER_ERROR if the tree fails."""
    try:
        (result,) = await retry_until_connected(tree, [Get(consumer_offset_path(group_id, *partition))])
        if isinstance(result, NoNode):
            return FetchedOffset(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if isinstance(result, TreeError):
            raise result
        assert isinstance(result, NodeData)
        return FetchedOffset(decode_number(result.data))
    except (TreeError, ZnodeError):
        return FetchedOffset(error=ErrorCode.UNKNOWN_SERVER_ERROR)
