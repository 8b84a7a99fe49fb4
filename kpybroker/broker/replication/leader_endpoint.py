"""What a follower asks its leader: fetches, ends of epochs, and offsets. Kafka's ``RemoteLeaderEndPoint``.

Versions are those of `inter.broker.protocol.version`: brokers do not negotiate. Every request raises PEER_FAILURES if
there is no response.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kpybroker.broker.peers.connection import OnResponse, Request
from kpybroker.core import metadata_version as mv
from kpybroker.core.replication.follower import FetchState
from kpybroker.core.replication.follower_session import FollowerSession, Position
from kpybroker.core.topic_partition import TopicPartition
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.messages.fetch import FetchRequest

if TYPE_CHECKING:
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.peers.peers import Peers
    from kpybroker.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochResponse

LATEST = -1
EARLIEST = -2
REPLICA_STATE_SINCE = 15
LIST_OFFSETS_V0_MAX = 1


class LeaderEndpoint:
    """One connection of one fetcher to a leader. `session` is its fetch session."""

    def __init__(self, host: Host, peers: Peers, leader_id: int, number: int) -> None:
        self._host = host
        self.leader_id = leader_id
        self.number = number
        self._connection = peers.connection_to(leader_id, f"broker-{host.node_id}-fetcher-{number}")
        self.session = FollowerSession()
        version = mv.parse(host.config.get_str("inter.broker.protocol.version"))
        self._fetch_version = mv.fetch_version(version)
        self._epoch_version = mv.offset_for_leader_epoch_version(version)
        self._list_version = mv.list_offsets_version(version)
        self.truncates_on_fetch = mv.truncates_on_fetch(version)
        self.knows_epochs = mv.supports_offset_for_leader_epoch(version)

    @property
    def correlation_id(self) -> int:
        """Of the last request that was sent; the leader's request log has it too."""
        return self._connection.correlation_id

    def close(self) -> None:
        """Close the connection, if there is one."""
        self._connection.close()

    def _timeout_s(self) -> float:
        return self._host.config.get_int("replica.socket.timeout.ms") / 1000

    def fetch_request(self, positions: dict[tuple[str, int], Position]) -> Request | None:
        """A fetch from these positions, which the caller must send; None if there is nothing to ask for."""
        asked = self.session.request(positions, self._fetch_version)
        return None if asked is None else self._request(*asked)

    def fetch_request_for_changes(self, changed: dict[tuple[str, int], Position]) -> Request:
        """A fetch where only these positions have changed since the last one. The session must be open."""
        return self._request(*self.session.request_changes(changed, self._fetch_version))

    def _request(self, request: FetchRequest, version: int) -> Request:
        config = self._host.config
        request.max_wait_ms = config.get_int("replica.fetch.wait.max.ms")
        request.min_bytes = config.get_int("replica.fetch.min.bytes")
        request.max_bytes = config.get_int("replica.fetch.response.max.bytes")
        if version >= REPLICA_STATE_SINCE:
            request.replica_state = FetchRequest.ReplicaState(
                replica_id=self._host.node_id, replica_epoch=self._host.broker_epoch
            )
        else:
            request.replica_id = self._host.node_id
        return Request(ApiKey.FETCH, request, version)

    async def fetch(self, request: Request, on_response: OnResponse) -> None:
        """Send `request` and every request that `on_response` returns, until it returns None."""
        await self._connection.converse(request, on_response, self._timeout_s())

    async def epoch_ends(
        self, wanted: Mapping[TopicPartition, tuple[int, int]]
    ) -> dict[TopicPartition, OffsetForLeaderEpochResponse.EpochEndOffset]:
        """Where epochs end in the leader's log. `wanted`: each partition's current leader epoch, and the epoch."""
        from kpybroker.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest

        topics: dict[str, OffsetForLeaderEpochRequest.OffsetForLeaderTopic] = {}
        for (name, index), (current, epoch) in wanted.items():
            topic = topics.setdefault(name, OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=name))
            topic.partitions.append(
                OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
                    partition=index, current_leader_epoch=current, leader_epoch=epoch
                )
            )
        request = OffsetForLeaderEpochRequest(replica_id=self._host.node_id, topics=list(topics.values()))
        response: OffsetForLeaderEpochResponse = await self._connection.ask(
            Request(ApiKey.OFFSET_FOR_LEADER_EPOCH, request, self._epoch_version), self._timeout_s()
        )
        ends = {
            TopicPartition(topic.topic, end.partition): end for topic in response.topics for end in topic.partitions
        }
        return {key: end for key, end in ends.items() if key in wanted}

    async def latest_offset(self, state: FetchState) -> int:
        """The leader's log end. Raises KafkaError."""
        return await self._offset(state, LATEST)

    async def earliest_offset(self, state: FetchState) -> int:
        """The leader's log start. Raises KafkaError."""
        return await self._offset(state, EARLIEST)

    async def _offset(self, state: FetchState, timestamp: int) -> int:
        from kpybroker.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

        partition = ListOffsetsRequest.ListOffsetsPartition(
            partition_index=state.index,
            current_leader_epoch=state.leader_epoch,
            timestamp=timestamp,
            max_num_offsets=LIST_OFFSETS_V0_MAX,
        )
        topic = ListOffsetsRequest.ListOffsetsTopic(name=state.topic, partitions=[partition])
        request = ListOffsetsRequest(replica_id=self._host.node_id, topics=[topic])
        response: ListOffsetsResponse = await self._connection.ask(
            Request(ApiKey.LIST_OFFSETS, request, self._list_version), self._timeout_s()
        )
        found = response.topics[0].partitions[0]
        if found.error_code:
            raise KafkaError(ErrorCode(found.error_code))
        return found.offset if self._list_version >= 1 else found.old_style_offsets[0]
