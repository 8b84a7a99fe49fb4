"""A member of a streams group that a test plays, for tests whose broker is another process."""

from __future__ import annotations

import time
from typing import Any, Final

from kpybroker.client.connect.wire import GROUP, WireCluster
from kpybroker.wire.api import ApiKey
from kpybroker.wire.messages.offset_commit import OffsetCommitRequest
from kpybroker.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest as Heartbeat

SETTLE_S: Final = 60.0
UNASSIGNED: Final[dict[str, Any]] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}


class Application:
    """The member "one" of a streams group of the name of its topic, by our own connections."""

    def __init__(self, cluster: WireCluster, name: str) -> None:
        self._cluster = cluster
        self._name = name
        self.epoch = 0

    def beat(self, epoch: int | None = None, **fields: Any) -> Any:
        """One heartbeat, and its response."""
        request = Heartbeat(
            group_id=self._name,
            member_id="one",
            member_epoch=self.epoch if epoch is None else epoch,
            **fields,
        )
        response = self._cluster.coordinator(self._name, GROUP).request(ApiKey.STREAMS_GROUP_HEARTBEAT, request)
        assert response.error_code == 0, response
        self.epoch = response.member_epoch
        return response

    def join(self, sent: Heartbeat.Topology) -> None:
        """Until it has tasks, and no one has to wait for topics."""
        self.beat(0, rebalance_timeout_ms=60_000, process_id="p", topology=sent, **UNASSIGNED)
        end = time.monotonic() + SETTLE_S
        while response := self.beat().status:
            assert time.monotonic() < end, response

    def commit(self, offset: int) -> None:
        """Of partition 0."""
        part = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topic = OffsetCommitRequest.OffsetCommitRequestTopic(name=self._name, partitions=[part])
        request = OffsetCommitRequest(
            group_id=self._name, member_id="one", generation_id_or_member_epoch=self.epoch, topics=[topic]
        )
        response = self._cluster.coordinator(self._name, GROUP).request(ApiKey.OFFSET_COMMIT, request)
        assert response.topics[0].partitions[0].error_code == 0
