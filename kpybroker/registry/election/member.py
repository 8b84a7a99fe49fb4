"""`Member`: a thread that joins the group, keeps its place by heartbeats, and knows who leads.

A leader whose heartbeats get no response stops to be one before the coordinator gives its place away: `is_leader` is
false from SESSION_MS after the last heartbeat that got a response was sent.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from kpybroker.client.connect.errors import CommandError, hide
from kpybroker.client.connect.settings import Settings
from kpybroker.client.connect.wire import GROUP, WireBroker, WireCluster
from kpybroker.registry.election import protocol
from kpybroker.registry.election.protocol import Identity
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.heartbeat import HeartbeatRequest
from kpybroker.wire.messages.join_group import JoinGroupRequest
from kpybroker.wire.messages.leave_group import LeaveGroupRequest
from kpybroker.wire.messages.sync_group import SyncGroupRequest

logger = logging.getLogger("kpybroker.registry")

SESSION_MS: Final = 10_000
HEARTBEAT_S: Final = 2.0
REBALANCE_MS: Final = 10_000
REQUEST_S: Final = 30.0
"""Joining waits for the other members."""
RETRY_S: Final = 1.0
JOIN_AGAIN: Final = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION})


class Member:
    """Of any threads. `now` is a monotonic clock in seconds."""

    def __init__(
        self, settings: Settings, group: str, identity: Identity, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings._replace(timeout_s=max(REQUEST_S, settings.timeout_s))
        self._group = group
        self._identity = identity
        self._now = now
        self._changed = threading.Condition()
        self._leader: Identity | None = None
        self._is_leader = False
        self._lease_until = 0.0
        self._member_id = ""
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kpybroker-registry-member", daemon=True)

    def is_leader(self) -> bool:
        """Whether this instance may write now."""
        return self._is_leader and self._now() < self._lease_until

    def leader_url(self) -> str | None:
        """Where the leader is; None where no one leads."""
        leader = self._leader
        return None if leader is None else leader.url

    def start(self) -> None:
        """Join the group."""
        self._thread.start()

    def wait_for_leader(self, timeout_s: float) -> bool:
        """Whether someone leads within this time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._leader is not None, timeout_s)

    def close(self) -> None:
        """Leave the group, so that another leads at once."""
        self._is_closing.set()
        if self._thread.is_alive():
            self._thread.join(REQUEST_S)

    def _run(self) -> None:
        said = ""
        while not self._is_closing.is_set():
            try:
                with WireCluster(self._settings) as cluster:
                    said = ""
                    self._belong(cluster.coordinator(self._group, GROUP))
            except CommandError as error:
                if error.cause != said and not self._is_closing.is_set():  # once, however long it lasts
                    logger.warning("the group is out of reach group=%s cause=%s", self._group, hide(error.cause))
                said = error.cause
            except Exception:
                logger.exception("the membership failed group=%s", self._group)
            self._resign()
            self._is_closing.wait(RETRY_S)

    def _belong(self, coordinator: WireBroker) -> None:
        """Until it closes, or the coordinator has to be looked for again."""
        while not self._is_closing.is_set():
            generation = self._join(coordinator)
            if generation is None:
                return
            code = self._keep(coordinator, generation)
            if code == ErrorCode.NONE:
                coordinator.request(ApiKey.LEAVE_GROUP, self._leaving(coordinator.version_of(ApiKey.LEAVE_GROUP)))
                return
            if code not in JOIN_AGAIN:
                self._resign()
                if code != ErrorCode.UNKNOWN_MEMBER_ID:
                    return
                self._member_id = ""

    def _join(self, coordinator: WireBroker) -> int | None:
        """The generation, once who leads is known; None where the coordinator refuses."""
        own = self._identity._replace(is_leader=self.is_leader())
        while not self._is_closing.is_set():
            began = self._now()
            joined = coordinator.request(ApiKey.JOIN_GROUP, self._joining(own))
            self._member_id = joined.member_id or self._member_id
            if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                continue
            if joined.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                self._member_id = ""
                continue
            if joined.error_code != ErrorCode.NONE:
                logger.warning("joining failed group=%s error=%s", self._group, _name(joined.error_code))
                return None
            synced = coordinator.request(ApiKey.SYNC_GROUP, self._syncing(joined))
            if synced.error_code in JOIN_AGAIN:
                continue
            if synced.error_code != ErrorCode.NONE:
                logger.warning("joining failed group=%s error=%s", self._group, _name(synced.error_code))
                return None
            self._assigned(bytes(synced.assignment), began)
            return int(joined.generation_id)
        return None

    def _joining(self, own: Identity) -> JoinGroupRequest:
        offered = JoinGroupRequest.JoinGroupRequestProtocol(
            name=protocol.PROTOCOL, metadata=protocol.encode_identity(own)
        )
        return JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self._member_id,
            protocol_type=protocol.PROTOCOL_TYPE,
            protocols=[offered],
        )

    def _syncing(self, joined: Any) -> SyncGroupRequest:
        assignments = []
        if joined.leader == joined.member_id:
            members = {one.member_id: protocol.decode_identity(bytes(one.metadata)) for one in joined.members}
            data = protocol.encode_assignment(protocol.choose(members))
            assignments = [
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=data)
                for member_id in members
            ]
        return SyncGroupRequest(
            group_id=self._group,
            generation_id=joined.generation_id,
            member_id=self._member_id,
            protocol_type=protocol.PROTOCOL_TYPE,
            protocol_name=protocol.PROTOCOL,
            assignments=assignments,
        )

    def _leaving(self, version: int) -> LeaveGroupRequest:
        if version < 3:
            return LeaveGroupRequest(group_id=self._group, member_id=self._member_id)
        leaving = LeaveGroupRequest.MemberIdentity(member_id=self._member_id)
        return LeaveGroupRequest(group_id=self._group, members=[leaving])

    def _assigned(self, data: bytes, began: float) -> None:
        assignment = protocol.decode_assignment(data)
        if assignment.error == protocol.DUPLICATE_URLS:
            logger.error(
                "two instances have one URL, so none leads group=%s fix=give each its own --advertised-url", self._group
            )
            assignment = protocol.Assignment(assignment.error, None, None)
        with self._changed:
            self._leader = assignment.leader
            self._is_leader = assignment.member_id == self._member_id
            self._lease_until = began + SESSION_MS / 1000
            self._changed.notify_all()
        logger.info("elected leader=%s is_this_instance=%s", self.leader_url(), self._is_leader)

    def _keep(self, coordinator: WireBroker, generation: int) -> int:
        """Heartbeats until one is refused, whose error is returned, or until it closes: NONE."""
        request = HeartbeatRequest(group_id=self._group, generation_id=generation, member_id=self._member_id)
        while not self._is_closing.wait(HEARTBEAT_S):
            sent = self._now()
            code = int(coordinator.request(ApiKey.HEARTBEAT, request).error_code)
            if code != ErrorCode.NONE:
                return code
            self._lease_until = sent + SESSION_MS / 1000
        return ErrorCode.NONE

    def _resign(self) -> None:
        with self._changed:
            self._is_leader, self._leader = False, None
            self._changed.notify_all()


def _name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)
