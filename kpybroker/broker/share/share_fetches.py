"""Fetches of share groups: reading for what is available, acquiring it for a member, and waiting for more.

Kafka 4.3.1's ``DelayedShareFetch`` and ``ShareFetchUtils``. Each partition that has something to acquire gets an equal
share of the request's bytes. A fetch that finds less than `min_bytes` waits for new records, and for records that are
released; when its time is over it takes what there is. Where all partitions are refused it does not wait, as nothing
would come of it (Kafka waits).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import trio

from kpybroker.broker.loop.steps import Steps
from kpybroker.broker.loop.yielding import YieldBudget
from kpybroker.broker.share.led import LedSharePartition, Waiter
from kpybroker.broker.share.reading import aborted_batches, batches_of, keep_acquired
from kpybroker.core.share.sessions import SharePartitionId
from kpybroker.core.share.values import Acquired, Fetched
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.replication.traffic import TopicTraffic
    from kpybroker.broker.requests.context import RequestContext
    from kpybroker.broker.share.counts import ShareCounts
    from kpybroker.core.budget import Owner
    from kpybroker.core.share.group_settings import ShareGroupSettings
    from kpybroker.core.share.partition import SharePartition
    from kpybroker.storage.disk.slice import FileSlice
    from kpybroker.storage.log.log import Log
    from kpybroker.storage.log.reader import FetchSlice


CUTS_A_ROW: Final = 3
"""A row may be a new batch, or cut runs at both its ends."""


class Begun(Protocol):
    """What a fetch asks of `share_partitions.SharePartitions`."""

    @property
    def counts(self) -> ShareCounts:
        """For the metrics."""

    @property
    def settings_of(self) -> Callable[[str], ShareGroupSettings]:
        """What a group sets now."""

    def begin(self, group_id: str, partition_id: SharePartitionId, topic: str, owner: Owner) -> LedSharePartition:
        """The share partition. Raises KafkaError if it is not led here, or its owner has no room for it."""

    def charge(self, led: LedSharePartition, changes: int) -> None:
        """So many runs may have been cut."""

    def current(self, led: LedSharePartition, machine: SharePartition) -> SharePartition:
        """The machine, with what its group sets now."""

    def arm(self, led: LedSharePartition) -> None:
        """Set the timer for what has been locked."""


class ShareWish(NamedTuple):
    """What one request asks for as a whole. Bytes and milliseconds."""

    group_id: str
    member_id: str
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    is_strict: bool
    """Whether `max_records` is not exceeded for the sake of whole batches (KIP-1206)."""
    client: RequestContext


class Got:
    """What a fetch got of one partition; `records` must be released once it was sent."""

    __slots__ = ("acquired", "error", "records")

    def __init__(self, error: KafkaError | None = None) -> None:
        self.error = error
        self.records: FileSlice | None = None
        self.acquired: list[Acquired] = []


class _Read:
    """One partition, which no other fetch of its group reads until `release`."""

    __slots__ = ("error", "found", "led", "limit", "log", "offset")

    def __init__(self, led: LedSharePartition, offset: int) -> None:
        self.led = led
        self.offset = offset
        self.limit = 0
        self.log: Log | None = None
        self.found: FetchSlice | None = None
        self.error: KafkaError | None = None
        led.is_fetched = True

    @property
    def size(self) -> int:
        return 0 if self.found is None else self.found.size

    def release(self) -> None:
        """Without what was read."""
        self.led.is_fetched = False
        if self.found is not None and self.found.slice is not None:
            self.found.slice.release()
            self.found = None


class ShareFetches:
    """Serves the fetches of share groups at one broker."""

    def __init__(self, host: Host, share_partitions: Begun) -> None:
        self._host = host
        self._share_partitions = share_partitions
        self.waiting = 0
        """Fetches that wait now."""

    def fetch(
        self,
        wish: ShareWish,
        wanted: Sequence[tuple[SharePartitionId, str]],
        before_waiting: Callable[[], None],
    ) -> Steps[dict[SharePartitionId, Got]]:
        """Acquire records of these partitions, by id and topic. Of those that give nothing now, none need be named.

        `before_waiting` is called whenever nothing was acquired, and the fetch is about to wait.
        """
        if not wanted or wish.max_records == 0 or wish.max_bytes == 0:
            return {}
        if wish.max_bytes < 0:
            return {partition_id: Got(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)) for partition_id, _ in wanted}
        got: dict[SharePartitionId, Got] = {}
        leds: dict[SharePartitionId, LedSharePartition] = {}
        budget = YieldBudget(wish.client.connection.may_leave)
        for partition_id, topic in wanted:
            try:
                leds[partition_id] = self._share_partitions.begin(wish.group_id, partition_id, topic, wish.client.owner)
            except KafkaError as error:
                got[partition_id] = Got(error)
            yield from budget.steps()
        waiter, began = Waiter(), trio.current_time()
        named = dict(leds)
        for traffic in _traffic_of(leds.values()):
            traffic.share_counts().fetches += 1
        for led in leds.values():
            led.waiting[waiter] = None
        try:
            yield from self._until_due(wish, leds, got, waiter, before_waiting)
        except BaseException:
            release(got.values())
            raise
        finally:
            for led in leds.values():
                led.waiting.pop(waiter, None)
        for traffic in _traffic_of(led for key, led in named.items() if key in got and got[key].error is not None):
            traffic.share_counts().failed_fetches += 1
        gave_records = sum(1 for one in got.values() if one.acquired)
        self._share_partitions.counts.fetched(wish.group_id, gave_records, len(wanted), trio.current_time() - began)
        return got

    def _until_due(
        self,
        wish: ShareWish,
        leds: dict[SharePartitionId, LedSharePartition],
        got: dict[SharePartitionId, Got],
        waiter: Waiter,
        before_waiting: Callable[[], None],
    ) -> Steps[None]:
        """Put what there is into `got`, once that is enough, or the time is over from the first reads on."""
        deadline = trio.current_time() + max(wish.max_wait_ms, 0) / 1000
        while True:
            _drop_ended(leds, got)
            if not leds:
                return
            waiter.woken.clear()
            if (yield from self._acquire(wish, leds, got, waiter, takes_all=deadline <= trio.current_time())):
                _drop_ended(leds, got)
                return
            before_waiting()
            self.waiting += 1
            try:
                yield from waiter.until_woken(deadline)
                while deadline > trio.current_time():
                    if any(led.error is not None or led.has_more() for led in waiter.take_woken()):
                        break
                    yield from waiter.until_woken(deadline)
            finally:
                self.waiting -= 1

    def _acquire(
        self,
        wish: ShareWish,
        leds: Mapping[SharePartitionId, LedSharePartition],
        got: dict[SharePartitionId, Got],
        waiter: Waiter,
        *,
        takes_all: bool,
    ) -> Steps[bool]:
        """Acquire what there is, if it is enough or must do. Returns whether the fetch has its response."""
        budget = YieldBudget(wish.client.connection.may_leave)
        is_due = False
        reads = {
            partition_id: _Read(led, offset)
            for partition_id, led in leds.items()
            if (offset := led.next_fetch_offset()) is not None
        }
        try:
            yield from self._read(wish, reads, budget)
            is_due = takes_all or _is_enough(reads.values(), wish.min_bytes)
            if not is_due:
                return False
            records_left = wish.max_records
            for partition_id, read in reads.items():
                taken = got[partition_id] = self._take(wish, read, records_left)
                records_left -= sum(row.last - row.first + 1 for row in taken.acquired)
                yield from budget.steps()
            return True
        finally:
            for read in reads.values():
                read.release()
            for read in reads.values():
                led = read.led
                if led.is_contended or (is_due and len(led.waiting) > 1 and led.has_more()):
                    led.is_contended = False
                    led.wake(but=waiter)

    def _read(self, wish: ShareWish, reads: Mapping[SharePartitionId, _Read], budget: YieldBudget) -> Steps[None]:
        self._share_bytes(wish.max_bytes, list(reads.values()))
        settings = self._share_partitions.settings_of(wish.group_id)
        left, takes_one = wish.max_bytes, True
        for read in reads.values():
            try:
                log = read.log = read.led.partition.leader_log()
                bound = log.last_stable_offset if settings.reads_committed else log.high_watermark
                limit = max(min(read.limit, left), 0)
                found = log.read(read.offset, limit, max_offset=bound, min_one_message=takes_one)
                if found.first_entry_incomplete and found.slice is not None:
                    found.slice.release()
                    found = found._replace(slice=None)
                read.found = found
            except KafkaError as error:
                read.error = error
            except LogDirError as error:
                self._host.log_dir_failed(error)
                read.error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
            takes_one = takes_one and not read.size
            left -= read.size
            yield from budget.steps()

    def _share_bytes(self, max_bytes: int, reads: list[_Read]) -> None:
        """As Kafka's uniform strategy: what does not divide goes to one of them, or one byte each to some."""
        if not reads:
            return
        each, rest = divmod(max_bytes, len(reads))
        for read in reads:
            read.limit = each
        if rest:
            first = self._host.random.randrange(len(reads))
            for place in range(first, first + (1 if each else rest)):
                reads[place % len(reads)].limit += rest if each else 1

    def _take(self, wish: ShareWish, read: _Read, records_left: int) -> Got:
        """What the member acquires of what was read. The slice is the response's now, or released."""
        led, machine = read.led, read.led.machine
        if led.error is not None:
            return Got(led.error)
        assert machine is not None
        traffic, error = led.partition.traffic, read.error
        traffic.fetch_requests += 1
        if error is not None:
            if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                traffic.fetch_failed(error.code)
                return Got(error)
            if machine.advance(led.partition.leader_log().log_start_offset):
                led.wake()
            return Got()  # the client asks again
        if read.found is None or read.found.slice is None or read.log is None:
            return Got()
        got, records = Got(), read.found.slice
        try:
            batches = batches_of(records, max(machine.end_offset + 1, read.offset), max(records_left, 0))
            aborted = []
            if self._share_partitions.settings_of(wish.group_id).reads_committed:
                aborted = aborted_batches(read.log, read.found, batches)
            fetched = Fetched(read.offset, [batch.offsets for batch in batches], aborted)
            now = self._host.clock.monotonic()
            machine = self._share_partitions.current(led, machine)
            got.acquired = machine.acquire(wish.member_id, fetched, records_left, wish.batch_size, wish.is_strict, now)
        except KafkaError as error:
            return Got(error)
        except OSError as error:
            failure = LogDirError(read.log.log_dir, error)
            self._host.log_dir_failed(failure)
            return Got(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
        self._share_partitions.arm(led)
        self._share_partitions.charge(led, CUTS_A_ROW * len(got.acquired))
        if got.acquired:
            keep_acquired(records, batches, got.acquired)
            got.records, read.found = records, None
            traffic.bytes_out += records.size
        return got


def _traffic_of(leds: Iterable[LedSharePartition]) -> Iterable[TopicTraffic]:
    """The counts of their topics, each once."""
    return {led.partition.topic: led.partition.traffic for led in leds}.values()


def _is_enough(reads: Iterable[_Read], min_bytes: int) -> bool:
    """Whether a response is due before its time is over."""
    size, count = 0, 0
    for read in reads:
        if read.error is not None or (read.size and read.found is not None and read.found.is_on_older_segment):
            return True
        size += read.size
        count += 1
    return count > 0 and size >= min_bytes


def _drop_ended(leds: dict[SharePartitionId, LedSharePartition], got: dict[SharePartitionId, Got]) -> None:
    """Those that have ended, or never began, are refused."""
    for partition_id, led in list(leds.items()):
        if led.error is not None and partition_id not in got:
            got[partition_id] = Got(led.error)
            del leds[partition_id]


def release(all_got: Iterable[Got]) -> None:
    """Give the file slices back, whether or not they were sent."""
    for got in all_got:
        if got.records is not None:
            got.records.release()
            got.records = None
