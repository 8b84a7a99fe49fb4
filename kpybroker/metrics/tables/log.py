"""Logs on disk: their sizes and offsets, log directories, flushes, compaction."""

from __future__ import annotations

from typing import Final

from kpybroker.metrics.mbeans import FixedTable, Table

LOG: Final = Table("kafka.log", "Log", ("topic", "partition"))
SIZE: Final = LOG.gauge("Size", "bytes", "Size of the segments.", "The sum nears the size of the disk.")
START_OFFSET: Final = LOG.gauge("LogStartOffset", "offset", "The first offset.")
END_OFFSET: Final = LOG.gauge("LogEndOffset", "offset", "The offset of the next record.")
SEGMENTS: Final = LOG.gauge("NumLogSegments", "segments", "Segments.", "Thousands: log.segment.bytes is too small.")

MANAGER: Final = Table("kafka.log", "LogManager")
OFFLINE_DIRECTORIES: Final = MANAGER.gauge(
    "OfflineLogDirectoryCount", "directories", "Log directories that have failed.", "Above 0: replace the disk."
)
DIRECTORY_OFFLINE: Final = MANAGER.gauge(
    "LogDirectoryOffline", "flag", "1 for a log directory that has failed.", "1.", tags=("logDirectory",)
)

DISK: Final = FixedTable()
"""No MBean of Kafka's has it: only DescribeLogDirs does (KIP-827)."""
TOTAL_BYTES: Final = DISK.gauge(
    "kpybroker_log_directory_total_bytes", ("logDirectory",), "bytes", "Size of the volume of a log directory."
)
USABLE_BYTES: Final = DISK.gauge(
    "kpybroker_log_directory_usable_bytes",
    ("logDirectory",),
    "bytes",
    "What is free on the volume of a log directory that works.",
    "Below a tenth of the size: appends fail when it is 0.",
)

FLUSHES: Final = Table("kafka.log", "LogFlushStats")
FLUSH_TIME: Final = FLUSHES.histogram(
    "LogFlushRateAndTimeMs", "ms", "How long flushes of logs to the disk take.", "It grows: the disk is saturated."
)

CLEANER: Final = Table("kafka.log", "LogCleaner")
BUFFER_UTILIZATION: Final = CLEANER.gauge(
    "max-buffer-utilization-percent",
    "percent",
    "How full the map of last offsets was in the last cleaning.",
    "Near 100: raise log.cleaner.dedupe.buffer.size.",
)
RECOPY: Final = CLEANER.gauge("cleaner-recopy-percent", "percent", "How much of a log the last cleaning kept.")
MAX_CLEAN_TIME: Final = CLEANER.gauge("max-clean-time-secs", "s", "How long the last cleaning took.")

CLEANER_MANAGER: Final = Table("kafka.log", "LogCleanerManager")
MAX_DIRTY: Final = CLEANER_MANAGER.gauge(
    "max-dirty-percent",
    "percent",
    "The dirtiest log at the last look: how much of it is not cleaned.",
    "It stays near 100: compaction does not keep up or has stopped.",
)
SINCE_LAST_RUN: Final = CLEANER_MANAGER.gauge(
    "time-since-last-run-ms",
    "ms",
    "Since the cleaner last looked for work.",
    "Much more than log.cleaner.backoff.ms while nothing is cleaned.",
)
UNCLEANABLE_PARTITIONS: Final = CLEANER_MANAGER.gauge(
    "uncleanable-partitions-count",
    "partitions",
    "Partitions that can't be compacted since their last failure.",
    "Above 0: the log says why; the log grows without limit.",
    tags=("logDirectory",),
)
UNCLEANABLE_BYTES: Final = CLEANER_MANAGER.gauge(
    "uncleanable-bytes", "bytes", "Size of these partitions.", "Above 0.", tags=("logDirectory",)
)

FAMILIES: Final = (*LOG, *MANAGER, *DISK, *FLUSHES, *CLEANER, *CLEANER_MANAGER)
