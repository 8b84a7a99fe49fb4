"""What the log keys are for, in our words. Loaded only when somebody asks for documentation."""

from __future__ import annotations

from typing import Final

# fmt: off
DOCS: Final[dict[str, str]] = {
    "message.max.bytes": (
        "Largest record batch that is accepted, after compression, where a topic does not say otherwise."
    ),
    "num.replica.alter.log.dirs.threads": "Threads that move replicas between log directories.",
    "delete.topic.enable": "Whether topics can be deleted. If false, a request to delete one is refused.",
    "compression.type": (
        "How batches are stored where a topic does not say otherwise: with one codec, uncompressed, or (producer) "
        "as they arrive."
    ),
    "compression.gzip.level": "Level used where compression.type is gzip; -1 is the codec's own default.",
    "compression.lz4.level": "Level used where compression.type is lz4.",
    "compression.zstd.level": "Level used where compression.type is zstd.",
    "log.cleaner.threads": "Threads that compact logs.",
    "log.cleaner.io.max.bytes.per.second": "Bytes that compaction may read and write a second, all of it together.",
    "log.cleaner.dedupe.buffer.size": "Memory for the map of last offsets by key, over all cleaner threads.",
    "log.cleaner.io.buffer.size": "Memory for reading and writing while compacting, over all cleaner threads.",
    "log.cleaner.io.buffer.load.factor": (
        "How full the map of last offsets may become. Fuller cleans more at once, with more collisions."
    ),
    "log.cleaner.backoff.ms": "How long the cleaner rests when there is nothing to clean.",
    "log.cleaner.min.cleanable.ratio": "Share of a log that has to be uncleaned before compaction starts on it.",
    "log.cleaner.enable": "Whether the cleaner runs. The offsets topic relies on it.",
    "log.cleaner.delete.retention.ms": (
        "How long a tombstone stays in a compacted log, so that readers who started before it can see it."
    ),
    "log.cleaner.min.compaction.lag.ms": "How long a record is safe from compaction.",
    "log.cleaner.max.compaction.lag.ms": "How long a record may wait to become eligible for compaction.",
    "num.partitions": "Partitions of a topic that is created without saying how many.",
    "log.dir": "The one log directory. log.dirs stands before it.",
    "log.dirs": "Log directories, separated by commas; without it, log.dir is used.",
    "log.segment.bytes": "Size at which a log's active segment is closed and a new one begun.",
    "log.roll.ms": "Age at which the active segment is closed, in milliseconds. Without it, log.roll.hours counts.",
    "log.roll.hours": "Age at which the active segment is closed, in hours. log.roll.ms stands before it.",
    "log.roll.jitter.ms": (
        "Up to this much, at random, is taken off the roll time, in milliseconds. Without it, "
        "log.roll.jitter.hours counts."
    ),
    "log.roll.jitter.hours": (
        "Up to this much, at random, is taken off the roll time, in hours. log.roll.jitter.ms stands before it."
    ),
    "log.retention.ms": (
        "How long a segment is kept, in milliseconds; -1 is for ever. Without it, log.retention.minutes counts."
    ),
    "log.retention.minutes": (
        "How long a segment is kept, in minutes. Without it, log.retention.hours counts; log.retention.ms stands "
        "before it."
    ),
    "log.retention.hours": "How long a segment is kept, in hours. The other two units stand before it.",
    "log.retention.bytes": "How much a partition may hold before its oldest segments are removed; -1 is no limit.",
    "log.retention.check.interval.ms": "How often the broker looks for segments to remove.",
    "log.cleanup.policy": "What becomes of old segments by default: delete, compact, or both.",
    "log.index.size.max.bytes": "Largest size of an offset index, in bytes.",
    "log.index.interval.bytes": "One index entry is written for about this many bytes of log.",
    "log.flush.interval.messages": "How many records a partition may take before it is synced to disk.",
    "log.segment.delete.delay.ms": "How long a removed segment's file stays on disk under its .deleted name.",
    "log.flush.scheduler.interval.ms": "How often the broker looks for logs that are due to be synced.",
    "log.flush.interval.ms": (
        "How long a record may wait before its log is synced. Without it, log.flush.scheduler.interval.ms counts."
    ),
    "log.flush.offset.checkpoint.interval.ms": (
        "How often recovery points are written down: what lies before them needs no check after a crash."
    ),
    "log.flush.start.offset.checkpoint.interval.ms": "How often log start offsets are written down.",
    "log.preallocate": "Whether a new segment's file is made at its full size at once.",
    "num.recovery.threads.per.data.dir": "Threads a log directory for recovery at start and for syncing at the end.",
    "auto.create.topics.enable": "Whether a topic is created when a client first names it.",
    "min.insync.replicas": (
        "With acks=all, how many replicas have to be in sync for a produce request to be accepted."
    ),
    "log.message.format.version": (
        "Format in which records were to be written. Deprecated: ignored since inter.broker.protocol.version 3.0."
    ),
    "log.message.timestamp.type": "Whether a record carries the time its producer gave it or the time of its append.",
    "log.message.timestamp.difference.max.ms": (
        "How far a record's timestamp may lie from the broker's clock. Deprecated in favour of the keys for "
        "before and after."
    ),
    "log.message.timestamp.before.max.ms": "How far a record's timestamp may lie behind the broker's clock.",
    "log.message.timestamp.after.max.ms": "How far a record's timestamp may lie ahead of the broker's clock.",
    "create.topic.policy.class.name": "Java class that may refuse the creation of topics.",
    "alter.config.policy.class.name": "Java class that may refuse changes of configuration.",
    "log.message.downconversion.enable": "Whether old consumers are served by converting records to an older format.",
    "log.dir.failure.timeout.ms": (
        "How long a KRaft broker waits for the controller to learn of a failed log directory before it stops."
    ),
    "log.initial.task.delay.ms": "How long after the start the log's background work begins.",
}
# fmt: on
