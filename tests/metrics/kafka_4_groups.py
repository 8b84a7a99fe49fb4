"""The metrics that Kafka 4.3.1's group coordinator registers."""

from __future__ import annotations

from typing import Final

HISTOGRAMS: Final = (
    *("event-queue-time-ms", "event-processing-time-ms", "event-purgatory-time-ms", "batch-linger-time-ms"),
    *("batch-flush-time-ms", "background-queue-time-ms", "background-processing-time-ms"),
)
METERS: Final = (
    *("offset-commit", "offset-expiration", "offset-deletion", "group-completed-rebalance"),
    *("consumer-group-rebalance", "share-group-rebalance", "streams-group-rebalance"),
)
KAFKA_4_3_1: Final = {
    *(f"{name}-{value}" for name in HISTOGRAMS for value in ("p50", "p95", "p99", "p999", "max")),
    *(f"{name}-{value}" for name in METERS for value in ("rate", "count")),
    *("group-count", "consumer-group-count", "share-group-count", "streams-group-count", "num-partitions"),
    *("event-queue-size", "partition-load-time-max", "partition-load-time-avg", "thread-idle-ratio-avg"),
    *("batch-flush-rate", "batch-buffer-cache-size-bytes", "batch-buffer-cache-discard-count"),
    "background-thread-idle-ratio-avg",
}
"""The attributes of `kafka.server:type=group-coordinator-metrics`; `compat_tests/metrics` reads them from a broker."""
