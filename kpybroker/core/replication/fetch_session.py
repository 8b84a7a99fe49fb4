"""Fetch sessions (KIP-227): the positions a client has sent, and what it has received already.

A session remembers each partition's fetch position and the last response for it, so that a later request and its
response name only what has changed. Every fetch goes through a `FetchSession`; a client that asks for none gets one
that is dropped afterwards.

A session keeps a *dirty* set: partitions that may have changed for the client. A partition is dirty when it is new or
the client changed its position, when its last response had records or an error, when the size limit was reached before
it, and when the broker marks it (append, high watermark, log start, leadership). Only dirty partitions are visited, so
that 1 000 idle partitions cost nothing. Kafka visits all of them, with the same responses.

Rules kept from Kafka's ``FetchSession.scala``: epochs run 1..2^31-1 and wrap to 1; a full request with a session id
ends that session; an incremental one with an unknown id or a wrong epoch gets FETCH_SESSION_ID_NOT_FOUND or
INVALID_FETCH_SESSION_EPOCH; a session left without partitions ends; a partition whose response had records goes to the
end of the queue.

A kept session is charged to its owner (`core.budget`). Where there is no room for a new one, sessions that are unused
for two minutes end, first the owner's; if that is not enough, the client gets none and names all its partitions in each
fetch, as with a full cache of Kafka's. A session that grows beyond the room ends, and its client begins again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol

from kpybroker.core.budget import UNOWNED, StateBudget
from kpybroker.wire.errors import ErrorCode, KafkaError

INVALID_SESSION_ID = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EVICTION_MS = 120_000

# (topic id, "", partition index) where the client speaks in topic ids, else (zero id, topic name, partition index)
FetchKey = tuple[bytes, str, int]

SESSION_BYTES: Final = 2_000
PARTITION_BYTES: Final = 450
"""One partition of a session in memory: its key, position, and entries in two tables; measured, and rounded up."""


class Subscriber(Protocol):
    """What a partition notifies: a fetch session, or a share partition (`broker.share`)."""

    @property
    def is_follower(self) -> bool:
        """Whether it reads for another broker, and so beyond the high watermark."""

    def mark_dirty(self, key: FetchKey, appended_bytes: int) -> None:
        """The partition has changed, by `appended_bytes` of records that can be read now."""

    def mark_without_waking(self, key: FetchKey) -> None:
        """The high watermark has moved, for a follower."""


class CachedPartition:
    """One partition's fetch position and limits, and the watermarks of the last response."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "high_watermark",
        "key",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "queue_position",
        "resolved_name",
        "sent_log_start_offset",
    )

    def __init__(
        self,
        key: FetchKey,
        fetch_offset: int,
        max_bytes: int,
        current_leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
        log_start_offset: int = -1,
    ) -> None:
        self.key = key
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        self.high_watermark = -1
        self.sent_log_start_offset = -1
        self.queue_position = 0
        self.resolved_name = ""

    def take_position(self, other: CachedPartition) -> None:
        """Take over the position and limits that a later request gives."""
        self.fetch_offset = other.fetch_offset
        self.max_bytes = other.max_bytes
        self.current_leader_epoch = other.current_leader_epoch
        self.last_fetched_epoch = other.last_fetched_epoch
        self.log_start_offset = other.log_start_offset

    def differs(self, high_watermark: int, log_start_offset: int, *, has_records: bool, is_special: bool) -> bool:
        """Whether an incremental response must name this partition."""
        return (
            has_records
            or is_special
            or high_watermark != self.high_watermark
            or log_start_offset != self.sent_log_start_offset
        )

    def has_changed(self, high_watermark: int, log_start_offset: int, *, has_records: bool, is_special: bool) -> bool:
        """`differs`; remembers what is sent.

        `is_special` is an error, a preferred read replica or a diverging epoch; the next response names it again.
        """
        has_changed = self.differs(high_watermark, log_start_offset, has_records=has_records, is_special=is_special)
        self.high_watermark = -1 if is_special else high_watermark
        self.sent_log_start_offset = log_start_offset
        return has_changed


class FetchSession:
    """`session_id` is 0 for a session that is not kept."""

    __slots__ = (
        "access_generation",
        "charged",
        "created_ms",
        "dirty",
        "epoch",
        "is_follower",
        "last_used_ms",
        "marks",
        "name_bytes",
        "on_dirty",
        "owner",
        "partitions",
        "positions_used",
        "session_id",
        "uses_topic_ids",
    )

    def __init__(self, *, is_follower: bool, uses_topic_ids: bool, now_ms: int) -> None:
        self.session_id = INVALID_SESSION_ID
        self.epoch = INITIAL_EPOCH
        self.is_follower = is_follower
        self.uses_topic_ids = uses_topic_ids
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.partitions: dict[FetchKey, CachedPartition] = {}
        self.dirty: dict[FetchKey, None] = {}
        self.marks = 0
        self.positions_used = 0
        self.on_dirty: Callable[[int], None] | None = None
        self.access_generation = 0
        self.owner = UNOWNED
        self.name_bytes = 0  # of the topics' names, as if none were shared
        self.charged = 0  # bytes in memory, as last charged to the owner

    @property
    def size(self) -> int:
        """Bytes in memory, about."""
        return SESSION_BYTES + PARTITION_BYTES * len(self.partitions) + self.name_bytes

    def access_changed(self, generation: int, *, visits_all: bool) -> None:
        """What clients may read has changed: visit every partition, since an idle one may be closed to it now.

        `visits_all`: the request does so by itself.
        """
        self.access_generation = generation
        if not visits_all:
            self.dirty.update(dict.fromkeys(self.partitions))

    def put(self, partition: CachedPartition) -> bool:
        """Add or move one partition; True when it is new to the session."""
        known = self.partitions.get(partition.key)
        self.dirty[partition.key] = None
        if known is None:
            self.partitions[partition.key] = partition
            self.name_bytes += len(partition.key[1])
            self.move_to_end(partition)
            return True
        known.take_position(partition)
        return False

    def forget(self, key: FetchKey) -> bool:
        """Remove a partition; whether it was there."""
        self.dirty.pop(key, None)
        if self.partitions.pop(key, None) is None:
            return False
        self.name_bytes -= len(key[1])
        return True

    def mark_dirty(self, key: FetchKey, appended_bytes: int) -> None:
        """The partition has changed, by `appended_bytes` of records; a waiting fetch may be complete now."""
        if key in self.partitions:
            self.dirty[key] = None
            self.marks += 1
            if self.on_dirty is not None:
                self.on_dirty(appended_bytes)

    def mark_without_waking(self, key: FetchKey) -> None:
        """Name the partition in the next response without completing a waiting fetch: a follower's high watermark."""
        if key in self.partitions:
            self.dirty[key] = None

    def move_to_end(self, partition: CachedPartition) -> None:
        """The partition is new, or its response had records: it is visited after all others."""
        self.positions_used += 1
        partition.queue_position = self.positions_used

    def take_dirty(self) -> list[FetchKey]:
        """Partitions to visit, in queue order. Each visit begins with `visiting` and may end with `stays_dirty`."""
        dirty = list(self.dirty)
        if len(dirty) > 1:
            dirty.sort(key=lambda key: self.partitions[key].queue_position)
        return dirty

    def visiting(self, key: FetchKey) -> None:
        """Unmark a partition that is about to be read."""
        self.dirty.pop(key, None)

    def stays_dirty(self, key: FetchKey) -> None:
        """The response has records or an error: visit the partition next time too."""
        self.dirty[key] = None

    def mention_again(self, key: FetchKey) -> None:
        """The client received an error for the partition in place of what was read: the next response names it."""
        cached = self.partitions.get(key)
        if cached is not None:
            cached.high_watermark = -1
            self.dirty[key] = None

    def next_epoch(self) -> None:
        """Advance to the epoch that the client's next request must carry; 1 follows 2^31-1."""
        self.epoch = 1 if self.epoch == 0x7FFFFFFF else self.epoch + 1


class FetchSessionCache:
    """At most `slots_max` sessions (`max.incremental.fetch.session.cache.slots`).

    When full, a new session replaces one that is unused for two minutes, or a smaller consumer's session if the new one
    is larger or a follower's, as in Kafka. Otherwise the new session is not kept.
    """

    def __init__(
        self, slots_max: int, on_removed: Callable[[FetchSession], None], budget: StateBudget | None = None
    ) -> None:
        self._slots_max = slots_max
        self._budget = StateBudget() if budget is None else budget
        self._on_removed = on_removed
        self._sessions: dict[int, FetchSession] = {}  # least recently used first
        self.evictions_total = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partitions(self) -> int:
        """Partitions in all kept sessions."""
        return sum(len(session.partitions) for session in self._sessions.values())

    def peek(self, session_id: int) -> FetchSession | None:
        """A kept session, without using it."""
        return self._sessions.get(session_id)

    def session_for(
        self, session_id: int, epoch: int, *, is_follower: bool, uses_topic_ids: bool, now_ms: int
    ) -> FetchSession:
        """The session that a request names. A full request gets a new, empty one that is not kept yet.

        Raises KafkaError: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR.
        """
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self.remove(session_id)
            return FetchSession(is_follower=is_follower, uses_topic_ids=uses_topic_ids, now_ms=now_ms)
        session = self._sessions.get(session_id)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.next_epoch()
        self.touch(session, now_ms)
        return session

    def touch(self, session: FetchSession, now_ms: int) -> None:
        """Note that a session is in use, so that it is evicted last."""
        session.last_used_ms = now_ms
        if self._sessions.pop(session.session_id, None) is not None:
            self._sessions[session.session_id] = session

    def keep(self, session: FetchSession, new_ids: Iterable[int], now_ms: int) -> bool:
        """Keep a full request's session under an id from `new_ids` (random, endless); False where the cache is full."""
        if not self._makes_room(session, session.size, now_ms):
            return False
        if len(self._sessions) >= self._slots_max and not self._evict(session, now_ms):
            return False
        session.session_id = next(
            new_id for new_id in new_ids if new_id != INVALID_SESSION_ID and new_id not in self._sessions
        )
        session.epoch = 1
        self._sessions[session.session_id] = session
        self._charge(session)
        return True

    def grown(self, session: FetchSession, now_ms: int) -> None:
        """A kept session has got other partitions. Raises FETCH_SESSION_ID_NOT_FOUND where there is no room for it:
        the client begins with a full request.
        """
        if session.size == session.charged:
            return
        if not self._makes_room(session, session.size - session.charged, now_ms):
            self.remove(session.session_id)
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        self._charge(session)

    def _charge(self, session: FetchSession) -> None:
        size = session.size
        self._budget.add(session.owner, size - session.charged)
        session.charged = size

    def _makes_room(self, session: FetchSession, size: int, now_ms: int) -> bool:
        """Whether the owner may have `size` bytes more, once sessions that no one uses have ended."""
        budget, owner = self._budget, session.owner
        if size > 0 and not budget.would_fit(owner, size):
            unused = [one for one in self._sessions.values() if now_ms - one.last_used_ms > EVICTION_MS]
            for one in sorted(unused, key=lambda one: one.owner != owner):
                if one.owner != owner and not budget.fits_owner(owner, size):
                    break  # what others have makes no difference
                self.remove(one.session_id)
                self.evictions_total += 1
                if budget.would_fit(owner, size):
                    break
        return budget.has_room(owner, size)

    def remove(self, session_id: int) -> None:
        """End a kept session; nothing happens for an unknown id."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._budget.add(session.owner, -session.charged)
            session.charged = 0
            session.session_id = INVALID_SESSION_ID  # a fetch of it that is in progress keeps nothing
            self._on_removed(session)

    def _evict(self, candidate: FetchSession, now_ms: int) -> bool:
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.last_used_ms > EVICTION_MS:
            victim = oldest
        else:
            victim = min(self._sessions.values(), key=_rank)
            if _rank(candidate) <= _rank(victim) or now_ms - victim.created_ms <= EVICTION_MS:
                return False
        self.remove(victim.session_id)
        self.evictions_total += 1
        return True


def _rank(session: FetchSession) -> tuple[bool, int]:
    return session.is_follower, len(session.partitions)
