"""Members of a streams group (KIP-1071): one subtopology that reads the topic, a task a partition, handed over one by
one as the partitions of a consumer group are. The same must hold of them.
"""

from __future__ import annotations

from typing import Any

from kpybroker.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from tests.simulation.clients.consumer import SESSION_S, Consumer

SUBTOPOLOGY = "0"
TOPOLOGY_EPOCH = 0


class Streamer(Consumer):
    """One process with one thread. Static members are not served in streams groups."""

    VERSION = 0

    def _on_lost(self) -> None:
        """Tasks that were in a response are in no other one (Kafka 4.3.1), but in that to a member that joins."""
        self._release_all()

    def _given(self, response: Any) -> list[int] | None:
        if response.active_tasks is None:
            return None
        assert all(tasks.subtopology_id == SUBTOPOLOGY for tasks in response.active_tasks)
        return [index for tasks in response.active_tasks for index in tasks.partitions]

    def _short_heartbeat(self, epoch: int) -> Any:
        return StreamsGroupHeartbeatRequest(group_id=self._group.name, member_id=self._member_id, member_epoch=epoch)

    def _heartbeat(self) -> Any:
        request = self._short_heartbeat(self._epoch)
        if self._says_all:
            owned = sorted(index for _, index in self._owned)
            request.active_tasks = [
                StreamsGroupHeartbeatRequest.TaskIds(subtopology_id=SUBTOPOLOGY, partitions=owned) for _ in owned[:1]
            ]
            request.standby_tasks, request.warmup_tasks = [], []
            request.rebalance_timeout_ms = int(SESSION_S * 1000)
        if self._epoch == 0:
            topic = self._partitions[0][0]
            subtopology = StreamsGroupHeartbeatRequest.Subtopology(subtopology_id=SUBTOPOLOGY, source_topics=[topic])
            request.topology = StreamsGroupHeartbeatRequest.Topology(epoch=TOPOLOGY_EPOCH, subtopologies=[subtopology])
            request.process_id = self._member_id
        return request
