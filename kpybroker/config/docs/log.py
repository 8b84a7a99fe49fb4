"""One sentence on each log key. Imported only for DescribeConfigs with documentation and for the page."""

from __future__ import annotations

from typing import Final

# fmt: off
DOCS: Final[dict[str, str]] = {
    "message.max.bytes": (
        "Largest record batch that is accepted, in bytes after compression, unless the topic sets its own limit."
    ),
    "num.replica.alter.log.dirs.threads": "Threads that move replicas between log directories.",
    "delete.topic.enable": "Whether topics can be deleted. If false, a request to delete one is refused.",
    "compression.type": (
        "How batches are stored, unless the topic says otherwise: with one codec, uncompressed, or (producer) "
        "as received."
    ),
    "compression.gzip.level": "Level used where compression.type is gzip; -1 is the codec's own default.",
    "compression.lz4.level": "Level used where compression.type is lz4.",
    "compression.zstd.level": "Level used where compression.type is zstd.",
    "log.cleaner.threads": "Processes that compact logs.",
    "log.cleaner.io.max.bytes.per.second": "Bytes a second that all compaction together may read and write.",
    "log.cleaner.dedupe.buffer.size": "Memory for the map of last offsets by key, shared by all cleaner processes.",
    "log.cleaner.io.buffer.size": "Memory for reading and writing while compacting, shared by all cleaner processes.",
    "log.cleaner.io.buffer.load.factor": (
        "How full the map of last offsets may become. Fuller cleans more at once, with more collisions."
    ),
    "log.cleaner.backoff.ms": "How long the cleaner waits when there is nothing to clean.",
    "log.cleaner.min.cleanable.ratio": "Share of a log that must be uncleaned before it is compacted.",
    "log.cleaner.enable": "Whether the cleaner runs. The offsets topic relies on it.",
    "log.cleaner.delete.retention.ms": (
        "How long a tombstone stays in a compacted log, so that a reader that started before it can see it."
    ),
    "log.cleaner.min.compaction.lag.ms": "How long a record is not compacted.",
    "log.cleaner.max.compaction.lag.ms": "How long a record may wait to become eligible for compaction.",
    "num.partitions": "Partitions of a topic that is created without a number of partitions.",
    "log.dir": "The log directory, if log.dirs is not set.",
    "log.dirs": "Log directories, separated by commas; without it, log.dir is used.",
    "cordoned.log.dirs": (
        "Log directories that take no new logs; * is all. A broker whose directories are all cordoned still takes "
        "partitions that it is assigned, in the first of them. Of Kafka 4.3."
    ),
    "log.segment.bytes": "Size at which a log's active segment is closed and a new one is created.",
    "log.roll.ms": "Age at which the active segment is closed, in milliseconds. Without it, log.roll.hours is used.",
    "log.roll.hours": "Age at which the active segment is closed, in hours. log.roll.ms takes precedence.",
    "log.roll.jitter.ms": (
        "The roll time is shortened by a random amount up to this, in milliseconds. Without it, "
        "log.roll.jitter.hours is used."
    ),
    "log.roll.jitter.hours": (
        "The roll time is shortened by a random amount up to this, in hours. log.roll.jitter.ms takes precedence."
    ),
    "log.retention.ms": (
        "How long a segment is kept, in milliseconds; -1 is forever. Without it, log.retention.minutes is used."
    ),
    "log.retention.minutes": (
        "How long a segment is kept, in minutes. Without it, log.retention.hours is used; log.retention.ms takes "
        "precedence."
    ),
    "log.retention.hours": "How long a segment is kept, in hours. The other two units take precedence.",
    "log.retention.bytes": "Size at which the oldest segments of a partition are removed; -1 is no limit.",
    "log.retention.check.interval.ms": "How often the broker checks for segments to remove.",
    "log.cleanup.policy": "What is done with old segments by default: delete, compact, or both.",
    "log.index.size.max.bytes": "Largest size of an offset index, in bytes.",
    "log.index.interval.bytes": "Bytes of log between two index entries, about.",
    "log.flush.interval.messages": "Records after which a partition is synced to disk.",
    "log.segment.delete.delay.ms": "How long the file of a removed segment stays on disk, renamed to .deleted.",
    "log.flush.scheduler.interval.ms": "How often the broker checks for logs to sync.",
    "log.flush.interval.ms": (
        "Longest time between the append of a record and the sync of its log. "
        "Without it, log.flush.scheduler.interval.ms is used."
    ),
    "log.flush.offset.checkpoint.interval.ms": (
        "How often recovery points are written. After a crash, a log is checked only from its recovery point on."
    ),
    "log.flush.start.offset.checkpoint.interval.ms": "How often log start offsets are written.",
    "log.preallocate": "Whether the file of a new segment is allocated at its full size.",
    "num.recovery.threads.per.data.dir": "Threads per log directory, for recovery at start and syncing at shutdown.",
    "auto.create.topics.enable": "Whether a topic is created when a client first uses its name.",
    "min.insync.replicas": (
        "In-sync replicas that a produce request with acks=all needs to be accepted."
    ),
    "log.message.format.version": (
        "Record format to write. Deprecated: ignored since inter.broker.protocol.version 3.0."
    ),
    "log.message.timestamp.type": "Whether a record has the timestamp of its producer or that of its append.",
    "log.message.timestamp.difference.max.ms": (
        "How far a record's timestamp may be from the broker's clock. Deprecated: use the keys for before and "
        "after."
    ),
    "log.message.timestamp.before.max.ms": "How far a record's timestamp may be behind the broker's clock.",
    "log.message.timestamp.after.max.ms": "How far a record's timestamp may be ahead of the broker's clock.",
    "create.topic.policy.class.name": "Java class that can refuse the creation of topics.",
    "alter.config.policy.class.name": "Java class that can refuse configuration changes.",
    "log.message.downconversion.enable": "Whether records are converted to an older format for old consumers.",
    "log.dir.failure.timeout.ms": (
        "How long a KRaft broker tries to report a failed log directory to the controller before it stops."
    ),
    "log.initial.task.delay.ms": "Delay between the start and the first run of the log's background tasks.",
}
# fmt: on
