"""The metrics of share groups that Kafka 4.3.1 registers: MBeans by type, and attributes of its share coordinator."""

from __future__ import annotations

from typing import Final

from tests.metrics.kafka_4_groups import HISTOGRAMS

MBEANS: Final[dict[str, frozenset[str]]] = {
    "ShareGroupMetrics": frozenset(
        {
            *("RecordAcknowledgementsPerSec", "PartitionLoadTimeMs"),
            *("RequestTopicPartitionsFetchRatio", "TopicPartitionsAcquireTimeMs"),
        }
    ),
    "SharePartitionMetrics": frozenset(
        {
            *("AcquisitionLockTimeoutPerSec", "InFlightMessageCount", "InFlightBatchCount"),
            *("InFlightBatchMessageCount", "FetchLockTimeMs", "FetchLockRatio"),
        }
    ),
    "BrokerTopicMetrics": frozenset(
        {
            *("TotalShareFetchRequestsPerSec", "FailedShareFetchRequestsPerSec"),
            *("TotalShareAcknowledgementRequestsPerSec", "FailedShareAcknowledgementRequestsPerSec"),
        }
    ),
    "ShareSessionCache": frozenset({"ShareSessionsCount", "SharePartitionsCount", "ShareSessionEvictionsPerSec"}),
}

COORDINATOR: Final = frozenset(
    {
        *(f"{name}-{value}" for name in HISTOGRAMS for value in ("p50", "p95", "p99", "p999", "max")),
        *("write-rate", "write-total", "write-latency-avg", "write-latency-max", "last-pruned-offset"),
        *("num-partitions", "event-queue-size", "partition-load-time-max", "partition-load-time-avg"),
        *("thread-idle-ratio-avg", "batch-flush-rate"),
        *("batch-buffer-cache-size-bytes", "batch-buffer-cache-discard-count"),
    }
)
