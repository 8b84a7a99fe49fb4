"""One sentence on each group key. Imported only for DescribeConfigs with documentation and for the page."""

from __future__ import annotations

from typing import Final

# fmt: off
DOCS: Final[dict[str, str]] = {
    "group.min.session.timeout.ms": "Shortest session timeout that a group member may ask for.",
    "group.max.session.timeout.ms": "Longest session timeout that a group member may ask for.",
    "group.initial.rebalance.delay.ms": "How long an empty group waits for more members before its first rebalance.",
    "group.max.size": "How many members a classic group may have.",
    "group.coordinator.rebalance.protocols": (
        "Group protocols that the coordinator serves. `consumer` needs level 1 of the feature `group.version` as well, "
        "which alone decides where this key is not set."
    ),
    "group.coordinator.threads": "Threads of the new group coordinator.",
    "group.coordinator.background.threads": "Threads on which the group coordinator computes assignments. Of Kafka 4.",
    "group.coordinator.append.linger.ms": (
        "How long the coordinator collects records before it appends them; -1 of Kafka 4 adapts to the load."
    ),
    "group.coordinator.cached.buffer.max.bytes": (
        "Largest buffer that the coordinator keeps for its next batch. Of Kafka 4."
    ),
    "group.coordinator.new.enable": "Whether the new group coordinator is used.",
    "offset.metadata.max.bytes": "Bytes of metadata that a client may commit with an offset.",
    "offsets.load.buffer.size": "Bytes read in one batch from the offsets topic when a coordinator loads its groups.",
    "offsets.topic.replication.factor": (
        "Replicas of the offsets topic. Its creation fails while there are fewer brokers."
    ),
    "offsets.topic.num.partitions": "Partitions of the offsets topic. Not to change once it exists.",
    "offsets.topic.segment.bytes": (
        "Segment size of the offsets topic; small, so that compaction and loading are quick."
    ),
    "offsets.topic.compression.codec": (
        "Codec of the batches that the coordinator writes: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."
    ),
    "offsets.retention.minutes": (
        "How long offsets are kept after a group has lost its last member, or a simple consumer its last commit."
    ),
    "offsets.retention.check.interval.ms": "How often the coordinator removes expired offsets.",
    "offsets.commit.timeout.ms": "How long a commit waits to be replicated.",
    "offsets.commit.required.acks": "Acknowledgements that a commit waits for. Deprecated: leave it at -1.",
    "group.consumer.session.timeout.ms": "Session timeout of members under the consumer group protocol.",
    "group.consumer.min.session.timeout.ms": "Shortest session timeout under the consumer group protocol.",
    "group.consumer.max.session.timeout.ms": "Longest session timeout under the consumer group protocol.",
    "group.consumer.heartbeat.interval.ms": "Heartbeat interval of members under the consumer group protocol.",
    "group.consumer.min.heartbeat.interval.ms": "Shortest heartbeat interval under the consumer group protocol.",
    "group.consumer.max.heartbeat.interval.ms": "Longest heartbeat interval under the consumer group protocol.",
    "group.consumer.max.size": "How many members a group under the consumer group protocol may have.",
    "group.consumer.assignors": (
        "What assigns partitions under the consumer group protocol: `uniform`, `range`, or the names of their Java "
        "classes. The first is the default."
    ),
    "group.consumer.assignment.interval.ms": (
        "Shortest time between two assignments of a group under the consumer group protocol (KIP-1263). Of Kafka 4.3."
    ),
    "group.consumer.min.assignment.interval.ms": (
        "Shortest time between two assignments that a group may choose under the consumer group protocol. Of Kafka 4.3."
    ),
    "group.consumer.max.assignment.interval.ms": (
        "Longest time between two assignments that a group may choose under the consumer group protocol. Of Kafka 4.3."
    ),
    "group.consumer.regex.refresh.interval.ms": (
        "How often a group under the consumer group protocol looks again for the topics that its regular expressions "
        "match. New topics are found at once. Of Kafka 4."
    ),
    "group.consumer.migration.policy": (
        "What happens to a group with members when a client changes its protocol. `upgrade`: a classic group becomes a "
        "consumer group when the first member of the new protocol joins. `downgrade`: a consumer group becomes a "
        "classic one when its last member of the new protocol leaves. `bidirectional`, the default of Kafka 4: both. "
        "`disabled`: neither, and classic members may not join a consumer group. Empty groups always change."
    ),
    "group.share.session.timeout.ms": "Session timeout of members of share groups.",
    "group.share.min.session.timeout.ms": "Shortest session timeout in share groups.",
    "group.share.max.session.timeout.ms": "Longest session timeout in share groups.",
    "group.share.heartbeat.interval.ms": "Heartbeat interval of members of share groups.",
    "group.share.min.heartbeat.interval.ms": "Shortest heartbeat interval in share groups.",
    "group.share.max.heartbeat.interval.ms": "Longest heartbeat interval in share groups.",
    "group.share.max.size": "How many members a share group may have.",
    "group.share.enable": "Whether share groups are served.",
    "group.share.delivery.count.limit": "How many times a record is delivered to a share group before it is given up.",
    "group.share.record.lock.duration.ms": "How long a member of a share group may hold a record.",
    "group.share.min.record.lock.duration.ms": "Shortest time that a group may choose for holding a record.",
    "group.share.max.record.lock.duration.ms": "Longest time that a group may choose for holding a record.",
    "group.share.max.groups": "How many share groups there may be.",
    "group.share.partition.max.record.locks": "How many records of a partition share groups may hold at once.",
    "group.share.max.partition.max.record.locks": (
        "Most records of a partition that a share group may choose to hold at once. Of Kafka 4."
    ),
    "group.share.min.partition.max.record.locks": (
        "Fewest records of a partition that a share group may choose to hold at once. Of Kafka 4."
    ),
    "group.share.max.delivery.count.limit": "Most deliveries of a record that a share group may choose. Of Kafka 4.",
    "group.share.min.delivery.count.limit": "Fewest deliveries of a record that a share group may choose. Of Kafka 4.",
    "group.share.max.share.sessions": "How many share sessions a broker keeps. Of Kafka 4.",
    "group.share.assignment.interval.ms": "Shortest time between two assignments of a share group. Of Kafka 4.3.",
    "group.share.min.assignment.interval.ms": "Shortest such time that a share group may choose. Of Kafka 4.3.",
    "group.share.max.assignment.interval.ms": "Longest such time that a share group may choose. Of Kafka 4.3.",
    "group.share.assignors": "What assigns partitions in share groups. Of Kafka 4.",
    "group.share.initialize.retry.interval.ms": (
        "How often the coordinator tries again to initialize the state of a share partition. Of Kafka 4."
    ),
    "group.share.persister.class.name": (
        "What keeps the state of share partitions. Empty, or Kafka's `NoOpStatePersister`: no state outlives its "
        "leader. Any other class counts as the default. Of Kafka 4."
    ),
    "share.fetch.purgatory.purge.interval.requests": (
        "How often finished waiting share fetches are removed, in requests. Of Kafka 4."
    ),
    "share.coordinator.append.linger.ms": (
        "How long the share coordinator collects records before it appends them. Of Kafka 4."
    ),
    "share.coordinator.cached.buffer.max.bytes": (
        "Largest buffer that the share coordinator keeps for its next batch. Of Kafka 4."
    ),
    "share.coordinator.cold.partition.snapshot.interval.ms": (
        "How often share partitions that do not change get a snapshot. Of Kafka 4."
    ),
    "share.coordinator.load.buffer.size": (
        "Bytes read in one batch when a share coordinator loads its state. Of Kafka 4."
    ),
    "share.coordinator.snapshot.update.records.per.snapshot": (
        "Updates of a share partition between two snapshots. Of Kafka 4."
    ),
    "share.coordinator.state.topic.compression.codec": "Codec of the share coordinator's topic. Of Kafka 4.",
    "share.coordinator.state.topic.min.isr": "min.insync.replicas of the share coordinator's topic. Of Kafka 4.",
    "share.coordinator.state.topic.num.partitions": "Partitions of the share coordinator's topic. Of Kafka 4.",
    "share.coordinator.state.topic.prune.interval.ms": (
        "How often the share coordinator's topic is shortened. Of Kafka 4."
    ),
    "share.coordinator.state.topic.replication.factor": "Replicas of the share coordinator's topic. Of Kafka 4.",
    "share.coordinator.state.topic.segment.bytes": "Segment size of the share coordinator's topic. Of Kafka 4.",
    "share.coordinator.threads": "Threads of the share coordinator. Of Kafka 4.",
    "share.coordinator.write.timeout.ms": (
        "How long a write of the share coordinator waits to be replicated. Of Kafka 4."
    ),
    "group.streams.session.timeout.ms": "Session timeout of members of streams groups. Of Kafka 4.",
    "group.streams.min.session.timeout.ms": "Shortest session timeout in streams groups. Of Kafka 4.",
    "group.streams.max.session.timeout.ms": "Longest session timeout in streams groups. Of Kafka 4.",
    "group.streams.heartbeat.interval.ms": "Heartbeat interval of members of streams groups. Of Kafka 4.",
    "group.streams.min.heartbeat.interval.ms": "Shortest heartbeat interval in streams groups. Of Kafka 4.",
    "group.streams.max.heartbeat.interval.ms": "Longest heartbeat interval in streams groups. Of Kafka 4.",
    "group.streams.max.size": "How many members a streams group may have. Of Kafka 4.",
    "group.streams.num.standby.replicas": "Standby replicas of each task of a streams group. Of Kafka 4.",
    "group.streams.max.standby.replicas": "Most standby replicas that a streams group may choose. Of Kafka 4.",
    "group.streams.initial.rebalance.delay.ms": (
        "How long a new streams group waits for more members before its first assignment. Of Kafka 4."
    ),
    "group.streams.assignment.interval.ms": "Shortest time between two assignments of a streams group. Of Kafka 4.3.",
    "group.streams.min.assignment.interval.ms": "Shortest such time that a streams group may choose. Of Kafka 4.3.",
    "group.streams.max.assignment.interval.ms": "Longest such time that a streams group may choose. Of Kafka 4.3.",
    "transaction.state.log.min.isr": "min.insync.replicas of the transaction topic.",
    "transaction.state.log.load.buffer.size": (
        "Bytes read in one batch from the transaction topic when a coordinator loads its state."
    ),
    "transaction.state.log.replication.factor": (
        "Replicas of the transaction topic. Its creation fails while there are fewer brokers."
    ),
    "transaction.state.log.num.partitions": "Partitions of the transaction topic. Not to change once it exists.",
    "transaction.state.log.segment.bytes": "Segment size of the transaction topic.",
    "transaction.partition.verification.enable": (
        "Whether a transactional append first asks the coordinator whether its partition is part of the transaction."
    ),
    "producer.id.expiration.ms": "How long a partition keeps the state of an idempotent producer after its last write.",
    "producer.id.expiration.check.interval.ms": "How often partitions remove the state of expired producers.",
    "transactional.id.expiration.ms": "How long the state of a transactional id is kept after its last transaction.",
    "transaction.max.timeout.ms": "Longest transaction timeout that a producer may ask for.",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": (
        "How often the coordinator aborts transactions that have timed out."
    ),
    "transaction.remove.expired.transaction.cleanup.interval.ms": (
        "How often the coordinator removes expired transactional ids."
    ),
    "transaction.two.phase.commit.enable": (
        "Whether transactions may wait for an outside decision without a timeout. Of Kafka 4."
    ),
    "add.partitions.to.txn.retry.backoff.ms": (
        "How long a leader waits before it asks again to add a partition to a transaction, while the one before is not "
        "complete. Of Kafka 4."
    ),
    "add.partitions.to.txn.retry.backoff.max.ms": "For how long it asks again, before the producer has to. Of Kafka 4.",
}
# fmt: on
