"""kafka_exporter's metrics, which are no MBeans. Each has one source in a cluster, so that sums are right:

those of the cluster are at the controller, those of a partition at its leader, those of a group at its coordinator.
"""

from __future__ import annotations

from typing import Final

from kpybroker.metrics.mbeans import FixedTable

_PARTITION: Final = ("partition", "topic")
_GROUP_PARTITION: Final = ("consumergroup", "partition", "topic")
_GROUP_TOPIC: Final = ("consumergroup", "topic")

TABLE: Final = FixedTable()
BROKERS: Final = TABLE.gauge("kafka_brokers", (), "brokers", "Brokers of the cluster.", "It falls.")
BROKER_INFO: Final = TABLE.gauge("kafka_broker_info", ("address", "id"), "flag", "1 for each broker, with its address.")
TOPIC_PARTITIONS: Final = TABLE.gauge("kafka_topic_partitions", ("topic",), "partitions", "Partitions of a topic.")
CURRENT_OFFSET: Final = TABLE.gauge(
    "kafka_topic_partition_current_offset", _PARTITION, "offset", "The high watermark: where new records begin."
)
OLDEST_OFFSET: Final = TABLE.gauge("kafka_topic_partition_oldest_offset", _PARTITION, "offset", "The first offset.")
LEADER: Final = TABLE.gauge("kafka_topic_partition_leader", _PARTITION, "broker", "Id of the leader.")
REPLICAS: Final = TABLE.gauge("kafka_topic_partition_replicas", _PARTITION, "replicas", "Assigned replicas.")
IN_SYNC: Final = TABLE.gauge("kafka_topic_partition_in_sync_replica", _PARTITION, "replicas", "Replicas in sync.")
PREFERRED: Final = TABLE.gauge(
    "kafka_topic_partition_leader_is_preferred", _PARTITION, "flag", "1 if the leader is the preferred replica."
)
UNDER_REPLICATED: Final = TABLE.gauge(
    "kafka_topic_partition_under_replicated_partition",
    _PARTITION,
    "flag",
    "1 if fewer replicas are in sync than assigned.",
    "1 for minutes.",
)
GROUP_OFFSET: Final = TABLE.gauge(
    "kafka_consumergroup_current_offset", _GROUP_PARTITION, "offset", "The offset that a group has committed."
)
LAG: Final = TABLE.gauge(
    "kafka_consumergroup_lag",
    _GROUP_PARTITION,
    "records",
    "From the committed offset to the high watermark; -1 while that is unknown.",
    "It grows: consumers are slower than producers, or have stopped.",
)
GROUP_OFFSET_SUM: Final = TABLE.gauge(
    "kafka_consumergroup_current_offset_sum", _GROUP_TOPIC, "offset", "The same, over the partitions of a topic."
)
LAG_SUM: Final = TABLE.gauge(
    "kafka_consumergroup_lag_sum", _GROUP_TOPIC, "records", "The same, over the partitions of a topic.", "It grows."
)
MEMBERS: Final = TABLE.gauge(
    "kafka_consumergroup_members",
    ("consumergroup",),
    "members",
    "Members of a group.",
    "0 for a group that should run.",
)

FAMILIES: Final = tuple(TABLE)
