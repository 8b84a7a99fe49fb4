"""Producer ids, unique in the cluster: blocks of 1 000 are taken from `/latest_producer_id_block`.

As Kafka's ``ZkProducerIdManager``: a conditional write claims the next block. Ids that a broker has not used when it
stops are never used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from kpybroker.core import tree as t
from kpybroker.wire import znodes
from kpybroker.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kpybroker.broker.loop.host import Host

BLOCK_SIZE = 1000
LARGEST_ID = 2**63 - 1


class ProducerIds:
    """This broker's source of producer ids; it claims a block when it has none left."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._next_id = 0
        self._ids_left = 0
        self._lock = trio.Lock()

    async def generate(self) -> int:
        """The next producer id. Raises KafkaError(COORDINATOR_LOAD_IN_PROGRESS) while the tree is unavailable,
        UNKNOWN_SERVER_ERROR when there are no more ids.
        """
        async with self._lock:
            if not self._ids_left:
                self._next_id = await self._claim_block()
                self._ids_left = BLOCK_SIZE
            producer_id = self._next_id
            self._next_id += 1
            self._ids_left -= 1
            return producer_id

    async def _claim_block(self) -> int:
        tree = self._host.tree
        while True:
            try:
                node = await tree.get(znodes.LATEST_PRODUCER_ID_BLOCK)
                start = znodes.decode_producer_id_block(node.data).last + 1 if node.data else 0
                if start > LARGEST_ID - BLOCK_SIZE:
                    raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "producer ids are exhausted")
                block = znodes.ProducerIdBlock(self._host.node_id, start, start + BLOCK_SIZE - 1)
                await tree.set(
                    znodes.LATEST_PRODUCER_ID_BLOCK, znodes.encode_producer_id_block(block), node.stat.version
                )
            except t.BadVersion:
                continue  # another broker was quicker
            except (t.ConnectionLoss, t.SessionExpired):
                # Whether it is claimed or not, the block is not used, which only leaves a gap.
                raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) from None
            return start
