"""What share groups hold of the partitions that this broker leads, and the sessions of their members.

The parts of Kafka 4.3.1's ``SharePartitionManager`` and ``SharePartition`` that need the broker: the state is read from
the share coordinator at a partition's first fetch, changes are written to it one after another (what was changed during
a write goes into the next one), locks run out by the broker's clock. A share partition ends when this broker leads its
partition no more, when the coordinator fences it, and when the connection of the group's last member ends.

Differences from Kafka, none of which a client needs: writes of one share partition do not overtake each other; a group
without members ends once its writes have.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from kpybroker.broker.loop.steps import Steps, Wait, run_steps
from kpybroker.broker.share.counts import GroupTimes, ShareCounts
from kpybroker.broker.share.led import CHANGES_MIN, LED_BYTES, Done, LedSharePartition
from kpybroker.broker.share.share_fetches import ShareFetches
from kpybroker.broker.share.start_offset import start_offset
from kpybroker.core.budget import UNOWNED, Owner
from kpybroker.core.features import SHARE_VERSION, Finalized
from kpybroker.core.share.partition import SharePartition
from kpybroker.core.share.sessions import SharePartitionId, ShareSession, ShareSessionCache
from kpybroker.core.share.values import Acknowledgement, Outcome, PersistedState, client_error
from kpybroker.core.share_coordinator.values import (
    UNINITIALIZED_START_OFFSET,
    ReadState,
    SharePartitionKey,
    SharePersister,
    WriteState,
)
from kpybroker.core.timer_heap import TimerHeap
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.replication.partition import Partition
    from kpybroker.broker.replication.replicas import Replicas
    from kpybroker.core.share.archived import ArchivedLog
    from kpybroker.core.share.group_settings import ShareGroupSettings

logger = logging.getLogger("kafka.server.share.SharePartitionManager")

FENCING: Final = frozenset(
    {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
)
"""Errors of a write, as clients get them, after which this broker's view of the share partition counts no more."""
NO_ROOM: Final = (
    "There is no room for another share partition: what this principal or address has here is at its limit."
)
CUTS: Final = 2
"""Each range of an acknowledgement may cut a run at either end."""
ARCHIVED_MAX: Final = 100
"""Share partitions that have ended of which it is kept why records were archived."""


class _Timer(NamedTuple):
    """When a lock may have run out."""

    deadline: float
    led: LedSharePartition


class Acknowledging:
    """The acknowledgements of one request: `errors` by partition, complete after `until_done`, and their `messages`.

    `persist` begins to persist a share partition.
    """

    __slots__ = ("_changed", "_failed", "_missing", "_named", "_persist", "_wait", "errors", "messages")

    def __init__(self, persist: Callable[[LedSharePartition], None]) -> None:
        self._persist = persist
        self._changed: list[LedSharePartition] = []
        self._named: set[str] = set()  # topics, for the metrics
        self._failed: set[str] = set()
        self.errors: dict[SharePartitionId, ErrorCode] = {}
        self.messages: dict[SharePartitionId, str] = {}
        self._missing = 0
        self._wait: Wait | None = None

    def expect(self, partition: SharePartitionId, led: Partition | None) -> Done:
        """What is to be called with the partition's result, once; `led` is the partition if it is led here."""
        self._missing += 1
        if led is not None and led.topic not in self._named:
            self._named.add(led.topic)
            led.traffic.share_counts().acknowledgements += 1

        def done(error: ErrorCode, message: str | None = None) -> None:
            self.errors[partition] = error
            if error is not ErrorCode.NONE:
                self.messages[partition] = message or error.message
                if led is not None and led.topic not in self._failed:
                    self._failed.add(led.topic)
                    led.traffic.share_counts().failed_acknowledgements += 1
            self._missing -= 1
            if not self._missing and self._wait is not None:
                self._wait.end()

        return done

    def changed(self, led: LedSharePartition) -> None:
        """It is to be persisted by `persist`."""
        self._changed.append(led)

    def persist(self) -> None:
        """Begin to persist what was changed, if it has not begun. A fetch of the same request acquires before, as in
        Kafka: what the request releases is for the next one.
        """
        changed, self._changed = self._changed, []
        for led in changed:
            self._persist(led)

    def until_done(self) -> Steps[dict[SharePartitionId, ErrorCode]]:
        """The results, when what they changed is persisted."""
        self.persist()
        if self._missing:
            self._wait = Wait(inf, serves_rest=True)
            yield self._wait
        return self.errors


def _ignore(error: ErrorCode, message: str | None = None) -> None:
    """No one waits for this result."""


class SharePartitions:
    """`settings_of` gives what a group sets now."""

    def __init__(
        self,
        host: Host,
        replicas: Replicas,
        persister: SharePersister,
        settings_of: Callable[[str], ShareGroupSettings],
    ) -> None:
        self._host = host
        self._replicas = replicas
        self._persister = persister
        self.settings_of = settings_of
        self.counts = ShareCounts()
        self.fetches = ShareFetches(host, self)
        self.sessions = ShareSessionCache(host.config.get_int("group.share.max.share.sessions"), host.budget)
        self._led: dict[SharePartitionKey, LedSharePartition] = {}
        self._led_of: dict[str, dict[SharePartitionKey, None]] = {}  # by group
        self._archived: dict[SharePartitionKey, ArchivedLog] = {}  # of those that have ended
        self._timers: TimerHeap[_Timer] = TimerHeap(lambda timer: timer.led.armed_at == timer.deadline)
        self._earlier: trio.Event | None = None  # set when the task for timers sleeps too long; None before it runs

    def __len__(self) -> int:
        return len(self._led)

    @property
    def led(self) -> list[LedSharePartition]:
        """All share partitions that were begun here and have not ended."""
        return list(self._led.values())

    def get(self, key: SharePartitionKey) -> LedSharePartition | None:
        """A share partition that was begun here and has not ended."""
        return self._led.get(key)

    def charge(self, led: LedSharePartition, changes: int) -> None:
        """So many runs of records may have been cut: its owner is charged for them. Nothing is refused, as what may be
        in flight has a limit of its own.
        """
        if led.error is None:
            size = led.size_after(changes)
            self._host.budget.add(led.owner, size - led.charged)
            led.charged = size

    def archived(self, key: SharePartitionKey) -> ArchivedLog | None:
        """Why records of a share partition were archived, if it was led here lately."""
        led = self._led.get(key)
        return self._archived.get(key) if led is None or led.machine is None else led.machine.archived

    # --- the beginning and the end of a share partition

    def begin(
        self, group_id: str, partition_id: SharePartitionId, topic: str, owner: Owner = UNOWNED
    ) -> LedSharePartition:
        """The share partition, whose state is being read if it is new. Raises KafkaError if it is not led here, or if
        its owner has no room for it.
        """
        partition = self._replicas.hosted(topic, partition_id.partition)
        if partition.topic_id != partition_id.topic_id:
            raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID)
        partition.leader_log()
        key = SharePartitionKey(group_id, *partition_id)
        led = self._led.get(key)
        if led is None:
            if not self._host.budget.has_room(owner, LED_BYTES):
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, NO_ROOM)
            led = self._led[key] = LedSharePartition(key, partition, self._lost)
            self._led_of.setdefault(group_id, {})[key] = None
            self.counts.groups.setdefault(group_id, GroupTimes())
            led.owner = owner
            self.charge(led, 0)
            partition.subscribe(led, (partition_id.topic_id, topic, partition_id.partition))
            self._host.spawn("share-group-state-read", self._read, led)
        led.is_idle = False
        return led

    async def _read(self, led: LedSharePartition) -> None:
        group_id, topic_id, index = led.key
        began_s = self._host.clock.monotonic()
        (result,) = await self._persister.read(group_id, [ReadState(topic_id, index, led.leader_epoch)])
        try:
            if result.error is not ErrorCode.NONE:
                raise KafkaError(client_error(result.error), result.error_message)
            start, settings = result.start_offset, self.settings_of(group_id)
            archived = self._archived.pop(led.key, None)
            if start == UNINITIALIZED_START_OFFSET:
                archived = None  # of a group of that name that was deleted
                now_ms, work = self._host.clock.time_ms(), self._host.slow_work.of(("share group", group_id))
                start = await start_offset(led.partition, settings.offset_reset, now_ms, work)
            machine = SharePartition(
                PersistedState(result.state_epoch, start, result.state_batches), settings.partition
            )
        except KafkaError as error:
            logger.debug("Error initializing share partition with key %s: %s", led.key, error)
            self.end(led, error)
        except LogDirError as error:
            self._host.log_dir_failed(error)
            self.end(led, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
        else:
            machine.archived = archived
            led.machine = machine
            self.charge(led, CHANGES_MIN + 1 + len(result.state_batches))  # they are counted
            self.counts.load_ms.record(round(1000 * (self._host.clock.monotonic() - began_s)))
            led.wake()

    def _lost(self, led: LedSharePartition) -> None:
        self.end(led, KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))

    def end(self, led: LedSharePartition, error: KafkaError) -> None:
        """Nothing is acquired from it any more; what was to be written still is."""
        if led.error is not None:
            return
        led.error = error
        del self._led[led.key]
        of_group = self._led_of[led.key.group_id]
        del of_group[led.key]
        if not of_group:
            del self._led_of[led.key.group_id]
            self.counts.groups.pop(led.key.group_id, None)
        if led.machine is not None and led.machine.archived is not None:
            self._archived[led.key] = led.machine.archived
            if len(self._archived) > ARCHIVED_MAX:
                del self._archived[next(iter(self._archived))]
        self._host.budget.add(led.owner, -led.charged)
        led.charged = 0
        led.partition.unsubscribe(led)
        led.armed_at = inf
        led.forget()
        led.wake()

    # --- what members do

    def acknowledge(
        self, group_id: str, member_id: str, batches: Mapping[SharePartitionId, Sequence[Acknowledgement]]
    ) -> Acknowledging:
        """Change what the member holds. The caller has it persisted, in any case."""
        acknowledging, now = Acknowledging(self._persist), self._host.clock.monotonic()
        for partition_id, acknowledgements in batches.items():
            self.counts.count_acknowledgements(acknowledgements)
            led = self._led.get(SharePartitionKey(group_id, *partition_id))
            done = acknowledging.expect(partition_id, None if led is None else led.partition)
            if led is None:
                done(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif led.machine is None:
                done(ErrorCode.INVALID_RECORD_STATE)
            else:
                machine = self.current(led, led.machine)
                if self._queue(led, machine.acknowledge(member_id, acknowledgements, now), done):
                    acknowledging.changed(led)
                self.charge(led, CUTS * sum(len(one.types) for one in acknowledgements))
        return acknowledging

    def release(self, session: ShareSession) -> None:
        """The member's session has ended: release what it holds of the session's partitions."""
        group_id, member_id = session.key
        for key in list(self._led_of.get(group_id, ())):
            led = self._led[key]
            if led.machine is not None and SharePartitionId(key.topic_id, key.partition) in session.partitions:
                self.take(led, self.current(led, led.machine).release_member(member_id))

    def disconnected(self, connection_id: str) -> None:
        """A connection has ended: so do its sessions, and groups whose last member it was."""
        ended = self.sessions.disconnected(connection_id)
        for session in ended.sessions:
            self.release(session)
        for group_id in ended.idle_groups:
            for key in list(self._led_of.get(group_id, ())):
                led = self._led[key]
                led.is_idle = True
                self._end_if_idle(led)

    def _end_if_idle(self, led: LedSharePartition) -> None:
        if led.is_idle and not led.is_writing:
            self.end(led, KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))

    def on_finalized(self, features: Finalized) -> None:
        """After a downgrade share groups are not served: sessions end, and what they hold is released."""
        if features.level(SHARE_VERSION):
            return
        self.sessions.clear()
        for led in self.led:
            self.end(led, KafkaError(ErrorCode.UNSUPPORTED_VERSION))

    # --- the machine's outcomes

    def current(self, led: LedSharePartition, machine: SharePartition) -> SharePartition:
        """The machine, with what its group sets now."""
        settings = self.settings_of(led.key.group_id).partition
        if machine.settings is not settings:
            machine.settings = settings
        return machine

    def take(self, led: LedSharePartition, outcome: Outcome, done: Done = _ignore, message: str | None = None) -> None:
        """Write what there is to write, wake who waits, and set the timer. `done` is called with the final result, and
        the error's message: that of the outcome, or else this one.
        """
        if self._queue(led, outcome, done, message):
            self._persist(led)

    def _queue(self, led: LedSharePartition, outcome: Outcome, done: Done, message: str | None = None) -> bool:
        """As `take`; whether the caller is to begin to write."""
        begins = outcome.write is not None and not led.is_writing
        if outcome.write is None:
            done(outcome.error, outcome.message or message)
        else:
            led.writes.append((outcome.write, done))
            led.is_writing = True
        if outcome.wakes:
            led.wake()
        self.arm(led)
        return begins

    def _persist(self, led: LedSharePartition) -> None:
        begun = run_steps(self._write(led))
        if begun is not None:  # it has to wait for the share coordinator
            self._host.spawn("share-group-state-write", lambda: begun)

    def _write(self, led: LedSharePartition) -> Steps[None]:
        machine = led.machine
        assert machine is not None
        group_id, topic_id, index = led.key
        while led.writes:
            writes = list(led.writes)
            led.writes.clear()
            last = writes[-1][0]
            state = WriteState(
                topic_id,
                index,
                last.state_epoch,
                led.leader_epoch,
                last.start_offset,
                last.delivery_complete_count,
                tuple(batch for write, _ in writes for batch in write.batches),
            )
            (result,) = yield from self._persister.write(group_id, [state])
            now = self._host.clock.monotonic()
            for write, done in writes:
                self.take(led, machine.written(write, result.error, now), done, result.error_message)
            self.charge(led, 0)
            if client_error(result.error) in FENCING:
                logger.info("The share partition with key %s is fenced: %s", led.key, result.error_message)
                self.end(led, KafkaError(client_error(result.error), result.error_message))
        led.is_writing = False
        led.forget()
        self._end_if_idle(led)

    # --- locks that run out

    def arm(self, led: LedSharePartition) -> None:
        """Set the timer for the machine's next deadline, if there is none as early."""
        deadline = None if led.machine is None or led.error is not None else led.machine.next_deadline
        if deadline is None or deadline >= led.armed_at:
            return
        earliest = self._timers.deadline
        led.armed_at = deadline
        self._timers.push(_Timer(deadline, led))
        if self._earlier is None:
            self._earlier = trio.Event()
            self._host.spawn("share-group-lock-timeout", self._run_timers)
        elif earliest is None or deadline < earliest:
            self._earlier.set()

    async def _run_timers(self) -> None:
        clock = self._host.clock
        while True:
            self._earlier = trio.Event()
            deadline = self._timers.deadline
            with clock.move_on_at(inf if deadline is None else deadline):
                await self._earlier.wait()
            self.expire(clock.monotonic())

    def expire(self, now: float) -> None:
        """Release all locks that have run out."""
        while (timer := self._timers.pop(now)) is not None:
            led = timer.led
            if led.armed_at != timer.deadline or led.machine is None or led.error is not None:
                continue
            led.armed_at = inf
            outcome = self.current(led, led.machine).expire(now)
            if outcome.write is not None:
                led.lock_timeouts += sum(last - first + 1 for first, last, _, _ in outcome.write.batches)
            self.take(led, outcome)
