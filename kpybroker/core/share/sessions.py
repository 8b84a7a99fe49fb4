"""Share sessions (KIP-932): which partitions a member of a share group fetches from this broker, and its next epoch.

A member has at most one session here. Epoch 0 opens one in place of any before it, 1..2^31-1 continue it and wrap to 1,
-1 ends it. A later request names only what changes: every partition that it names joins, if only to be acknowledged,
until it is forgotten. Its response names partitions with records or errors, and those that are new.

A session ends with the connection that opened it, and the member then releases what it holds. Where no session of a
group is left when a connection ends that had one, the group is idle here. All sessions of a connection end with it;
Kafka remembers only the last one that a connection opened, and stock clients open one.

A session is charged to its owner (`core.budget`). Where there is no room for a new one it is refused as above the
limit; a session that grows beyond the room ends, and its client opens another one. The rules are those of Kafka 4.3.1's
``SharePartitionManager.newContext``, ``ShareSessionCache`` and ``ShareSessionContext``. Never here: what members hold
(`partition`), waiting, responses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from kpybroker.core.budget import UNOWNED, Owner, StateBudget
from kpybroker.wire.errors import ErrorCode, KafkaError

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
LAST_EPOCH: Final = 2**31 - 1

SESSION_BYTES: Final = 2_000
PARTITION_BYTES: Final = 250
"""One partition of a session in memory: its key and its entry in a table; measured, and rounded up."""


class SessionKey(NamedTuple):
    """Whose session it is."""

    group_id: str
    member_id: str


class SharePartitionId(NamedTuple):
    """A partition as clients name it."""

    topic_id: bytes
    partition: int


def next_epoch(epoch: int) -> int:
    """The epoch of the request that follows; 1 follows 2^31-1."""
    return 1 if epoch == LAST_EPOCH else epoch + 1


class ShareSession:
    """`partitions` are in the order of the next fetch; the value says whether the next response must name them."""

    __slots__ = ("charged", "connection_id", "epoch", "key", "owner", "partitions")

    def __init__(self, key: SessionKey, connection_id: str, owner: Owner) -> None:
        self.key = key
        self.connection_id = connection_id
        self.owner = owner
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.partitions: dict[SharePartitionId, bool] = {}
        self.charged = 0  # bytes in memory, as last charged to the owner

    @property
    def size(self) -> int:
        """Bytes in memory, about."""
        return SESSION_BYTES + PARTITION_BYTES * len(self.partitions)

    def put(self, partition: SharePartitionId) -> None:
        """A later request names the partition."""
        self.partitions.setdefault(partition, True)

    def forget(self, partition: SharePartitionId) -> None:
        """A later request takes the partition out."""
        self.partitions.pop(partition, None)

    def names(self, partition: SharePartitionId, *, has_records: bool, has_error: bool) -> bool:
        """Whether the response to a later request names the partition; remembers that it does.

        A partition with records is fetched last the next time, and one with an error is named again.
        """
        is_due = self.partitions.get(partition)
        if is_due is None:
            return False  # it was forgotten while the request waited
        if has_records:
            del self.partitions[partition]
        self.partitions[partition] = has_error
        return is_due or has_records or has_error


class Disconnected(NamedTuple):
    """What a lost connection ended: sessions, and groups that have no session here any more."""

    sessions: list[ShareSession]
    idle_groups: list[str]


class ShareSessionCache:
    """At most `slots_max` sessions (`group.share.max.share.sessions`), none of which is ever evicted for another."""

    def __init__(self, slots_max: int, budget: StateBudget | None = None) -> None:
        self._slots_max = slots_max
        self._budget = StateBudget() if budget is None else budget
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._sessions_of: dict[str, int] = {}  # by group
        self._opened_by: dict[str, dict[SessionKey, None]] = {}
        """By connection: its sessions, and the last one it opened even if that has ended."""
        self.evictions_total = 0
        """Sessions that ended because their connection was lost."""

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partitions(self) -> int:
        """Partitions in all sessions."""
        return sum(len(session.partitions) for session in self._sessions.values())

    def get(self, key: SessionKey) -> ShareSession | None:
        """The member's session."""
        return self._sessions.get(key)

    def open(
        self,
        key: SessionKey,
        partitions: Collection[SharePartitionId],
        connection_id: str,
        owner: Owner = UNOWNED,
        *,
        acknowledges: bool = False,
    ) -> ShareSession:
        """A new session of these partitions, in place of the member's last one, whose locks stay.

        Raises INVALID_REQUEST if the request acknowledges, as it cannot hold anything; SHARE_SESSION_LIMIT_REACHED.
        """
        if acknowledges:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        self.remove(key)
        session = ShareSession(key, connection_id, owner)
        session.partitions = dict.fromkeys(partitions, False)
        if len(self._sessions) >= self._slots_max or not self._budget.has_room(owner, session.size):
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        self._sessions[key] = session
        self._sessions_of[key.group_id] = self._sessions_of.get(key.group_id, 0) + 1
        self._opened(key, connection_id)
        self._charge(session)
        return session

    def update(
        self,
        key: SessionKey,
        epoch: int,
        named: Iterable[SharePartitionId] = (),
        forgotten: Iterable[SharePartitionId] = (),
    ) -> ShareSession:
        """The session that a later fetch continues, with what it names and without what it forgets.

        The same as `proceed`, `ShareSession.put` and `forget` of each partition, and `grown`. Raises as those do.
        """
        session = self.proceed(key, epoch)
        for partition in named:
            session.put(partition)
        for partition in forgotten:
            session.forget(partition)
        self.grown(session)
        return session

    def proceed(self, key: SessionKey, epoch: int) -> ShareSession:
        """The session, for the request with this epoch. Raises SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH."""
        session = self.require(key)
        if session.epoch != epoch:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session.epoch = next_epoch(epoch)
        return session

    def grown(self, session: ShareSession) -> None:
        """A session has got other partitions. Raises SHARE_SESSION_NOT_FOUND where there is no room for it: the client
        opens another one.
        """
        if self._sessions.get(session.key) is not session:
            return
        if not self._budget.has_room(session.owner, session.size - session.charged):
            self.remove(session.key)
            raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        self._charge(session)

    def acknowledging(self, key: SessionKey, epoch: int) -> ShareSession:
        """The session of a request that only acknowledges; one that ends it does not change it yet.

        Raises INVALID_SHARE_SESSION_EPOCH, also for epoch 0; SHARE_SESSION_NOT_FOUND.
        """
        if epoch == INITIAL_EPOCH:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        return self.require(key) if epoch == FINAL_EPOCH else self.update(key, epoch)

    def require(self, key: SessionKey) -> ShareSession:
        """The member's session. Raises SHARE_SESSION_NOT_FOUND."""
        session = self._sessions.get(key)
        if session is None:
            raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        return session

    def remove(self, key: SessionKey) -> ShareSession | None:
        """End the member's session, if it has one."""
        session = self._sessions.pop(key, None)
        if session is not None:
            self._budget.add(session.owner, -session.charged)
            session.charged = 0
            left = self._sessions_of[key.group_id] - 1
            if left:
                self._sessions_of[key.group_id] = left
            else:
                del self._sessions_of[key.group_id]
            opened = self._opened_by.get(session.connection_id, {})
            if key in opened and next(reversed(opened)) != key:
                del opened[key]
        return session

    def disconnected(self, connection_id: str) -> Disconnected:
        """A connection ended. A session that its member has opened again on another one goes on."""
        opened = self._opened_by.pop(connection_id, None)
        if opened is None:
            return NOTHING_ENDED
        ended = []
        for key in opened:
            session = self._sessions.get(key)
            if session is not None and session.connection_id == connection_id:
                self.remove(key)
                ended.append(session)
        self.evictions_total += len(ended)
        groups = dict.fromkeys(key.group_id for key in opened)
        return Disconnected(ended, [group_id for group_id in groups if group_id not in self._sessions_of])

    def clear(self) -> None:
        """End all: share groups are served no more."""
        for key in list(self._sessions):
            self.remove(key)

    def _opened(self, key: SessionKey, connection_id: str) -> None:
        opened = self._opened_by.setdefault(connection_id, {})
        if opened:
            last = next(reversed(opened))
            session = self._sessions.get(last)
            if last == key or session is None or session.connection_id != connection_id:
                del opened[last]
        opened[key] = None

    def _charge(self, session: ShareSession) -> None:
        size = session.size
        self._budget.add(session.owner, size - session.charged)
        session.charged = size


NOTHING_ENDED: Final = Disconnected([], [])
