"""The coordinators of one broker, each built and imported when it is first used: a start needs none of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import trio

from kpybroker.broker.coordinators.group_configs import GroupConfigs
from kpybroker.core import topic_names

if TYPE_CHECKING:
    from kpybroker.broker.cluster.metadata_cache import MetadataCache
    from kpybroker.broker.cluster.producer_ids import ProducerIds
    from kpybroker.broker.cluster.streams_topics import StreamsTopics
    from kpybroker.broker.cluster.topic_admin import TopicAdmin
    from kpybroker.broker.coordinators.groups import GroupCoordinators
    from kpybroker.broker.coordinators.share_states import ShareCoordinators
    from kpybroker.broker.coordinators.transaction_markers import TransactionMarkers
    from kpybroker.broker.coordinators.transaction_verification import TransactionVerifier
    from kpybroker.broker.coordinators.transactions import TransactionCoordinators
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.peers.kept_connections import KeptConnections
    from kpybroker.broker.peers.peers import Peers
    from kpybroker.broker.replication.partition import Partition
    from kpybroker.broker.replication.replicas import Replicas
    from kpybroker.broker.share.share_partitions import SharePartitions
    from kpybroker.core.group.state import Group
    from kpybroker.core.share_coordinator.values import SharePersister
    from kpybroker.core.share_group.state import ShareGroup

NAMED_WAIT_S = 1.0


def _group_coordinators() -> type[GroupCoordinators]:
    """Imported by the first call."""
    from kpybroker.broker.coordinators.groups import GroupCoordinators

    return GroupCoordinators


class Coordinators:
    """`on_elected` and `on_resigned` follow this broker's leaderships."""

    def __init__(
        self,
        host: Host,
        metadata: MetadataCache,
        producer_ids: ProducerIds,
        peers: Peers,
        replicas: Replicas,
        topics: TopicAdmin,
    ) -> None:
        self._host = host
        self._metadata = metadata
        self._producer_ids = producer_ids
        self._peers = peers
        self._replicas = replicas
        self._topics = topics
        self._elected: dict[int, Partition] = {}
        """Partitions of groups that are led here, until `groups` is built."""
        self.group_configs = GroupConfigs(host.config)

    @cached_property
    def groups(self) -> GroupCoordinators:
        """Built by the first request about a group or offset, or soon after this broker leads a partition for them: its
        modules are a tenth of all that a start imports.
        """
        groups = _group_coordinators()(
            self._host, self._metadata, self._replicas, self.group_configs, lambda: self.share_persister
        )
        self._elect_in(groups)
        return groups

    @cached_property
    def transactions(self) -> TransactionCoordinators:
        """Built by the first request about a transaction, or when this broker leads a transaction log."""
        from kpybroker.broker.coordinators.transactions import TransactionCoordinators

        return TransactionCoordinators(self._host, self._metadata, self._replicas, self._producer_ids, self.markers)

    @cached_property
    def markers(self) -> TransactionMarkers:
        """Built when the first transaction ends."""
        from kpybroker.broker.coordinators.transaction_markers import TransactionMarkers

        return TransactionMarkers(
            self._host,
            self._metadata,
            self._replicas,
            self._peers.ask,
            lambda *completed: self.groups.on_transaction_completed(*completed),
        )

    @cached_property
    def verifier(self) -> TransactionVerifier:
        """Built when the first transactional batch arrives."""
        from kpybroker.broker.coordinators.transaction_verification import TransactionVerifier

        return TransactionVerifier(
            self._host, self._metadata, self._replicas, self._peers.ask, lambda: self.transactions
        )

    @cached_property
    def share_states(self) -> ShareCoordinators:
        """Built by the first request about the state of a share partition, or when this broker leads some."""
        from kpybroker.broker.coordinators.share_states import ShareCoordinators

        return ShareCoordinators(self._host, self._metadata, self._replicas)

    @cached_property
    def _share_connections(self) -> KeptConnections:
        return self._peers.kept_connections()

    @cached_property
    def share_persister(self) -> SharePersister:
        """How this broker's share groups and share partitions reach share coordinators, here or on other brokers."""
        from kpybroker.broker.coordinators.share_persister import ShareStatePersister
        from kpybroker.broker.share.unkept import UnkeptStates, keeps_none

        if keeps_none(self._host.config.get_str("group.share.persister.class.name")):
            return UnkeptStates()
        return ShareStatePersister(
            self._host, self._metadata, self._share_connections.ask, self._topics.auto_create, lambda: self.share_states
        )

    @cached_property
    def share_partitions(self) -> SharePartitions:
        """What share groups hold of the partitions led here; built by the first request of a member."""
        from kpybroker.broker.share.share_partitions import SharePartitions

        partitions = SharePartitions(
            self._host, self._replicas, self.share_persister, self.group_configs.of_share_partitions
        )
        self._metadata.on_finalized(partitions.on_finalized)
        return partitions

    @cached_property
    def streams_topics(self) -> StreamsTopics:
        """Creates internal topics of streams groups; built when the first one is missing."""
        from kpybroker.broker.cluster.streams_topics import StreamsTopics

        return StreamsTopics(self._host, self._topics)

    def disconnected(self, connection_id: str) -> None:
        """A client's connection has ended."""
        if "share_partitions" in self.__dict__:
            self.share_partitions.disconnected(connection_id)

    @property
    def loaded_groups(self) -> Iterator[Group]:
        """All groups of this broker; does not build their coordinator."""
        if (groups := self.built_groups) is not None:
            for machine in groups.partitions.machines:
                yield from list(machine.groups.values())

    @property
    def loaded_share_groups(self) -> Iterator[ShareGroup]:
        """All share groups of this broker; does not build their coordinator."""
        if (groups := self.built_groups) is not None:
            for machine in groups.partitions.machines:
                yield from list(machine.shares.groups.values())

    @property
    def built_groups(self) -> GroupCoordinators | None:
        """`groups`, if there was a request or a partition for it yet."""
        return self.__dict__.get("groups")

    @property
    def built_share_partitions(self) -> SharePartitions | None:
        """`share_partitions`, if a member has asked for records yet."""
        return self.__dict__.get("share_partitions")

    @property
    def built_share_states(self) -> ShareCoordinators | None:
        """`share_states`, if there was a request or a partition for it yet."""
        return self.__dict__.get("share_states")

    def on_elected(self, partition: Partition) -> None:
        """This broker leads the partition now: if it belongs to a coordinator's log, the coordinator loads it."""
        if self._awaits_groups(partition):
            if not self._elected:
                self._host.spawn("group-coordinator-startup", self._build_groups, partition)
            self._elected[partition.index] = partition
        elif coordinator := self._coordinator_of(partition):
            coordinator.on_elected(partition.index, partition.leader_epoch)

    def on_resigned(self, partition: Partition) -> None:
        """This broker no longer leads the partition: if a coordinator has it, it is unloaded."""
        if self._awaits_groups(partition):
            self._elected.pop(partition.index, None)
        elif coordinator := self._coordinator_of(partition):
            coordinator.on_resigned(partition.index, partition.leader_epoch)

    def on_topic_deleted(self, topic: str) -> None:
        """Groups lose their offsets in a deleted topic. Where there are none their modules are not loaded for it."""
        if self.built_groups is not None or self._elected:
            self.groups.on_topic_deleted(topic)

    def _awaits_groups(self, partition: Partition) -> bool:
        return partition.topic == topic_names.GROUP_METADATA_TOPIC_NAME and self.built_groups is None

    async def _build_groups(self, partition: Partition) -> None:
        """In a thread, as all requests would wait for the import. Once the metadata here name a leader: while a thread
        works the loop is slow to create 50 partitions, and no client of this broker sees the topic before it has.
        """
        topic, index = partition.topic, partition.index
        await self._metadata.wait_until(lambda snapshot: snapshot.has_leader(topic, index), NAMED_WAIT_S)
        if self._elected:
            await trio.to_thread.run_sync(_group_coordinators)
        if self._elected:
            self._elect_in(self.groups)

    def _elect_in(self, groups: GroupCoordinators) -> None:
        elected, self._elected = self._elected, {}
        for partition in elected.values():
            groups.on_elected(partition.index, partition.leader_epoch)

    def _coordinator_of(
        self, partition: Partition
    ) -> GroupCoordinators | TransactionCoordinators | ShareCoordinators | None:
        match partition.topic:
            case topic_names.GROUP_METADATA_TOPIC_NAME:
                return self.groups
            case topic_names.TRANSACTION_STATE_TOPIC_NAME:
                return self.transactions
            case topic_names.SHARE_GROUP_STATE_TOPIC_NAME:
                return self.share_states
        return None

    def stop(self) -> None:
        """Stop those that were built, and build no more."""
        self._elected.clear()
        if "_share_connections" in self.__dict__:
            self._share_connections.close()
        for name in ("share_states", "transactions", "groups"):
            if name in self.__dict__:
                getattr(self, name).stop()
