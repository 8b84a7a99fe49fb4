"""The partitions of an internal topic that this broker leads, each with its shard, for groups and for transactions.

Loading runs in the background, a slice of the log at a time. While a partition loads, requests are refused with
COORDINATOR_LOAD_IN_PROGRESS; without leadership, with NOT_COORDINATOR. A partition without records is loaded at once.
Losing leadership ends the shard at once. One task serves the timers of all machines.

Not here: which requests there are (`groups`, `transactions`), the rules (`core`), the creation of the topic
(`handlers`).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic

import trio

from kpybroker.broker.coordinators.kind import AnyOutcome, CoordinatorKind, M
from kpybroker.broker.coordinators.shard import Shard
from kpybroker.broker.loop.steps import run_to_end
from kpybroker.broker.loop.yielding import ELEMENT, YieldBudget, paced, read_in_thread
from kpybroker.core.offsets.values import coordinator_partition
from kpybroker.wire.errors import ErrorCode, KafkaError, ProtocolError
from kpybroker.wire.records.batch import BatchHeader, iter_batches, verify_crc
from kpybroker.wire.records.record import iter_records

if TYPE_CHECKING:
    from kpybroker.broker.cluster.metadata_cache import MetadataCache
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.replication.partition import Partition
    from kpybroker.broker.replication.replicas import Replicas

LOADS_KEPT = 1_000
BYTES_PER_UNIT = 100
"""Of a value that is read: a classic group is one record, whatever the number of its members."""
KEY_COST = 20
"""Units of a `YieldBudget` that a periodic job costs for each group or transactional id."""


def _is_empty(partition: Partition) -> bool:
    """Whether it has no records, as that of a new topic."""
    log = partition.log
    return log is not None and log.log_start_offset == log.log_end_offset


@dataclass(slots=True)
class Loading(Generic[M]):
    """A partition that is being read; `updates` arrived for its machine in the meantime."""

    leader_epoch: int
    updates: list[Callable[[M], None]] = field(default_factory=list)


class CoordinatorPartitions(Generic[M]):
    """All methods run on the loop; none but the `async` ones has a checkpoint."""

    def __init__(self, host: Host, metadata: MetadataCache, replicas: Replicas, kind: CoordinatorKind[M]) -> None:
        self._host = host
        self._metadata = metadata
        self._replicas = replicas
        self._kind = kind
        self._loading: dict[int, Loading[M]] = {}
        self._has_tasks = False
        self._armed_at = math.inf
        self._wake = trio.Event()
        self.shards: dict[int, Shard[M]] = {}
        self.failed: set[int] = set()
        """Partitions that are led here and could not be loaded."""
        self.loads: deque[tuple[float, float]] = deque(maxlen=LOADS_KEPT)
        """When the last loads ended, by the monotonic clock, and the seconds that each took."""
        self.is_active = True

    # --- the shard of a key

    @property
    def partition_count(self) -> int:
        """The topic's partitions, or how many it will be created with."""
        existing = self._metadata.partition_count(self._kind.topic)
        return existing or self._host.config.get_int(self._kind.partitions_key)

    def partition_for(self, key: str) -> int:
        """The partition that holds a group or transactional id."""
        return coordinator_partition(key, self.partition_count)

    def shard_for(self, key: str) -> Shard[M]:
        """The shard that holds a key. Raises COORDINATOR_LOAD_IN_PROGRESS or NOT_COORDINATOR."""
        return self.shard_at(self.partition_for(key))

    def shard_at(self, index: int) -> Shard[M]:
        """The shard of a partition. Raises as `shard_for`."""
        if index in self._loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        shard = self.shards.get(index)
        if shard is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return shard

    @property
    def is_loading(self) -> bool:
        """Whether any partition is being loaded."""
        return bool(self._loading)

    @property
    def loading(self) -> int:
        """How many partitions are being loaded."""
        return len(self._loading)

    @property
    def machines(self) -> Iterator[M]:
        """Of all partitions that are loaded."""
        return (shard.machine for shard in list(self.shards.values()))

    def update(self, index: int, change: Callable[[M], None]) -> None:
        """Change the machine of a partition, at once or when it is loaded; nothing if it is not led here."""
        if (loading := self._loading.get(index)) is not None:
            loading.updates.append(change)
        elif (shard := self.shards.get(index)) is not None:
            change(shard.machine)

    def update_all(self, change: Callable[[M], None]) -> None:
        """Change the machines of all partitions that are led here, each at once or when it is loaded."""
        for index in [*self._loading, *self.shards]:
            self.update(index, change)

    # --- leadership

    def on_elected(self, index: int, leader_epoch: int) -> None:
        """This broker leads the partition: load it, then serve its keys."""
        kind = self._kind
        kind.logger.info(
            "[%s]: Elected as the coordinator for partition %d in epoch %d", kind.name, index, leader_epoch
        )
        shard = self.shards.get(index)
        if shard is not None:
            shard.leader_epoch = max(shard.leader_epoch, leader_epoch)
            return
        loading = self._loading.get(index)
        if loading is not None and loading.leader_epoch >= leader_epoch:
            return
        self._start_tasks()
        self.failed.discard(index)
        loading = self._loading[index] = Loading(leader_epoch)
        partition = self._replicas.partition(kind.topic, index)
        if partition is not None and _is_empty(partition):
            shard = Shard(self._host, kind, partition, leader_epoch, self._arm)
            self._serve(index, loading, shard, self._host.clock.monotonic())
        else:
            self._host.spawn(f"load {kind.topic}-{index}", self._load, index, loading)

    def on_resigned(self, index: int, leader_epoch: int | None = None) -> None:
        """This broker does not lead the partition any more. An epoch older than its election's is ignored."""
        self.failed.discard(index)
        shard, loading = self.shards.get(index), self._loading.get(index)
        current = shard.leader_epoch if shard else loading.leader_epoch if loading else None
        if current is None or (leader_epoch is not None and leader_epoch < current):
            return
        kind = self._kind
        kind.logger.info(
            "[%s]: Resigned as the coordinator for partition %d in epoch %s", kind.name, index, leader_epoch
        )
        self._loading.pop(index, None)
        self.shards.pop(index, None)
        if shard is not None:
            shard.close()

    def stop(self) -> None:
        """The broker shuts down: reply to all pending requests and take no more."""
        self.is_active = False
        for index in list(self.shards):
            self.on_resigned(index)
        self._loading.clear()

    # --- loading

    async def _load(self, index: int, loading: Loading[M]) -> None:
        def is_current() -> bool:
            return self._loading.get(index) is loading

        if not is_current():
            return
        kind = self._kind
        started = self._host.clock.monotonic()
        partition = self._replicas.partition(kind.topic, index)
        if partition is None or partition.log is None:
            kind.manager_logger.warning(
                "Attempted to load %s from %s-%d, but found no log", kind.contents, kind.topic, index
            )
            del self._loading[index]
            return
        shard = Shard(self._host, kind, partition, loading.leader_epoch, self._arm)
        try:
            if not await self._read_partition(partition, shard.machine, is_current):
                return
        except KafkaError as error:
            # Kafka continues with what it has read, and serves old offsets, or none.
            kind.manager_logger.error(
                "[%s] Cannot load %s from %s, which stays without a coordinator here: %s",
                kind.manager_name,
                kind.contents,
                partition.online_log().directory,
                error,
            )
            if is_current():
                del self._loading[index]
                self.failed.add(index)
            return
        outcomes = await self._activate(shard, is_current)
        if outcomes is None:
            return
        self._serve(index, loading, shard, started)
        for outcome in outcomes:
            shard.run(outcome)

    def _serve(self, index: int, loading: Loading[M], shard: Shard[M], started: float) -> None:
        """The partition is loaded."""
        kind = self._kind
        del self._loading[index]
        self.shards[index] = shard
        for change in loading.updates:
            change(shard.machine)
        self._arm(shard.machine.deadline)  # there may be no request for a long time, and members that are gone
        ended = self._host.clock.monotonic()
        self.loads.append((ended, ended - started))
        kind.manager_logger.info(
            "[%s] Finished loading %s from %s-%d in %d milliseconds for epoch %d, %d of them",
            kind.manager_name,
            kind.contents,
            kind.topic,
            index,
            (ended - started) * 1000,
            loading.leader_epoch,
            len(shard.machine.ids()),
        )

    async def _read_partition(self, partition: Partition, machine: M, is_current: Callable[[], bool]) -> bool:
        """Replay everything up to the log's end. False if leadership was lost on the way.

        There is no checkpoint between the last look at the log's end and the return, so nothing is missed. Raises
        KafkaError if the log is damaged, LogDirError.
        """
        buffer_size = self._host.config.get_int(self._kind.load_buffer_key)
        budget = YieldBudget()
        offset = partition.online_log().log_start_offset
        while is_current():
            stored = partition.online_log()
            if offset >= stored.log_end_offset:
                return True
            found = stored.read(offset, buffer_size, max_offset=stored.log_end_offset, min_one_message=True)
            if found.slice is None:
                return True
            data = await read_in_thread(stored.log_dir, found.slice)
            last_offset = offset
            for position, header in iter_batches(data):
                if header.next_offset > offset:
                    verify_crc(data, position, header)
                    await self._replay_batch(machine, data, position, header, budget)
                    offset = header.next_offset
                await budget.spend()
                if not is_current():
                    return False
            if offset == last_offset:
                return True
        return False

    async def _replay_batch(
        self, machine: M, data: bytes, position: int, header: BatchHeader, budget: YieldBudget
    ) -> None:
        kind = self._kind
        if header.is_control:
            for control in iter_records(data, header, position, read_headers_max=0):
                if kind.replay_control is not None:
                    kind.replay_control(machine, header, control)
            return
        producer_id = header.producer_id if header.is_transactional else -1
        for stored in iter_records(data, header, position, read_headers_max=0):
            if budget.is_spent(ELEMENT + len(stored.value or b"") // BYTES_PER_UNIT):
                await budget.next_slice()
            try:
                record = None if stored.key is None else kind.decode(stored.key, stored.value)
            except ProtocolError as error:
                kind.manager_logger.error(
                    "Cannot read the record at offset %d of %s: %s", stored.offset, kind.topic, error
                )
                continue
            if record is None:
                kind.manager_logger.warning(
                    "Unknown message key at offset %d while loading %s. Ignoring it. It could be a left over from an "
                    "aborted upgrade.",
                    stored.offset,
                    kind.contents,
                )
                continue
            machine.replay(record, stored.offset, producer_id)

    async def _activate(self, shard: Shard[M], is_current: Callable[[], bool]) -> list[AnyOutcome] | None:
        """Start the timers of everything that was read. None if leadership was lost on the way."""
        budget = YieldBudget()
        outcomes = []
        for one in shard.machine.ids():
            outcome = await run_to_end(paced(shard.machine.activate((one,), shard.now(), budget)))
            if not outcome.is_empty:
                outcomes.append(outcome)
            if not is_current():
                return None
        return outcomes

    # --- timers

    def _start_tasks(self) -> None:
        if not self._has_tasks:
            self._has_tasks = True
            self._host.spawn(f"timers of {self._kind.topic}", self._run_timers)
            for name, task in self._kind.tasks.items():
                self._host.spawn(name, task)

    def _arm(self, deadline: float | None) -> None:
        """Wake the task for timers if it would sleep past this deadline."""
        if deadline is not None and deadline < self._armed_at:
            self._wake.set()

    async def _run_timers(self) -> None:
        clock = self._host.clock
        while True:
            deadlines = [machine.deadline for machine in self.machines]
            self._armed_at = min((at for at in deadlines if at is not None), default=math.inf)
            self._wake = trio.Event()
            with clock.move_on_at(self._armed_at):
                await self._wake.wait()
            now = clock.monotonic()
            for shard in list(self.shards.values()):
                deadline = shard.machine.deadline
                if deadline is not None and deadline <= now and not shard.is_closed:
                    shard.expire()

    async def for_each(self, job: Callable[[Shard[M], list[str]], AnyOutcome], at_once: int = 1) -> None:
        """Run `job` for every key there is now, `at_once` at a time; other tasks run every few milliseconds."""
        budget = YieldBudget()
        for shard, keys in [(shard, shard.machine.ids()) for shard in self.shards.values()]:
            for some in _slices(keys, at_once):
                if shard.is_closed:
                    break
                shard.run(job(shard, some))
                await budget.spend(KEY_COST * len(some))


def _slices(keys: list[str], size: int) -> Iterable[list[str]]:
    return (keys[start : start + size] for start in range(0, len(keys), size))
