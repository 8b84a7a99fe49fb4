"""The coordinators of one broker, each built and imported when it is first used: a start needs none of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import trio

from kpybroker.broker.coordinators.group_configs import GroupConfigs
from kpybroker.core.topic_names import GROUP_METADATA_TOPIC_NAME, TRANSACTION_STATE_TOPIC_NAME

if TYPE_CHECKING:
    from kpybroker.broker.cluster.metadata_cache import MetadataCache
    from kpybroker.broker.cluster.producer_ids import ProducerIds
    from kpybroker.broker.coordinators.groups import GroupCoordinators
    from kpybroker.broker.coordinators.transaction_markers import TransactionMarkers
    from kpybroker.broker.coordinators.transaction_verification import TransactionVerifier
    from kpybroker.broker.coordinators.transactions import TransactionCoordinators
    from kpybroker.broker.loop.host import Host
    from kpybroker.broker.peers.peers import Peers
    from kpybroker.broker.replication.partition import Partition
    from kpybroker.broker.replication.replicas import Replicas
    from kpybroker.core.group.state import Group
    from kpybroker.core.share_coordinator.values import SharePersister

NAMED_WAIT_S = 1.0


def _group_coordinators() -> type[GroupCoordinators]:
    """Imported by the first call."""
    from kpybroker.broker.coordinators.groups import GroupCoordinators

    return GroupCoordinators


class Coordinators:
    """`on_elected` and `on_resigned` follow this broker's leaderships."""

    def __init__(
        self, host: Host, metadata: MetadataCache, producer_ids: ProducerIds, peers: Peers, replicas: Replicas
    ) -> None:
        self._host = host
        self._metadata = metadata
        self._producer_ids = producer_ids
        self._peers = peers
        self._replicas = replicas
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
    def share_persister(self) -> SharePersister:
        """Built when a share group first has a state."""
        raise NotImplementedError("states of share groups are not kept yet")

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

    @property
    def loaded_groups(self) -> Iterator[Group]:
        """All groups of this broker; does not build their coordinator."""
        if (groups := self.built_groups) is not None:
            for machine in groups.partitions.machines:
                yield from list(machine.groups.values())

    @property
    def built_groups(self) -> GroupCoordinators | None:
        """`groups`, if there was a request or a partition for it yet."""
        return self.__dict__.get("groups")

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

    def _awaits_groups(self, partition: Partition) -> bool:
        return partition.topic == GROUP_METADATA_TOPIC_NAME and self.built_groups is None

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

    def _coordinator_of(self, partition: Partition) -> GroupCoordinators | TransactionCoordinators | None:
        if partition.topic == GROUP_METADATA_TOPIC_NAME:
            return self.groups
        return self.transactions if partition.topic == TRANSACTION_STATE_TOPIC_NAME else None

    def stop(self) -> None:
        """Stop those that were built, and build no more."""
        self._elected.clear()
        for name in ("transactions", "groups"):
            if name in self.__dict__:
                getattr(self, name).stop()
