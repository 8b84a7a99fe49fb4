"""The group coordinators of this broker: one shard for each partition of `__consumer_offsets` that it leads.

`partitions` loads them and drives their timers. A task here drops expired offsets. `consumer_groups` does what the
groups of the new protocol ask for.

Not here: the rules of groups (`core.group`), the APIs and the creation of the topic (`handlers`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Any

from kpybroker.broker.coordinators.consumer_groups import ConsumerGroupWork
from kpybroker.broker.coordinators.kind import AnyOutcome, CoordinatorKind, Run
from kpybroker.broker.coordinators.partitions import CoordinatorPartitions
from kpybroker.broker.coordinators.shard import Shard
from kpybroker.broker.coordinators.share_groups import ShareGroupWork, share_surroundings
from kpybroker.broker.requests.log_fields import CURRENT
from kpybroker.config.metadata_versions import at_least
from kpybroker.core.features import CONSUMER_GROUPS_FROM, GROUP_VERSION
from kpybroker.core.group.machine import GroupMachine
from kpybroker.core.group.records import RecordVersions, decode_record, encode_record
from kpybroker.core.group.values import GroupConfig, GroupOverview
from kpybroker.core.modern_group.values import GroupCounts
from kpybroker.core.share_group.values import DeleteStates, InitializeStates
from kpybroker.core.streams_group.values import StreamsSurroundings
from kpybroker.core.topic_names import GROUP_METADATA_TOPIC_NAME
from kpybroker.wire.compression import Codec
from kpybroker.wire.errors import ErrorCode, KafkaError
from kpybroker.wire.records.batch import BatchHeader
from kpybroker.wire.records.control import ControlRecordType, parse_control_type
from kpybroker.wire.records.default_record import Record

if TYPE_CHECKING:
    from kpybroker.broker.cluster.metadata_cache import MetadataCache
    from kpybroker.broker.coordinators.group_configs import GroupConfigs
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.loop.steps import Steps
    from kpybroker.broker.replication.replicas import Replicas
    from kpybroker.broker.requests.context import RequestContext
    from kpybroker.config.broker import BrokerConfig
    from kpybroker.core.share_coordinator.values import SharePersister


class GroupCoordinators:
    """All groups of this broker. All methods run on the loop; none but the `async` ones has a checkpoint."""

    def __init__(
        self,
        host: Host,
        metadata: MetadataCache,
        replicas: Replicas,
        configs: GroupConfigs,
        persister: Callable[[], SharePersister],
    ) -> None:
        self._host = host
        config = host.config
        self.config = group_config(config)
        self._metadata = metadata
        self.allows_consumer_groups = allows_groups(config, "consumer")
        self.allows_streams_groups = allows_groups(config, "streams")
        self._consumers = ConsumerGroupWork(host, metadata.snapshot, configs.of)
        self._shares = ShareGroupWork(host, persister)
        self._share_surroundings = share_surroundings(config, configs.of_share_group)
        self._streams_settings = StreamsSurroundings(config.get_int("group.streams.max.size"), configs.of_streams_group)
        versions = record_versions(config.get_str("inter.broker.protocol.version"))
        kind = CoordinatorKind(
            topic=GROUP_METADATA_TOPIC_NAME,
            partitions_key="offsets.topic.num.partitions",
            load_buffer_key="offsets.load.buffer.size",
            name=f"GroupCoordinator {host.node_id}",
            manager_name=f"GroupMetadataManager brokerId={host.node_id}",
            contents="offsets and group metadata",
            logger=logging.getLogger("kafka.coordinator.group.GroupCoordinator"),
            manager_logger=logging.getLogger("kafka.coordinator.group.GroupMetadataManager"),
            new_machine=self._new_machine,
            encode=partial(encode_record, versions=versions),
            decode=decode_record,
            codec=Codec(config.get_int("offsets.topic.compression.codec")),
            commit_timeout_s=config.get_int("offsets.commit.timeout.ms") / 1000,
            tasks={"delete-expired-group-metadata": self._run_cleanup},
            replay_control=_replay_marker,
            perform=self._perform,
        )
        self.partitions = CoordinatorPartitions(host, metadata, replicas, kind)
        self.on_elected = self.partitions.on_elected
        self.on_resigned = self.partitions.on_resigned
        self.partition_for = self.partitions.partition_for
        self.stop = self.partitions.stop
        metadata.on_topics_named(self._on_topics_named)

    def _new_machine(self, leader_epoch: int) -> GroupMachine:
        """It has the topics before its first heartbeat: members would have to give up what they own in unknown ones."""
        machine = GroupMachine(
            self.config,
            self._host.budget,
            self._consumers.surroundings,
            self._share_surroundings,
            self._streams_settings,
        )
        machine.on_topics_changed(self._consumers.topics, (), has_new=False)
        return machine

    def _perform(self, machine: GroupMachine, effect: Any, run: Run) -> None:
        if isinstance(effect, InitializeStates | DeleteStates):
            self._shares.perform(machine, effect, run)
        else:
            self._consumers.perform(machine, effect, run)

    # --- requests

    @property
    def share_persister(self) -> SharePersister:
        """Asks for the states of share groups' partitions."""
        return self._shares.persister()

    @property
    def assignors(self) -> Collection[str]:
        """The names of the assignors that members of consumer groups may ask for, the default one first."""
        return self._consumers.surroundings.assignors.keys()

    @property
    def counts(self) -> GroupCounts:
        """Of all groups, since the start."""
        return self._consumers.surroundings.counts

    @property
    def keeps_groups_without_offsets(self) -> bool:
        """Whether a group without members stays until the next cleanup when its last offset is deleted, as in Kafka 4;
        in Kafka 3.9 it is removed at once. The finalized level of `group.version` decides.
        """
        return self._metadata.snapshot.features.level(GROUP_VERSION) >= CONSUMER_GROUPS_FROM

    def shard_for(self, group_id: str) -> Shard[GroupMachine]:
        """The shard that holds a group.

        Raises COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS or NOT_COORDINATOR.
        """
        if not self.partitions.is_active:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return self.partitions.shard_for(group_id)

    async def ask(self, request: Any) -> Any:
        """The response of the group's machine. Raises as `shard_for` does."""
        return await self.shard_for(request.group_id).ask(request)

    def reply(self, request: Any, context: RequestContext, *, serves_rest: bool = False) -> Steps[Any]:
        """The same as steps, for what members wait for often and long. `context` is of lines that the machine logs.

        `serves_rest`: a client that closes in a rebalance has sent LeaveGroup after these; else its member would stay
        for a session.
        """
        shard = self.shard_for(request.group_id)
        outer = CURRENT.set(context)
        try:
            reply = shard.begin(request)
        finally:
            CURRENT.reset(outer)
        return (yield from reply.wait(serves_rest=serves_rest)) if reply.result is None else reply.result

    def list_groups(self, states: Collection[str], types: Collection[str]) -> tuple[ErrorCode, list[GroupOverview]]:
        """The groups of this broker with one of these states and types, in any case; an empty filter matches all."""
        if not self.partitions.is_active:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE, []
        wanted_states = {state.lower() for state in states}
        wanted_types = {group_type.lower() for group_type in types}
        groups = [
            group
            for machine in self.partitions.machines
            for group in machine.overviews()
            if (not wanted_states or group.state.lower() in wanted_states)
            and (not wanted_types or group.group_type in wanted_types)
        ]
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if self.partitions.is_loading else ErrorCode.NONE, groups

    # --- events

    def _on_topics_named(self, names: Collection[str]) -> None:
        self.partitions.update_all(self._consumers.follow(self._metadata.snapshot, names))

    def on_transaction_completed(self, producer_id: int, partition_indexes: Collection[int], committed: bool) -> None:
        """The transaction's markers in these partitions of the offsets topic are committed."""
        for index in partition_indexes:
            self.partitions.update(index, lambda machine: machine.replay_marker(producer_id, committed))

    def on_topic_deleted(self, topic: str) -> None:
        """Groups lose their offsets in a deleted topic."""
        if self.partitions.shards:
            self._host.spawn(f"forget offsets of {topic}", self._forget_topic, topic)

    async def _forget_topic(self, topic: str) -> None:
        def forget(shard: Shard[GroupMachine], group_ids: list[str]) -> AnyOutcome:
            topic_id = self._metadata.snapshot.topic_id(topic)
            keeps_group = self.keeps_groups_without_offsets
            return shard.machine.forget_topic(group_ids[0], topic, topic_id, shard.now(), keeps_group=keeps_group)

        await self.partitions.for_each(forget)

    async def _run_cleanup(self) -> None:
        while True:
            await self._host.clock.pause(self._host.config.get_int("offsets.retention.check.interval.ms") / 1000)
            await self.partitions.for_each(lambda shard, keys: shard.machine.cleanup(keys[0], shard.now()))


def _replay_marker(machine: GroupMachine, header: BatchHeader, control: Record) -> None:
    machine.replay_marker(header.producer_id, parse_control_type(control.key) is ControlRecordType.COMMIT)


def group_config(config: BrokerConfig) -> GroupConfig:
    """The broker's settings for groups."""
    return GroupConfig(
        group_min_session_timeout_ms=config.get_int("group.min.session.timeout.ms"),
        group_max_session_timeout_ms=config.get_int("group.max.session.timeout.ms"),
        group_max_size=config.get_int("group.max.size"),
        group_initial_rebalance_delay_ms=config.get_int("group.initial.rebalance.delay.ms"),
        offset_metadata_max_bytes=config.get_int("offset.metadata.max.bytes"),
        offsets_retention_ms=config.get_int("offsets.retention.minutes") * 60 * 1000,
    )


def allows_groups(config: BrokerConfig, protocol: str) -> bool:
    """Whether `group.coordinator.rebalance.protocols` has this kind of groups. Unset it does, though Kafka 3.9's
    default, which DescribeConfigs shows, is `classic`: in Kafka 4 the finalized level of a feature alone decides.
    """
    is_set = "group.coordinator.rebalance.protocols" in config.effective
    return not is_set or protocol in config.get_list("group.coordinator.rebalance.protocols")


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
