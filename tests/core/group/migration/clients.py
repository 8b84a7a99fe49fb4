"""A consumer of the classic protocol as its machine's neighbours see it, eager or cooperative; leaders assign."""

from __future__ import annotations

from dataclasses import dataclass, field

from kpybroker.core.group.migration.embedded import encode_assignment, parse_assignment, parse_subscription
from kpybroker.core.group.values import Heartbeat, Join, JoinedMember, JoinResult, Sync, SyncResult
from kpybroker.wire.errors import ErrorCode
from tests.core.consumer_group.clients import GROUP
from tests.core.consumer_group.harness import Topics, classic_subscription

Owned = dict[bytes, frozenset[int]]
LOST = frozenset((ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID, ErrorCode.ILLEGAL_GENERATION))
"""Errors after which a member has nothing any more."""


@dataclass
class ClassicClient:
    """`next` is what it does next; `ticket` that of a request without a response yet.

    `is_expelled`: it has rejoined without a notion that it was removed, and reads on until it has synced.
    """

    name: str
    topics: Topics
    instance_id: str | None = None
    is_eager: bool = True
    topic_names: frozenset[str] = frozenset("tu")
    member_id: str = ""
    generation_id: int = -1
    owned: Owned = field(default_factory=dict)
    next: type = Join
    ticket: str | None = None
    assignments: dict[str, bytes] = field(default_factory=dict)
    is_expelled: bool = False

    def request(self, new_member_id: str) -> Join | Sync | Heartbeat:
        """An eager member gives up all that it has before it joins."""
        if self.next is Sync:
            assignments, self.assignments = self.assignments, {}
            return Sync(GROUP, self.generation_id, self.member_id, self.instance_id, None, None, assignments)
        if self.next is Heartbeat:
            return Heartbeat(GROUP, self.generation_id, self.member_id, self.instance_id)
        if self.is_eager:
            self.owned = {}
        named = {self.topics.ids[topic_id].name: indexes for topic_id, indexes in self.owned.items()}
        return Join(
            group_id=GROUP,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            new_member_id="" if self.member_id else new_member_id,
            client_id=self.name,
            client_host="/127.0.0.1",
            rebalance_timeout_ms=60_000,
            session_timeout_ms=45_000,
            protocol_type="consumer",
            protocols=(("range", classic_subscription(sorted(self.topic_names), named)),),
            require_known_member_id=self.instance_id is None,
            support_skipping_assignment=True,
            reason="test",
        )

    def receive(self, result: object) -> None:
        """Its response has come."""
        self.ticket = None
        match result:
            case JoinResult(ErrorCode.NONE):
                self.member_id, self.generation_id = result.member_id, result.generation_id
                self.assignments = self._assign(result.members)
                self.next = Sync
            case JoinResult(ErrorCode.MEMBER_ID_REQUIRED):
                self.member_id = result.member_id
            case SyncResult(ErrorCode.NONE):
                self._receive_assignment(dict(parse_assignment(result.assignment, self.topics)[0]))
            case ErrorCode.NONE:
                pass
            case JoinResult() | SyncResult():
                self._fail(result.error)
            case ErrorCode():
                self._fail(result)

    def _fail(self, error: ErrorCode) -> None:
        self.next = Join
        if error in LOST:
            self.is_expelled = False
            self.generation_id, self.owned = -1, {}
            if error is not ErrorCode.ILLEGAL_GENERATION:
                self.member_id = ""

    def _receive_assignment(self, assigned: Owned) -> None:
        """A cooperative member that has given up something joins once more, so that others get it."""
        revoked = any(indexes - assigned.get(topic_id, frozenset()) for topic_id, indexes in self.owned.items())
        self.owned, self.next = assigned, Join if revoked else Heartbeat
        self.is_expelled = False

    def _assign(self, members: tuple[JoinedMember, ...]) -> dict[str, bytes]:
        """In equal runs; but nothing that another member has not given up yet."""
        said = {one.member_id: parse_subscription(one.metadata, self.topics) for one in members}
        assigned: dict[str, Owned] = {member_id: {} for member_id in said}
        for topic in self.topics.names.values():
            wanting = sorted(member_id for member_id in said if topic.name in said[member_id].topic_names)
            for at, member_id in enumerate(wanting):
                low, high = (one * topic.partition_count // len(wanting) for one in (at, at + 1))
                others = frozenset[int]().union(
                    *(said[other].owned.get(topic.topic_id, frozenset()) for other in said if other != member_id)
                )
                assigned[member_id][topic.topic_id] = frozenset(range(low, high)) - others
        return {
            member_id: encode_assignment({topic: at for topic, at in one.items() if at}, self.topics, b"\0\3")
            for member_id, one in assigned.items()
        }
