"""The partitions of an internal topic that this broker leads, each with its shard: what the coordinators of groups and
of transactions have in common.

Loading runs in the background, a slice of the log at a time; meanwhile requests are answered
COORDINATOR_LOAD_IN_PROGRESS, and NOT_COORDINATOR before and after. Losing the leadership ends the shard at once. One
task serves the timers of all machines.

Not here: which requests there are (`coordinators.py`, `transactions.py`), the rules (`core`), the topic's creation
(`handlers/find_coordinator`).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic

import trio

from kpybroker.broker.coordinators.shard import AnyOutcome, M, Shard
from kpybroker.broker.loop.yielding import ELEMENT, YieldBudget
from kpybroker.core.offsets.values import coordinator_partition
from kpybroker.storage.disk.errors import LogDirError
from kpybroker.wire.compression import Codec
from kpybroker.wire.errors import ErrorCode, KafkaError, ProtocolError
from kpybroker.wire.records.batch import BatchHeader, iter_batches, verify_crc
from kpybroker.wire.records.record import iter_records

if TYPE_CHECKING:
    from kpybroker.broker.app import Broker
    from kpybroker.broker.replication.partition import Partition
    from kpybroker.wire.records.default_record import Record

KEY_COST = 20
"""Units of a `YieldBudget` that a periodic job costs for each group or transactional id."""


@dataclass(frozen=True, slots=True)
class CoordinatorKind(Generic[M]):
    """What tells the coordinators of one kind from those of the other."""

    topic: str
    partitions_key: str  # how many partitions the topic will have, until it exists
    load_buffer_key: str
    name: str  # [GroupCoordinator 1]
    manager_name: str  # [GroupMetadataManager brokerId=1]
    contents: str  # what is loaded, in words
    log: logging.Logger
    manager_log: logging.Logger
    new_machine: Callable[[int], M]  # for a leader epoch
    encode: Callable[[Any], tuple[bytes, bytes | None]]
    decode: Callable[[bytes, bytes | None], Any]  # None: of a later Kafka. Raises ProtocolError
    codec: Codec
    commit_timeout_s: float
    tasks: dict[str, Callable[[], Awaitable[None]]]  # started with the first partition
    replay_control: Callable[[M, BatchHeader, Record], None] | None = None
    perform: Callable[[Shard[M], Any], None] | None = None


@dataclass(slots=True)
class Loading(Generic[M]):
    """A partition being read; `later` is news for its machine that came meanwhile."""

    leader_epoch: int
    later: list[Callable[[M], None]] = field(default_factory=list)


class CoordinatorPartitions(Generic[M]):
    """All methods run on the loop; none but the `async` ones has a checkpoint."""

    def __init__(self, broker: Broker, kind: CoordinatorKind[M]) -> None:
        self._broker = broker
        self._kind = kind
        self._loading: dict[int, Loading[M]] = {}
        self._has_tasks = False
        self._armed_at = math.inf
        self._wake = trio.Event()
        self.shards: dict[int, Shard[M]] = {}
        self.is_active = True

    # -- who answers for a key -------------------------------------------------------------------------------

    @property
    def partition_count(self) -> int:
        """Of the topic if it exists, else what it will be created with."""
        existing = self._broker.metadata.partition_count(self._kind.topic)
        return existing or self._broker.config.get_int(self._kind.partitions_key)

    def partition_for(self, key: str) -> int:
        return coordinator_partition(key, self.partition_count)

    def shard_for(self, key: str) -> Shard[M]:
        """Raises COORDINATOR_LOAD_IN_PROGRESS or NOT_COORDINATOR."""
        index = self.partition_for(key)
        if index in self._loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        shard = self.shards.get(index)
        if shard is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return shard

    @property
    def is_loading(self) -> bool:
        return bool(self._loading)

    def is_loading_partition(self, index: int) -> bool:
        return index in self._loading

    @property
    def machines(self) -> Iterator[M]:
        return (shard.machine for shard in self.shards.values())

    def tell(self, index: int, news: Callable[[M], None]) -> None:
        """Let the machine of a partition know, at once or when it is loaded."""
        if (loading := self._loading.get(index)) is not None:
            loading.later.append(news)
        elif (shard := self.shards.get(index)) is not None:
            news(shard.machine)

    # -- leadership ------------------------------------------------------------------------------------------

    def on_elected(self, index: int, leader_epoch: int) -> None:
        """This broker leads the partition: read it, then answer for its keys."""
        kind = self._kind
        kind.log.info("[%s]: Elected as the coordinator for partition %d in epoch %d", kind.name, index, leader_epoch)
        shard = self.shards.get(index)
        if shard is not None:
            shard.leader_epoch = max(shard.leader_epoch, leader_epoch)
            return
        loading = self._loading.get(index)
        if loading is not None and loading.leader_epoch >= leader_epoch:
            return
        self._start_tasks()
        loading = self._loading[index] = Loading(leader_epoch)
        self._broker.spawn(f"load {kind.topic}-{index}", self._load, index, loading)

    def on_resigned(self, index: int, leader_epoch: int | None = None) -> None:
        """Another broker leads it now, or nobody; an epoch older than the one it was taken in is ignored."""
        shard, loading = self.shards.get(index), self._loading.get(index)
        current = shard.leader_epoch if shard else loading.leader_epoch if loading else None
        if current is None or (leader_epoch is not None and leader_epoch < current):
            return
        kind = self._kind
        kind.log.info("[%s]: Resigned as the coordinator for partition %d in epoch %s", kind.name, index, leader_epoch)
        self._loading.pop(index, None)
        self.shards.pop(index, None)
        if shard is not None:
            shard.close()

    def stop(self) -> None:
        """The broker goes down: answer whoever waits, take nothing more."""
        self.is_active = False
        for index in list(self.shards):
            self.on_resigned(index)
        self._loading.clear()

    # -- loading ---------------------------------------------------------------------------------------------

    async def _load(self, index: int, loading: Loading[M]) -> None:
        def is_current() -> bool:
            return self._loading.get(index) is loading

        if not is_current():
            return
        kind = self._kind
        started = self._broker.clock.monotonic()
        partition = self._broker.replicas.partition(kind.topic, index)
        if partition is None or partition.log is None:
            kind.manager_log.warning(
                "Attempted to load %s from %s-%d, but found no log", kind.contents, kind.topic, index
            )
            del self._loading[index]
            return
        shard = self._new_shard(partition, loading.leader_epoch)
        try:
            if not await self._read_partition(partition, shard.machine, is_current):
                return
        except KafkaError as error:
            # Kafka goes on with what it has read, and answers with offsets of before, or none.
            kind.manager_log.error(
                "[%s] Cannot load %s from %s, which stays without a coordinator here: %s",
                kind.manager_name,
                kind.contents,
                partition.online_log().directory,
                error,
            )
            self._loading.pop(index, None)
            return
        outcomes = await self._activate(shard, is_current)
        if outcomes is None:
            return
        del self._loading[index]
        self.shards[index] = shard
        for news in loading.later:
            news(shard.machine)
        for outcome in outcomes:
            shard.run(outcome)
        kind.manager_log.info(
            "[%s] Finished loading %s from %s-%d in %d milliseconds for epoch %d, %d of them",
            kind.manager_name,
            kind.contents,
            kind.topic,
            index,
            (self._broker.clock.monotonic() - started) * 1000,
            loading.leader_epoch,
            len(shard.machine.ids()),
        )

    def _new_shard(self, partition: Partition, leader_epoch: int) -> Shard[M]:
        kind = self._kind
        machine = kind.new_machine(leader_epoch)
        return Shard(
            self._broker,
            partition,
            machine,
            leader_epoch=leader_epoch,
            encode=kind.encode,
            codec=kind.codec,
            commit_timeout_s=kind.commit_timeout_s,
            logger=kind.log,
            timers_changed=lambda: self._arm(machine.deadline),
            perform=kind.perform,
        )

    async def _read_partition(self, partition: Partition, machine: M, is_current: Callable[[], bool]) -> bool:
        """Replay everything up to the log's end. False: the leadership was lost on the way.

        The last look at the log's end and the return have no checkpoint between them: nothing is missed. Raises
        KafkaError where the log is damaged, LogDirError.
        """
        buffer_size = self._broker.config.get_int(self._kind.load_buffer_key)
        budget = YieldBudget()
        offset = partition.online_log().log_start_offset
        while is_current():
            stored = partition.online_log()
            if offset >= stored.log_end_offset:
                return True
            found = stored.read(offset, buffer_size, max_offset=stored.log_end_offset, min_one_message=True)
            if found.slice is None:
                return True
            try:
                data = await trio.to_thread.run_sync(found.slice.read)
            except OSError as error:
                raise LogDirError(stored.log_dir, error) from error
            finally:
                found.slice.release()
            last_offset = offset
            for position, header in iter_batches(data):
                if header.next_offset > offset:
                    verify_crc(data, position, header)
                    self._replay_batch(machine, data, position, header)
                    offset = header.next_offset
                await budget.spend(ELEMENT * max(header.records_count, 1))
                if not is_current():
                    return False
            if offset == last_offset:
                return True
        return False

    def _replay_batch(self, machine: M, data: bytes, position: int, header: BatchHeader) -> None:
        kind = self._kind
        if header.is_control:
            for control in iter_records(data, header, position):
                if kind.replay_control is not None:
                    kind.replay_control(machine, header, control)
            return
        producer_id = header.producer_id if header.is_transactional else -1
        for stored in iter_records(data, header, position):
            try:
                record = None if stored.key is None else kind.decode(stored.key, stored.value)
            except ProtocolError as error:
                kind.manager_log.error(
                    "Cannot read the record at offset %d of %s: %s", stored.offset, kind.topic, error
                )
                continue
            if record is None:
                kind.manager_log.warning(
                    "Unknown message key at offset %d while loading %s. Ignoring it. It could be a left over from an "
                    "aborted upgrade.",
                    stored.offset,
                    kind.contents,
                )
                continue
            machine.replay(record, stored.offset, producer_id)

    async def _activate(self, shard: Shard[M], is_current: Callable[[], bool]) -> list[AnyOutcome] | None:
        """Let what was read come alive; None: the leadership was lost on the way."""
        budget = YieldBudget()
        outcomes = []
        for one in shard.machine.ids():
            outcome = shard.machine.activate((one,), shard.now())
            if not outcome.is_empty:
                outcomes.append(outcome)
            await budget.spend()
            if not is_current():
                return None
        return outcomes

    # -- time ------------------------------------------------------------------------------------------------

    def _start_tasks(self) -> None:
        if not self._has_tasks:
            self._has_tasks = True
            self._broker.spawn(f"timers of {self._kind.topic}", self._run_timers)
            for name, task in self._kind.tasks.items():
                self._broker.spawn(name, task)

    def _arm(self, deadline: float | None) -> None:
        """Some machine's next deadline is `deadline`: wake the timers' task if it sleeps past it."""
        if deadline is not None and deadline < self._armed_at:
            self._wake.set()

    async def _run_timers(self) -> None:
        clock = self._broker.clock
        while True:
            deadlines = [machine.deadline for machine in self.machines]
            self._armed_at = min((at for at in deadlines if at is not None), default=math.inf)
            self._wake = trio.Event()
            with trio.move_on_after(max(self._armed_at - clock.monotonic(), 0)):
                await self._wake.wait()
            now = clock.monotonic()
            for shard in list(self.shards.values()):
                deadline = shard.machine.deadline
                if deadline is not None and deadline <= now and not shard.is_closed:
                    shard.expire()

    async def for_each(self, job: Callable[[Shard[M], list[str]], AnyOutcome], at_once: int = 1) -> None:
        """Do `job` for every key there is now, `at_once` at a time, and let others run in between."""
        budget = YieldBudget()
        for shard, keys in [(shard, shard.machine.ids()) for shard in self.shards.values()]:
            for some in _slices(keys, at_once):
                if shard.is_closed:
                    break
                shard.run(job(shard, some))
                await budget.spend(KEY_COST * len(some))


def _slices(keys: list[str], size: int) -> Iterable[list[str]]:
    return (keys[start : start + size] for start in range(0, len(keys), size))
