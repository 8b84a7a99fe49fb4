"""The controller's state in memory: Kafka's `ControllerContext`.

Plain mutable state, owned by one `Controller` and changed only inside its procedures. Counters for metrics
(`offline_partition_count`) are updated with each change, not counted on demand.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Set

from kpybroker.core.controller.model import (
    EPOCH_DURING_DELETE,
    NO_ASSIGNMENT,
    NO_EPOCH,
    LeaderIsrAndControllerEpoch,
    PartitionAndReplica,
    PartitionState,
    ReplicaAssignment,
    ReplicaState,
)
from kpybroker.core.topic_partition import TopicPartition, shared
from kpybroker.wire.znodes import BrokerRegistration


class ControllerContext:
    """What the controller knows of brokers, topics, leadership, and states of partitions and replicas."""

    __slots__ = (
        "all_topics",
        "epoch",
        "epoch_zk_version",
        "is_traced",
        "leaderless",
        "live_broker_epochs",
        "live_brokers",
        "offline_partition_count",
        "partition_assignments",
        "partition_leadership_info",
        "partition_states",
        "partitions_being_reassigned",
        "replica_states",
        "replicas_on_offline_dirs",
        "shutting_down_broker_ids",
        "topic_ids",
        "topic_names",
        "topics_ineligible_for_deletion",
        "topics_to_be_deleted",
        "topics_with_deletion_started",
        "unclean_elections",
    )

    def __init__(self, leaderless: Set[TopicPartition] = frozenset()) -> None:
        self.unclean_elections = 0
        """Leaders elected outside the ISR, in all terms of this broker."""
        self.leaderless = leaderless
        """No leader is elected for these, whatever asks for one. A test may change the set at any time."""
        self.is_traced = False
        """Whether the state-change log has lines at TRACE, one for each change of a partition or replica."""
        self.reset()

    def reset(self) -> None:
        """Forget everything, as after a resignation."""
        self.epoch = 0
        self.epoch_zk_version = 0
        self.live_brokers: dict[int, BrokerRegistration] = {}
        """Live or shutting down."""
        self.live_broker_epochs: dict[int, int] = {}
        self.shutting_down_broker_ids: set[int] = set()
        self.all_topics: set[str] = set()
        self.topic_ids: dict[str, bytes] = {}
        self.topic_names: dict[bytes, str] = {}
        self.partition_assignments: dict[str, dict[int, ReplicaAssignment]] = {}
        self.partition_leadership_info: dict[TopicPartition, LeaderIsrAndControllerEpoch] = {}
        self.partitions_being_reassigned: set[TopicPartition] = set()
        self.partition_states: dict[TopicPartition, PartitionState] = {}
        self.replica_states: dict[PartitionAndReplica, ReplicaState] = {}
        self.replicas_on_offline_dirs: dict[int, set[TopicPartition]] = {}
        self.topics_to_be_deleted: set[str] = set()
        self.topics_with_deletion_started: set[str] = set()
        """Their partitions are NonExistent already, and no longer count as offline."""
        self.topics_ineligible_for_deletion: set[str] = set()
        self.offline_partition_count = 0

    # --- brokers

    @property
    def live_broker_ids(self) -> set[int]:
        """Registered brokers that are not in a controlled shutdown."""
        return self.live_brokers.keys() - self.shutting_down_broker_ids

    def is_live_broker(self, broker_id: int) -> bool:
        """Whether the broker is registered and not in a controlled shutdown."""
        return broker_id in self.live_brokers and broker_id not in self.shutting_down_broker_ids

    def add_live_brokers(self, brokers: Mapping[int, tuple[BrokerRegistration, int]]) -> None:
        """Take in brokers: id -> (registration, broker epoch)."""
        for broker_id, (broker, broker_epoch) in brokers.items():
            self.live_brokers[broker_id] = broker
            self.live_broker_epochs[broker_id] = broker_epoch

    def remove_live_brokers(self, broker_ids: Iterable[int]) -> None:
        """Forget brokers whose registration is gone; KeyError for an unknown one."""
        for broker_id in broker_ids:
            del self.live_brokers[broker_id]
            del self.live_broker_epochs[broker_id]

    def is_replica_online(
        self, broker_id: int, partition: TopicPartition, *, include_shutting_down: bool = False
    ) -> bool:
        """Whether the broker is live and the partition's log directory on it is not offline."""
        online = broker_id in self.live_brokers if include_shutting_down else self.is_live_broker(broker_id)
        return online and partition not in self.replicas_on_offline_dirs.get(broker_id, ())

    # --- topics and assignments

    def add_topic_id(self, topic: str, topic_id: bytes) -> None:
        """Record a topic's 16-byte id (KIP-516). An id never changes and belongs to one topic."""
        assert topic in self.all_topics, f"topic {topic} is not contained in all topics."
        assert self.topic_ids.get(topic, topic_id) == topic_id, f"topic {topic} has another id already"
        assert self.topic_names.get(topic_id, topic) == topic, f"the id of {topic} belongs to another topic"
        self.topic_ids[topic] = topic_id
        self.topic_names[topic_id] = topic

    def assignment(self, partition: TopicPartition) -> ReplicaAssignment:
        """The partition's replicas; `NO_ASSIGNMENT` for an unknown partition."""
        return self.partition_assignments.get(partition.topic, {}).get(partition.partition, NO_ASSIGNMENT)

    def replicas(self, partition: TopicPartition) -> tuple[int, ...]:
        """Broker ids of the partition, the preferred leader first; empty for an unknown partition."""
        return self.assignment(partition).replicas

    def update_assignment(self, partition: TopicPartition, assignment: ReplicaAssignment) -> None:
        """Replace the replicas of one partition, in memory only."""
        self.partition_assignments.setdefault(partition.topic, {})[partition.partition] = shared(assignment)

    def all_partitions(self) -> Iterator[TopicPartition]:
        """Every assigned partition, topic by topic."""
        for topic, partitions in self.partition_assignments.items():
            for partition in partitions:
                yield TopicPartition(topic, partition)

    def partitions_for_topic(self, topic: str) -> list[TopicPartition]:
        """The topic's partitions; none for an unknown topic."""
        return [TopicPartition(topic, p) for p in self.partition_assignments.get(topic, ())]

    def partitions_on_broker(self, broker_id: int) -> list[TopicPartition]:
        """Partitions with a replica on the broker, led by it or not."""
        return [p for p in self.all_partitions() if broker_id in self.replicas(p)]

    def replicas_on_brokers(self, broker_ids: Collection[int]) -> list[PartitionAndReplica]:
        """Every replica that is assigned to one of the brokers."""
        return [
            PartitionAndReplica(partition, replica)
            for partition in self.all_partitions()
            for replica in self.replicas(partition)
            if replica in broker_ids
        ]

    def replicas_for_topic(self, topic: str) -> list[PartitionAndReplica]:
        """Every replica of the topic's partitions."""
        return self.replicas_for_partitions(self.partitions_for_topic(topic))

    def replicas_for_partitions(self, partitions: Iterable[TopicPartition]) -> list[PartitionAndReplica]:
        """Every replica of the partitions, in assignment order."""
        return [PartitionAndReplica(p, replica) for p in partitions for replica in self.replicas(p)]

    def remove_topic(self, topic: str) -> None:
        """Forget a topic whose znodes are deleted, with its partitions, replicas and id."""
        self.topics_to_be_deleted.discard(topic)
        self.topics_with_deletion_started.discard(topic)
        self.all_topics.discard(topic)
        topic_id = self.topic_ids.pop(topic, None)
        if topic_id is not None:
            self.topic_names.pop(topic_id, None)
        for partition, assignment in self.partition_assignments.pop(topic, {}).items():
            key = TopicPartition(topic, partition)
            for replica in assignment.replicas:
                self.replica_states.pop(PartitionAndReplica(key, replica), None)
            self.partition_leadership_info.pop(key, None)
            if self.partition_states.pop(key, None) is PartitionState.OFFLINE:
                self.offline_partition_count -= 1
            self.partitions_being_reassigned.discard(key)

    # --- leadership

    def set_leadership(self, partition: TopicPartition, info: LeaderIsrAndControllerEpoch) -> None:
        """Replace what is known of one partition, in memory only."""
        self.partition_leadership_info[partition] = shared(info)

    def leader_epoch(self, partition: TopicPartition) -> int:
        """The epoch for StopReplica: -2 for a topic that is being deleted, which overrides any epoch (KIP-570)."""
        if partition.topic in self.topics_to_be_deleted:
            return EPOCH_DURING_DELETE
        info = self.partition_leadership_info.get(partition)
        return NO_EPOCH if info is None else info.leader_and_isr.leader_epoch

    def leader(self, partition: TopicPartition) -> int | None:
        """The broker that leads the partition, `NO_LEADER`, or None where no leader was ever elected."""
        info = self.partition_leadership_info.get(partition)
        return None if info is None else info.leader_and_isr.leader

    def partitions_with_leaders(self) -> list[TopicPartition]:
        """Partitions that have leadership information, except those of topics being deleted."""
        return [p for p in self.partition_leadership_info if p.topic not in self.topics_to_be_deleted]

    def partitions_with_offline_leader(self) -> list[TopicPartition]:
        """Partitions whose leader or its log directory is offline, except those of topics being deleted."""
        return [
            partition
            for partition, info in self.partition_leadership_info.items()
            if partition.topic not in self.topics_to_be_deleted
            and not self.is_replica_online(info.leader_and_isr.leader, partition)
        ]

    def partition_leaders_on_broker(self, broker_id: int) -> list[TopicPartition]:
        """Partitions that keep a broker from shutting down: those it leads that have another replica."""
        return [
            partition
            for partition, info in self.partition_leadership_info.items()
            if info.leader_and_isr.leader == broker_id
            and partition.topic not in self.topics_to_be_deleted
            and len(self.replicas(partition)) > 1
        ]

    # --- deletion

    def is_topic_queued_for_deletion(self, topic: str) -> bool:
        """Whether the topic is listed in `/admin/delete_topics` and deletion is enabled."""
        return topic in self.topics_to_be_deleted

    def replicas_in_state(self, topic: str, state: ReplicaState) -> list[PartitionAndReplica]:
        """The topic's replicas that are in `state`."""
        return [r for r in self.replicas_for_topic(topic) if self.replica_states.get(r) is state]

    def are_all_replicas_in_state(self, topic: str, state: ReplicaState) -> bool:
        """Whether every replica of the topic is in `state`; True for a topic without replicas."""
        return all(self.replica_states.get(r) is state for r in self.replicas_for_topic(topic))

    def is_any_replica_in_state(self, topic: str, state: ReplicaState) -> bool:
        """Whether at least one replica of the topic is in `state`."""
        return any(self.replica_states.get(r) is state for r in self.replicas_for_topic(topic))

    # --- states

    def put_partition_state(self, partition: TopicPartition, state: PartitionState) -> None:
        """Set a partition's state and keep `offline_partition_count` up to date."""
        previous = self.partition_states.get(partition, PartitionState.NON_EXISTENT)
        self.partition_states[partition] = state
        if partition.topic not in self.topics_with_deletion_started:
            self.offline_partition_count += (state is PartitionState.OFFLINE) - (previous is PartitionState.OFFLINE)

    def partitions_in_states(
        self, states: Collection[PartitionState], topic: str | None = None
    ) -> list[TopicPartition]:
        """Partitions in one of `states`, of one topic or (None) of all."""
        if topic is not None:
            return [p for p in self.partitions_for_topic(topic) if self.partition_states.get(p) in states]
        return [p for p, state in self.partition_states.items() if state in states]
