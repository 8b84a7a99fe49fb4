"""Share groups (KIP-932): at the leaders of partitions, and at the coordinators of their states."""

from __future__ import annotations

from typing import Final

from kpybroker.metrics.mbeans import Table

GROUPS: Final = Table("kafka.server", "ShareGroupMetrics")
ACKNOWLEDGEMENTS: Final = GROUPS.meter(
    "RecordAcknowledgementsPerSec",
    "records",
    "Records that members acknowledged, by what they said: Accept, Release, Reject or Renew.",
    "Release or Reject grow faster than Accept: workers fail.",
    ("ackType",),
)
LOAD_TIME: Final = GROUPS.histogram(
    "PartitionLoadTimeMs", "milliseconds", "The time that reading the state of a share partition took."
)
FETCH_RATIO: Final = GROUPS.histogram(
    "RequestTopicPartitionsFetchRatio",
    "percent",
    "Of the partitions that a ShareFetch asks for, those that gave it records, by group.",
    "Low with few members: most partitions are empty, or have all that they may in flight.",
    ("group",),
)
ACQUIRE_TIME: Final = GROUPS.histogram(
    "TopicPartitionsAcquireTimeMs",
    "milliseconds",
    "The time from a ShareFetch to the records that it got, by group.",
    tags=("group",),
)

PARTITIONS: Final = Table("kafka.server", "SharePartitionMetrics", ("group", "topic", "partition"))
LOCK_TIMEOUTS: Final = PARTITIONS.meter(
    "AcquisitionLockTimeoutPerSec",
    "records",
    "Records whose lock ran out before their member acknowledged them.",
    "It grows: work takes longer than share.record.lock.duration.ms, or workers hang.",
)
IN_FLIGHT: Final = PARTITIONS.gauge(
    "InFlightMessageCount",
    "records",
    "From the start offset to the last that was delivered.",
    "At share.partition.max.record.locks: nothing new is delivered before the oldest is finished.",
)
IN_FLIGHT_BATCHES: Final = PARTITIONS.gauge("InFlightBatchCount", "batches", "Batches of the same.")

TOPICS: Final = Table("kafka.server", "BrokerTopicMetrics", ("topic",))
FETCHES: Final = TOPICS.meter("TotalShareFetchRequestsPerSec", "requests", "ShareFetches that ask for the topic.")
FAILED_FETCHES: Final = TOPICS.meter(
    "FailedShareFetchRequestsPerSec",
    "requests",
    "ShareFetches of which a partition of the topic could not be read.",
    "It grows: the leader has moved, or a disk fails. See the broker's log.",
)
ACKNOWLEDGING: Final = TOPICS.meter(
    "TotalShareAcknowledgementRequestsPerSec",
    "requests",
    "Requests that acknowledge records of the topic, in a ShareFetch too.",
)
FAILED_ACKNOWLEDGING: Final = TOPICS.meter(
    "FailedShareAcknowledgementRequestsPerSec",
    "requests",
    "Those of them that were refused in a partition of the topic.",
    "It grows: locks run out before the work is done, or a member says what it does not hold.",
)

SESSION_CACHE: Final = Table("kafka.server", "ShareSessionCache")
SESSIONS: Final = SESSION_CACHE.gauge(
    "ShareSessionsCount",
    "sessions",
    "Members that fetch from this broker.",
    "At group.share.max.share.sessions: others get SHARE_SESSION_LIMIT_REACHED.",
)
SESSION_PARTITIONS: Final = SESSION_CACHE.gauge("SharePartitionsCount", "partitions", "Partitions of all of them.")
EVICTIONS: Final = SESSION_CACHE.meter(
    "ShareSessionEvictionsPerSec",
    "sessions",
    "Sessions that ended because their connection was lost.",
    "It grows: workers die, or a proxy ends their connections; what they had is delivered again.",
)

COORDINATOR: Final = Table("kafka.server", "share-coordinator-metrics")
WRITES: Final = COORDINATOR.attribute("write-total", "writes", "States of share partitions written, since the start.")
WRITE_RATE: Final = COORDINATOR.attribute("write-rate", "writes/s", "The same a second, of the last half minute.")
WRITE_AVG: Final = COORDINATOR.attribute(
    "write-latency-avg",
    "milliseconds",
    "The time of WriteShareGroupState, until `__share_group_state` has it on all in-sync replicas; of the last half "
    "minute.",
)
WRITE_MAX: Final = COORDINATOR.attribute(
    "write-latency-max",
    "milliseconds",
    "The longest of the same.",
    "Seconds: acknowledgements wait for so long. A replica of `__share_group_state` is slow.",
)
LOAD_MAX: Final = COORDINATOR.attribute(
    "partition-load-time-max",
    "milliseconds",
    "The longest time that reading a partition of `__share_group_state` took, of the last half minute; 0 without one.",
)
LOAD_AVG: Final = COORDINATOR.attribute("partition-load-time-avg", "milliseconds", "The average of the same.")
NUM_PARTITIONS: Final = COORDINATOR.attribute(
    "num-partitions",
    "partitions",
    "Partitions of `__share_group_state` that this broker leads, by state: loading, active or failed.",
    "Above 0 in failed: its log cannot be read, and share partitions have no coordinator. The log has the reason.",
    ("state",),
)
PRUNED: Final = COORDINATOR.attribute(
    "last-pruned-offset",
    "offset",
    "Up to where a partition of `__share_group_state` was last deleted, because later snapshots have it all.",
    tags=("topic", "partition"),
)

FAMILIES: Final = (*GROUPS, *PARTITIONS, *TOPICS, *SESSION_CACHE, *COORDINATOR)
