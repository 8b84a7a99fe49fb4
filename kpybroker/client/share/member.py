"""`ShareMember`: a member of a share group that takes records and acknowledges them, one call after the other.

Rules:
- A heartbeat is sent in `poll` and `renew` when it is due; a member that calls neither for the session's time is
  removed from the group, and joins again in its next `poll`.
- Each broker that leads assigned partitions has a share session with this member; a request it refuses opens a new one.
- A failed connection closes all of them: the brokers release what was acquired, so it is delivered again. The first
  connection is the exception: without it there is nothing to wait for.
- A leader that moved, a topic that is being made, a coordinator that is starting: asked again in the next `poll`.
What it does not do: threads, decoding, and deciding what becomes of a record.
"""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from kpybroker.client.connect.errors import CommandError, broker_error, check
from kpybroker.client.connect.settings import Settings
from kpybroker.client.connect.wire import GROUP, WireBroker, WireCluster, WireError
from kpybroker.client.share.session import Session
from kpybroker.client.share.values import Ack, Delivered, Key, Refused, delivered
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

RETRY_S: Final = 0.2
WAIT_S: Final = 0.5
"""How long brokers wait for records, in all, before `poll` returns none."""
LEAVE: Final = -1
OUT_OF_THE_GROUP: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)
NOT_YET: Final = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)
NO_SESSION: Final = (
    ErrorCode.SHARE_SESSION_NOT_FOUND,
    ErrorCode.INVALID_SHARE_SESSION_EPOCH,
    ErrorCode.SHARE_SESSION_LIMIT_REACHED,
)
FINAL: Final = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.UNSUPPORTED_VERSION,
)
"""Errors of a partition that asking again does not change."""
UNNAMED: Final = "a topic that was deleted"
NEEDS: Final = "share groups need Kafka 4.1 or newer with share.version 1: kpybroker feature list shows it"


class ShareMember:
    """Connects at the first `poll`; close it at the end."""

    def __init__(self, settings: Settings, group: str, topics: Sequence[str]) -> None:
        self.member_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self.has_joined = False
        self.is_idle = False
        """Whether the last `poll` asked for every assigned partition, and none had a record to acquire."""
        self.lock_timeout_ms: int | None = None
        """How long a record stays acquired; None before a broker has said it."""
        self._settings = settings
        self._group = group
        self._topics = sorted(set(topics))
        self._cluster: WireCluster | None = None
        self._names: dict[bytes, str] = {}
        self._leaders: dict[Key, int] = {}
        self._sessions: dict[int, Session] = {}
        self._rounds = 0
        self._out_of_the_group()

    def _out_of_the_group(self) -> None:
        self._epoch = 0
        self._due = 0.0
        self._assigned: frozenset[Key] | None = None

    # --- what a caller does

    def poll(self, max_records: int) -> list[Delivered]:
        """Records that are now acquired by this member: none when there are none within WAIT_S.

        More than `max_records` only from brokers of before Kafka 4.2, to the end of a batch. Raises CommandError.
        """
        self.is_idle = False
        try:
            cluster = self._connected()
            self._heartbeat(cluster)
            found = self._fetched(cluster, max_records)
        except WireError:
            if not self.has_joined:
                raise
            self._disconnect()
            found = []
        if not found and not self.is_idle:
            time.sleep(RETRY_S)
        return found

    def acknowledge(self, records: Iterable[Delivered], kind: Ack) -> list[Refused]:
        """The same for each of these; the partitions whose acknowledgements had no effect."""
        by_node: dict[int, dict[Key, list[int]]] = {}
        for one in records:
            by_node.setdefault(one.node_id, {}).setdefault(one.key, []).append(one.offset)
        return [refused for node_id, offsets in by_node.items() for refused in self._send(node_id, offsets, kind)]

    def renew(self, records: Collection[Delivered]) -> list[Refused]:
        """Stay in the group, and hold these for another lock's time where the broker knows how (Kafka 4.2)."""
        try:
            self._heartbeat(self._connected())
        except WireError:
            self._disconnect()
        can = [one for one in records if one.node_id in self._sessions and self._sessions[one.node_id].can_renew]
        return self.acknowledge(can, Ack.RENEW)

    def close(self) -> None:
        """Release what was not acknowledged, and leave the group. A broker that is away learns it later by itself."""
        try:
            for session in self._sessions.values():
                session.close()
            if self._cluster is not None and self._epoch > 0:
                self._ask_coordinator(self._cluster, ShareGroupHeartbeatRequest(member_epoch=LEAVE))
        except CommandError:
            pass  # its locks and its session time out
        self._disconnect()

    # --- the group

    def _connected(self) -> WireCluster:
        if self._cluster is None:
            self._cluster = WireCluster(self._settings)
            self._leaders.clear()
        return self._cluster

    def _disconnect(self) -> None:
        self._sessions.clear()
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    def _heartbeat(self, cluster: WireCluster) -> None:
        """If it is due."""
        if time.monotonic() < self._due:
            return
        names = self._topics if self._epoch == 0 else None
        response = self._ask_coordinator(
            cluster, ShareGroupHeartbeatRequest(member_epoch=self._epoch, subscribed_topic_names=names)
        )
        error = response.error_code
        if error in OUT_OF_THE_GROUP:
            self._out_of_the_group()
        elif error == ErrorCode.UNSUPPORTED_VERSION:
            raise CommandError("the broker does not serve share groups (UNSUPPORTED_VERSION)", NEEDS)
        elif error not in NOT_YET:
            check(error, response.error_message)
            self.has_joined = True
            self._epoch = response.member_epoch
            self._due = time.monotonic() + response.heartbeat_interval_ms / 1000
            if response.assignment is not None:
                parts = response.assignment.topic_partitions
                self._assigned = frozenset((one.topic_id, index) for one in parts for index in one.partitions)

    def _ask_coordinator(self, cluster: WireCluster, request: ShareGroupHeartbeatRequest) -> Any:
        request.group_id, request.member_id = self._group, self.member_id
        broker = cluster.coordinator(self._group, GROUP)
        if ApiKey.SHARE_GROUP_HEARTBEAT not in broker.versions:
            raise CommandError("the broker does not serve share groups", NEEDS)
        return broker.request(ApiKey.SHARE_GROUP_HEARTBEAT, request)

    # --- records

    def _fetched(self, cluster: WireCluster, max_records: int) -> list[Delivered]:
        """From one broker after the other, first without waiting: one that has nothing must not hold up the others."""
        wanted = self._by_leader(cluster)
        self._rounds += 1
        first = self._rounds % max(1, len(wanted))
        nodes = [*wanted][first:] + [*wanted][:first]
        for node_id in [node_id for node_id in self._sessions if node_id not in wanted]:
            self._sessions.pop(node_id).close()
        asked = 0
        for wait_s in (0.0, min(WAIT_S, self._settings.timeout_s / 2)):
            asked = 0
            for node_id in nodes:
                session = self._session(cluster, node_id)
                response = session.fetch(wanted[node_id], max_records, int(wait_s * 1000 / len(nodes)))
                asked += self._accepted(session, response)
                found = [one for topic in response.responses for one in self._of_topic(session, topic)]
                if found:
                    return found
        self.is_idle = bool(wanted) and asked == len(wanted) and self._assigned == frozenset().union(*wanted.values())
        return []

    def _by_leader(self, cluster: WireCluster) -> Mapping[int, frozenset[Key]]:
        assigned = self._assigned or frozenset()
        if assigned - self._leaders.keys():
            for topic in cluster.topics(self._topics):
                self._names[topic.topic_id] = topic.name
                self._leaders |= {(topic.topic_id, one.partition_index): one.leader_id for one in topic.partitions}
        found: dict[int, set[Key]] = {}
        for key in assigned:
            leader = self._leaders.get(key, -1)
            if leader >= 0:
                found.setdefault(leader, set()).add(key)
            else:
                self._leaders.pop(key, None)
        return {node_id: frozenset(keys) for node_id, keys in sorted(found.items())}

    def _session(self, cluster: WireCluster, node_id: int) -> Session:
        if node_id not in self._sessions:
            if node_id not in cluster.nodes:  # it joined after we connected
                self._disconnect()
                raise WireError(f"the cluster had no broker {node_id}")
            broker: WireBroker = cluster.broker(node_id)
            self._sessions[node_id] = Session(broker, node_id, self._group, self.member_id)
        return self._sessions[node_id]

    def _accepted(self, session: Session, response: Any) -> bool:
        if response.error_code in NO_SESSION:
            self._sessions.pop(session.node_id, None)
            return False
        check(response.error_code, response.error_message)
        self.lock_timeout_ms = response.acquisition_lock_timeout_ms
        return True

    def _of_topic(self, session: Session, topic: Any) -> list[Delivered]:
        found: list[Delivered] = []
        for partition in topic.partitions:
            key = topic.topic_id, partition.partition_index
            if partition.error_code:
                self._leaders.pop(key, None)
                if partition.error_code in FINAL:
                    check(partition.error_code, partition.error_message)
                continue
            items = delivered(session.node_id, self._names.get(topic.topic_id, UNNAMED), key, partition)
            gaps = [one for one in items if isinstance(one, int)]
            if gaps:
                self._send(session.node_id, {key: gaps}, Ack.GAP)
            found += [one for one in items if isinstance(one, Delivered)]
        return found

    def _send(self, node_id: int, offsets: Mapping[Key, Sequence[int]], kind: Ack) -> list[Refused]:
        session = self._sessions.get(node_id)
        if session is None:
            lost = CommandError("the connection that acquired them is gone")
            return [self._refused(key, found, lost) for key, found in offsets.items()]
        try:
            response = session.acknowledge(offsets, kind)
        except WireError as failure:
            self._disconnect()
            return [self._refused(key, found, failure) for key, found in offsets.items()]
        whole = broker_error(response.error_code, response.error_message)
        if whole is not None:
            self._sessions.pop(node_id, None)
            return [self._refused(key, found, whole) for key, found in offsets.items()]
        refused: list[Refused] = []
        for topic in response.responses:
            for one in topic.partitions:
                error = broker_error(one.error_code, one.error_message)
                if error is not None:
                    key = topic.topic_id, one.partition_index
                    refused.append(self._refused(key, offsets.get(key, ()), error))
        return refused

    def _refused(self, key: Key, offsets: Sequence[int], error: CommandError) -> Refused:
        return Refused(self._names.get(key[0], UNNAMED), key[1], tuple(offsets), error)
