"""The group coordinators of this broker: one shard for each partition of `__consumer_offsets` that it leads.

Loading runs in the background, a slice of the log at a time; meanwhile requests for its groups are answered
COORDINATOR_LOAD_IN_PROGRESS, and NOT_COORDINATOR before and after. Losing the leadership ends the shard at
once. Two tasks serve all shards: one for their timers, one for the periodic cleanup of expired offsets.

Not here: the rules of groups (`core/group`), the APIs (`handlers`), the topic's creation
(`handlers/find_coordinator`).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import trio

from kpybroker.broker.coordinator_shard import Shard
from kpybroker.config.metadata_versions import at_least
from kpybroker.core.group.machine import GroupMachine
from kpybroker.core.group.records import Record, RecordVersions, decode_record, encode_record
from kpybroker.core.group.step import GroupOutcome, GroupStep
from kpybroker.core.group.values import CLASSIC_GROUP_TYPE, GroupConfig, GroupOverview
from kpybroker.core.offsets.values import coordinator_partition
from kpybroker.wire.compression import Codec
from kpybroker.wire.errors import ErrorCode, KafkaError, ProtocolError
from kpybroker.wire.records.batch import BatchHeader, iter_batches
from kpybroker.wire.records.control import ControlRecordType, parse_control_type
from kpybroker.wire.records.record import iter_records

if TYPE_CHECKING:
    from kpybroker.broker.app import Broker
    from kpybroker.broker.partition import Partition
    from kpybroker.config.broker import BrokerConfig

log = logging.getLogger("kafka.coordinator.group.GroupCoordinator")
manager_log = logging.getLogger("kafka.coordinator.group.GroupMetadataManager")

GROUP_METADATA_TOPIC = "__consumer_offsets"
SLICE_SECONDS = 0.005  # how long a task that walks many groups or records holds the loop

GroupShard = Shard[Record, GroupStep]


@dataclass(slots=True)
class Loading:
    """A partition being read; `ended` are transactions whose markers came meanwhile."""

    leader_epoch: int
    ended: list[tuple[int, bool]] = field(default_factory=list)


class GroupCoordinators:
    """`broker.groups`. All methods run on the loop; none but the `async` ones has a checkpoint."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        config = broker.config
        self.config = group_config(config)
        self._versions = record_versions(config.get_str("inter.broker.protocol.version"))
        self._codec = Codec(config.get_int("offsets.topic.compression.codec"))
        self._commit_timeout_s = config.get_int("offsets.commit.timeout.ms") / 1000
        self._shards: dict[int, GroupShard] = {}
        self._machines: dict[int, GroupMachine] = {}
        self._loading: dict[int, Loading] = {}
        self._has_tasks = False
        self._is_active = True
        self._armed_at = math.inf
        self._wake = trio.Event()

    # -- who answers for a group -----------------------------------------------------------------------------

    @property
    def partition_count(self) -> int:
        """Of the topic if it exists, else what it will be created with."""
        existing = self._broker.metadata.partition_count(GROUP_METADATA_TOPIC)
        return existing or self._broker.config.get_int("offsets.topic.num.partitions")

    def partition_for(self, group_id: str) -> int:
        return coordinator_partition(group_id, self.partition_count)

    def shard_for(self, group_id: str) -> GroupShard:
        """Raises COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS or NOT_COORDINATOR."""
        if not self._is_active:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        index = self.partition_for(group_id)
        if index in self._loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        shard = self._shards.get(index)
        if shard is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return shard

    async def ask(self, request: Any) -> Any:
        """The answer of the group's machine. Raises as `shard_for` does."""
        return await self.shard_for(request.group_id).ask(request)

    def list_groups(self, states: Collection[str], types: Collection[str]) -> tuple[ErrorCode, list[GroupOverview]]:
        """Groups of this broker in one of the states and of one of the types, either empty for any."""
        if not self._is_active:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE, []
        wanted_states = {state.lower() for state in states}
        wanted_types = {group_type.lower() for group_type in types}
        groups: list[GroupOverview] = []
        if not wanted_types or CLASSIC_GROUP_TYPE in wanted_types:
            groups = [
                group
                for machine in self._machines.values()
                for group in machine.overviews()
                if not wanted_states or group.state.lower() in wanted_states
            ]
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if self._loading else ErrorCode.NONE, groups

    # -- leadership ------------------------------------------------------------------------------------------

    def on_elected(self, partition_index: int, leader_epoch: int) -> None:
        """This broker leads the partition: read it, then answer for its groups."""
        log.info(
            "[GroupCoordinator %d]: Elected as the group coordinator for partition %d in epoch %d",
            self._broker.node_id,
            partition_index,
            leader_epoch,
        )
        shard = self._shards.get(partition_index)
        if shard is not None:
            shard.leader_epoch = max(shard.leader_epoch, leader_epoch)
            return
        loading = self._loading.get(partition_index)
        if loading is not None and loading.leader_epoch >= leader_epoch:
            return
        self._start_tasks()
        self._loading[partition_index] = Loading(leader_epoch)
        self._broker.spawn(f"group-metadata-manager-{partition_index}", self._load, partition_index, leader_epoch)

    def on_resigned(self, partition_index: int, leader_epoch: int | None = None) -> None:
        """Another broker leads it now, or nobody; an epoch older than the one it was taken in is ignored."""
        shard, loading = self._shards.get(partition_index), self._loading.get(partition_index)
        current = shard.leader_epoch if shard else loading.leader_epoch if loading else None
        if current is None or (leader_epoch is not None and leader_epoch < current):
            return
        log.info(
            "[GroupCoordinator %d]: Resigned as the group coordinator for partition %d in epoch %s",
            self._broker.node_id,
            partition_index,
            leader_epoch,
        )
        self._loading.pop(partition_index, None)
        self._shards.pop(partition_index, None)
        self._machines.pop(partition_index, None)
        if shard is not None:
            shard.close()

    def stop(self) -> None:
        """The broker goes down: answer whoever waits, take nothing more."""
        self._is_active = False
        for partition_index in list(self._shards):
            self.on_resigned(partition_index)
        self._loading.clear()

    # -- loading ---------------------------------------------------------------------------------------------

    async def _load(self, partition_index: int, leader_epoch: int) -> None:
        loading = self._loading.get(partition_index)
        if loading is None or loading.leader_epoch != leader_epoch:
            return
        started = self._broker.clock.monotonic()
        partition = self._broker.replicas.partition(GROUP_METADATA_TOPIC, partition_index)
        if partition is None or partition.log is None:
            manager_log.warning(
                "Attempted to load offsets and group metadata from %s-%d, but found no log",
                GROUP_METADATA_TOPIC,
                partition_index,
            )
            del self._loading[partition_index]
            return
        machine = GroupMachine(self.config)
        shard: GroupShard = Shard(
            self._broker,
            partition,
            machine,
            leader_epoch=leader_epoch,
            encode=partial(encode_record, versions=self._versions),
            codec=self._codec,
            commit_timeout_s=self._commit_timeout_s,
            logger=log,
            timers_changed=lambda: self._arm(machine.deadline),
        )

        def is_current() -> bool:
            return self._loading.get(partition_index) is loading

        if not await self._read_partition(partition, machine, is_current):
            return
        outcomes = await self._revive(machine, shard, is_current)
        if outcomes is None:
            return
        del self._loading[partition_index]
        self._shards[partition_index] = shard
        self._machines[partition_index] = machine
        for producer_id, committed in loading.ended:
            machine.replay_marker(producer_id, committed)
        for outcome in outcomes:
            shard.run(outcome)
        manager_log.info(
            "[GroupMetadataManager brokerId=%d] Finished loading offsets and group metadata from %s-%d in %d "
            "milliseconds for epoch %d, %d groups",
            self._broker.node_id,
            GROUP_METADATA_TOPIC,
            partition_index,
            (self._broker.clock.monotonic() - started) * 1000,
            leader_epoch,
            len(machine.groups),
        )

    async def _read_partition(
        self, partition: Partition, machine: GroupMachine, is_current: Callable[[], bool]
    ) -> bool:
        """Replay everything up to the log's end. False: the leadership was lost on the way.

        The last look at the log's end and the return have no checkpoint between them: nothing is missed.
        """
        buffer_size = self._broker.config.get_int("offsets.load.buffer.size")
        pause = _Pause(self._broker.clock.monotonic)
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
            finally:
                found.slice.release()
            last_offset = offset
            for position, header in iter_batches(data):
                if header.next_offset > offset:
                    self._replay_batch(machine, data, position, header)
                    offset = header.next_offset
                await pause.maybe()
                if not is_current():
                    return False
            if offset == last_offset:
                return True
        return False

    def _replay_batch(self, machine: GroupMachine, data: bytes, position: int, header: BatchHeader) -> None:
        if header.is_control:
            for control in iter_records(data, header, position):
                is_commit = parse_control_type(control.key) is ControlRecordType.COMMIT
                machine.replay_marker(header.producer_id, is_commit)
            return
        producer_id = header.producer_id if header.is_transactional else -1
        for stored in iter_records(data, header, position):
            try:
                record = None if stored.key is None else decode_record(stored.key, stored.value)
            except ProtocolError as error:
                manager_log.error(
                    "Cannot read the record at offset %d of %s: %s",
                    stored.offset,
                    GROUP_METADATA_TOPIC,
                    error,
                )
                continue
            if record is None:
                manager_log.warning(
                    "Unknown message key at offset %d while loading offsets and group metadata. Ignoring it. "
                    "It could be a left over from an aborted upgrade.",
                    stored.offset,
                )
                continue
            machine.replay(record, stored.offset, producer_id)

    async def _revive(
        self, machine: GroupMachine, shard: GroupShard, is_current: Callable[[], bool]
    ) -> list[GroupOutcome] | None:
        """Let the groups come alive; None: the leadership was lost on the way."""
        pause = _Pause(self._broker.clock.monotonic)
        outcomes = []
        for group_id in list(machine.groups):
            outcome = machine.revive((group_id,), shard.now())
            if not outcome.is_empty:
                outcomes.append(outcome)
            await pause.maybe()
            if not is_current():
                return None
        return outcomes

    # -- news from elsewhere ---------------------------------------------------------------------------------

    def on_transaction_completed(self, producer_id: int, partition_indexes: Collection[int], committed: bool) -> None:
        """The transaction's markers in these partitions of the offsets topic are committed."""
        for index in partition_indexes:
            if (loading := self._loading.get(index)) is not None:
                loading.ended.append((producer_id, committed))
            elif (machine := self._machines.get(index)) is not None:
                machine.replay_marker(producer_id, committed)

    def on_topic_deleted(self, topic: str) -> None:
        """Groups lose their offsets in a topic that is gone."""
        if self._shards:
            self._broker.spawn(f"forget offsets of {topic}", self._forget_topic, topic)

    async def _forget_topic(self, topic: str) -> None:
        await self._for_each_group(lambda machine, group_id, shard: machine.forget_topic(group_id, topic, shard.now()))

    # -- the two tasks ---------------------------------------------------------------------------------------

    def _start_tasks(self) -> None:
        if not self._has_tasks:
            self._has_tasks = True
            self._broker.spawn("group-coordinator-timers", self._run_timers)
            self._broker.spawn("delete-expired-group-metadata", self._run_cleanup)

    def _arm(self, deadline: float | None) -> None:
        """Some machine's next deadline is `deadline`: wake the timers' task if it sleeps past it."""
        if deadline is not None and deadline < self._armed_at:
            self._wake.set()

    async def _run_timers(self) -> None:
        clock = self._broker.clock
        while True:
            deadlines = [machine.deadline for machine in self._machines.values()]
            self._armed_at = min((at for at in deadlines if at is not None), default=math.inf)
            self._wake = trio.Event()
            with trio.move_on_after(max(self._armed_at - clock.monotonic(), 0)):
                await self._wake.wait()
            now = clock.monotonic()
            for shard in list(self._shards.values()):
                deadline = shard.machine.deadline
                if deadline is not None and deadline <= now and not shard.is_closed:
                    shard.expire()

    async def _run_cleanup(self) -> None:
        while True:
            await trio.sleep(self._broker.config.get_int("offsets.retention.check.interval.ms") / 1000)
            await self._for_each_group(lambda machine, group_id, shard: machine.cleanup(group_id, shard.now()))

    async def _for_each_group(self, job: Callable[[GroupMachine, str, GroupShard], GroupOutcome]) -> None:
        """Do `job` for every group there is now, and give way to others every few milliseconds."""
        pause = _Pause(self._broker.clock.monotonic)
        for shard, machine, group_id in list(self._all_groups()):
            if not shard.is_closed:
                shard.run(job(machine, group_id, shard))
            await pause.maybe()

    def _all_groups(self) -> Iterator[tuple[GroupShard, GroupMachine, str]]:
        for index, machine in self._machines.items():
            shard = self._shards[index]
            for group_id in machine.groups:
                yield shard, machine, group_id


class _Pause:
    """Gives way to other tasks when `SLICE_SECONDS` have passed since it last did."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._since = monotonic()

    async def maybe(self) -> None:
        if self._monotonic() - self._since >= SLICE_SECONDS:
            await trio.lowlevel.checkpoint()
            self._since = self._monotonic()


def group_config(config: BrokerConfig) -> GroupConfig:
    return GroupConfig(
        group_min_session_timeout_ms=config.get_int("group.min.session.timeout.ms"),
        group_max_session_timeout_ms=config.get_int("group.max.session.timeout.ms"),
        group_max_size=config.get_int("group.max.size"),
        group_initial_rebalance_delay_ms=config.get_int("group.initial.rebalance.delay.ms"),
        offset_metadata_max_bytes=config.get_int("offset.metadata.max.bytes"),
        offsets_retention_ms=config.get_int("offsets.retention.minutes") * 60 * 1000,
    )


def record_versions(inter_broker_protocol_version: str) -> RecordVersions:
    """The value versions every broker of the cluster can read (GroupMetadataManager's companion object)."""
    version = inter_broker_protocol_version
    return RecordVersions(
        offset_commit_value=3 if at_least(version, "2.1-IV1") else 2 if at_least(version, "2.1-IV0") else 1,
        group_metadata_value=(
            3
            if at_least(version, "2.3-IV0")
            else 2
            if at_least(version, "2.1-IV0")
            else 1
            if at_least(version, "0.10.1-IV0")
            else 0
        ),
    )
