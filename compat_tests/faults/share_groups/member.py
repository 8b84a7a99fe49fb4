"""A member of a share group that speaks the protocol by itself, and writes down all that it was given and said.

It accepts most records, releases and rejects some, and says nothing of some until their locks have run out, or then
what must be refused. It also accepts records that another member holds, which must be refused too. Some records break
every member: they are released each time. Now and then it loses its connections. It goes on through every fault:
whatever fails, it begins again from the metadata.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from compat_tests.faults.share_groups.history import (
    Acknowledgement,
    Delivery,
    Kept,
    Kind,
    Partition,
    ShareHistory,
    Span,
)
from compat_tests.overload.raw import Raw
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest
from kpybroker.wire.messages.metadata import MetadataRequest
from kpybroker.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from kpybroker.wire.messages.share_fetch import ShareFetchRequest
from kpybroker.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from kpybroker.wire.records.batch import iter_batches
from kpybroker.wire.records.record import iter_records

Address = tuple[str, int]
TIMEOUT_S = 8.0
HEARTBEAT_S = 0.3
FETCH_WAIT_MS, MAX_RECORDS = 200, 40
PAUSE_S = 0.1
LEAVES, LOSES_CONNECTION = 0.01, 0.02
"""Odds after each fetch."""
KINDS: Sequence[tuple[Kind | None, int]] = ((Kind.ACCEPT, 80), (Kind.RELEASE, 10), (Kind.REJECT, 3), (None, 7))
"""What is said of a range of records, and how often; None is nothing."""
LATE, LATE_S = 0.5, 0.2
"""Odds that what nothing was said of is accepted after its lock, and how long after."""
KEEPS_AGAIN = 0.3
"""Odds that nothing is said of what was delivered before: it is still held when who had it first accepts it late."""
STEALS = 0.3
"""Odds after each fetch that a record is accepted which another member holds, if there is one."""
POISON_EVERY = 97
"""Of so many offsets one breaks its members."""
METADATA_VERSION, FIND_VERSION, VERSION = 12, 4, 2


class Settings(NamedTuple):
    """Where the member works: the addresses of brokers, its group and topic."""

    addresses: Sequence[Address]
    group: str
    topic: str
    lock_s: float


class _Said(NamedTuple):
    """Of which records something is said."""

    partition: int
    first: int
    last: int
    kind: Kind


class _Lost(Exception):
    """A broker is away, or not what it was: begin again."""


@dataclass(slots=True)
class _Session:
    """A share session with one leader."""

    raw: Raw
    epoch: int = 0
    late: list[tuple[float, _Said]] = field(default_factory=list)


@dataclass(slots=True)
class _Place:
    """What the metadata say: the topic's id, and the partitions of each leader."""

    topic_id: bytes = bytes(16)
    leaders: dict[Address, list[int]] = field(default_factory=dict)


class Member(threading.Thread):
    """One member; `end` makes it leave. While `drains` is set it accepts everything."""

    def __init__(self, name: str, settings: Settings, history: ShareHistory, random: Random) -> None:
        super().__init__(name=name, daemon=True)
        self.drains = threading.Event()
        self.ends = threading.Event()
        self._settings = settings
        self._history = history
        self._random = random
        self._epoch = 0
        self._next_beat = 0.0
        self._assigned: set[int] = set()
        self._coordinator: Raw | None = None
        self._sessions: dict[Address, _Session] = {}
        self._place = _Place()
        self._had: set[tuple[int, int]] = set()

    def run(self) -> None:
        """Until `ends` is set."""
        while not self.ends.is_set():
            try:
                self._work()
            except (_Lost, OSError, EOFError):
                self._release_all()
                time.sleep(PAUSE_S)
            except Exception as error:
                self._history.failures.append(f"member {self.name}: {error!r}")
                return
        with suppress(_Lost, OSError, EOFError):
            self._end_sessions()
            self._beat(-1)
        self._release_all()

    def _work(self) -> None:
        self._beat_if_due()
        if not self._place.leaders:
            self._look()
        for address, indexes in self._place.leaders.items():
            mine = [index for index in indexes if index in self._assigned]
            if mine:
                self._fetch(address, mine)
            self._beat_if_due()
        if not self._assigned:
            time.sleep(PAUSE_S)
        odds = self._random.random()
        if self.drains.is_set():
            return
        if odds < LOSES_CONNECTION:
            raise _Lost
        if odds < LOSES_CONNECTION + LEAVES:
            self._end_sessions()
            self._beat(-1)
            self._epoch = 0

    # --- membership

    def _beat_if_due(self) -> None:
        if time.monotonic() >= self._next_beat:
            self._beat(self._epoch)

    def _beat(self, epoch: int) -> None:
        self._next_beat = time.monotonic() + HEARTBEAT_S
        if self._coordinator is None:
            self._coordinator = self._find()
        request = ShareGroupHeartbeatRequest(
            group_id=self._settings.group,
            member_id=self.name,
            member_epoch=epoch,
            subscribed_topic_names=[self._settings.topic] if epoch == 0 else None,
        )
        response = self._coordinator.ask(request, 1)
        if response.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH):
            self._epoch = 0
        elif response.error_code != ErrorCode.NONE:
            raise _Lost
        elif epoch >= 0:
            self._epoch = response.member_epoch
            if response.assignment is not None:
                self._assigned = {one for topic in response.assignment.topic_partitions for one in topic.partitions}

    def _find(self) -> Raw:
        with self._any() as raw:
            request = FindCoordinatorRequest(key_type=0, coordinator_keys=[self._settings.group])
            found = raw.ask(request, FIND_VERSION).coordinators[0]
        if found.error_code != ErrorCode.NONE:
            raise _Lost
        return Raw((found.host, found.port), TIMEOUT_S)

    def _any(self) -> Raw:
        return Raw(self._random.choice(self._settings.addresses), TIMEOUT_S)

    def _look(self) -> None:
        topic = MetadataRequest.MetadataRequestTopic(name=self._settings.topic)
        with self._any() as raw:
            response = raw.ask(MetadataRequest(topics=[topic], allow_auto_topic_creation=False), METADATA_VERSION)
        addresses = {broker.node_id: (broker.host, broker.port) for broker in response.brokers}
        leaders: dict[Address, list[int]] = defaultdict(list)
        for partition in response.topics[0].partitions:
            if partition.leader_id in addresses:
                leaders[addresses[partition.leader_id]].append(partition.partition_index)
        self._place = _Place(response.topics[0].topic_id, dict(leaders))
        if not leaders:
            raise _Lost

    # --- records

    def _fetch(self, address: Address, indexes: Sequence[int]) -> None:
        if address not in self._sessions:
            self._sessions[address] = _Session(Raw(address, TIMEOUT_S))
        session = self._sessions[address]
        partitions = [ShareFetchRequest.FetchPartition(partition_index=index) for index in indexes]
        request = ShareFetchRequest(
            group_id=self._settings.group,
            member_id=self.name,
            share_session_epoch=session.epoch,
            max_wait_ms=FETCH_WAIT_MS,
            min_bytes=1,
            max_records=MAX_RECORDS,
            batch_size=MAX_RECORDS,
            share_acquire_mode=self._random.randrange(2),
            topics=[ShareFetchRequest.FetchTopic(topic_id=self._place.topic_id, partitions=partitions)],
        )
        asked_ns = time.monotonic_ns()
        try:
            response = session.raw.ask(request, VERSION)
        except (OSError, EOFError):
            self._history.lost.append((self.name, Span(asked_ns, time.monotonic_ns())))
            raise
        received_ns = time.monotonic_ns()
        if response.error_code != ErrorCode.NONE:
            raise _Lost
        session.epoch += 1
        data = [one for topic in response.responses for one in topic.partitions]
        said = [each for one in data for each in self._take(session, one, Span(asked_ns, received_ns))]
        now = time.monotonic()
        said += [each for due, each in session.late if due <= now]
        session.late = [(due, each) for due, each in session.late if due > now]
        if said:
            self._acknowledge(session, said, self._history.acknowledgements)
        if self._random.random() < STEALS:
            self._steal(session, indexes)
        if any(one.error_code != ErrorCode.NONE for one in data):
            raise _Lost

    def _steal(self, session: _Session, indexes: Sequence[int]) -> None:
        """In a request of its own: one wrong batch refuses all of a partition. What this member has had it may have."""
        now = time.monotonic_ns()
        for one in reversed(tuple(self._history.kept)):
            index = one.partition[1]
            if index in indexes and (index, one.offset) not in self._had and now < one.until_ns:
                stolen = [_Said(index, one.offset, one.offset, Kind.ACCEPT)]
                self._acknowledge(session, stolen, self._history.thefts)
                return

    def _take(self, session: _Session, data: Any, span: Span) -> list[_Said]:
        """Write down what was acquired of a partition; what will be said of it."""
        values = dict(_values(bytes(data.records or b"")))
        part = (self._settings.topic, data.partition_index)
        said: list[_Said] = []
        for row in data.acquired_records:
            for offset in range(row.first_offset, row.last_offset + 1):
                value = values.get(offset, b"")
                self._had.add((data.partition_index, offset))
                self._history.deliveries.append(Delivery(self.name, part, offset, value, row.delivery_count, *span))
            said += self._say(session, data.partition_index, row)
        return said

    def _say(self, session: _Session, index: int, row: Any) -> list[_Said]:
        """A range in parts, each with something of its own."""
        said: list[_Said] = []
        first, last = row.first_offset, row.last_offset
        while first <= last:
            poison = first + (-first) % POISON_EVERY
            end = min(last, first + self._random.randrange(MAX_RECORDS))
            kind = self._kind(is_again=row.delivery_count > 1)
            if poison == first:
                end, kind = first, Kind.RELEASE
            end = min(end, poison - 1) if poison > first else end
            if kind is not None:
                said.append(_Said(index, first, end, kind))
            else:
                self._keep(session, _Said(index, first, end, Kind.ACCEPT))
            first = end + 1
        return said

    def _keep(self, session: _Session, unsaid: _Said) -> None:
        """Others know of it for half the time of the lock; some of it is said too late."""
        until_ns = time.monotonic_ns() + round(self._settings.lock_s * 1e9 / 2)
        part: Partition = (self._settings.topic, unsaid.partition)
        self._history.kept.append(Kept(self.name, part, unsaid.first, until_ns))
        if self._random.random() < LATE:
            session.late.append((time.monotonic() + self._settings.lock_s + LATE_S, unsaid))

    def _kind(self, *, is_again: bool) -> Kind | None:
        if self.drains.is_set():
            return Kind.ACCEPT
        if is_again and self._random.random() < KEEPS_AGAIN:
            return None
        kinds, weights = zip(*KINDS, strict=True)
        found: Kind | None = self._random.choices(kinds, weights)[0]
        return found

    def _acknowledge(self, session: _Session, said: Sequence[_Said], noted: list[Acknowledgement]) -> None:
        """And write down what became of it."""
        by_index: dict[int, list[Any]] = defaultdict(list)
        for index, first, last, kind in said:
            batch = ShareAcknowledgeRequest.AcknowledgementBatch(
                first_offset=first, last_offset=last, acknowledge_types=[kind.value]
            )
            by_index[index].append(batch)
        partitions = [
            ShareAcknowledgeRequest.AcknowledgePartition(partition_index=index, acknowledgement_batches=batches)
            for index, batches in by_index.items()
        ]
        request = ShareAcknowledgeRequest(
            group_id=self._settings.group,
            member_id=self.name,
            share_session_epoch=session.epoch,
            topics=[ShareAcknowledgeRequest.AcknowledgeTopic(topic_id=self._place.topic_id, partitions=partitions)],
        )
        sent_ns = time.monotonic_ns()
        codes: dict[int, int] = {}
        try:
            response = session.raw.ask(request, VERSION)
            if response.error_code == ErrorCode.NONE:
                codes = {
                    one.partition_index: one.error_code for topic in response.responses for one in topic.partitions
                }
        finally:
            noted += self._outcomes(said, sent_ns, codes)
        if response.error_code != ErrorCode.NONE:
            raise _Lost
        session.epoch += 1

    def _outcomes(self, said: Sequence[_Said], sent_ns: int, codes: dict[int, int]) -> Iterator[Acknowledgement]:
        done_ns = time.monotonic_ns()
        for index, first, last, kind in said:
            code = codes.get(index)
            is_refused = code == ErrorCode.INVALID_RECORD_STATE
            done = done_ns if code == ErrorCode.NONE or is_refused else None
            part: Partition = (self._settings.topic, index)
            for offset in range(first, last + 1):
                yield Acknowledgement(self.name, part, offset, kind, sent_ns, done, is_refused)

    # --- ends

    def _end_sessions(self) -> None:
        """Close each session, which releases what it holds."""
        for session in self._sessions.values():
            if session.epoch:
                self._gave_up()
                request = ShareAcknowledgeRequest(
                    group_id=self._settings.group, member_id=self.name, share_session_epoch=-1
                )
                session.raw.ask(request, VERSION)
        self._close_sessions()

    def _release_all(self) -> None:
        """Lose every connection, which releases what the member holds."""
        self._gave_up()
        self._close_sessions()
        if self._coordinator is not None:
            self._coordinator.socket.close()
        self._coordinator = None
        self._place = _Place()

    def _gave_up(self) -> None:
        now = time.monotonic_ns()
        self._history.given_up.append((self.name, Span(now, now)))

    def _close_sessions(self) -> None:
        for session in self._sessions.values():
            session.raw.socket.close()
        self._sessions = {}


def _values(records: bytes) -> list[tuple[int, bytes]]:
    """The records by offset."""
    return [
        (record.offset, record.value or b"")
        for position, header in iter_batches(records)
        for record in iter_records(records, header, position)
    ]
