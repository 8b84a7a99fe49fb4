"""One sentence on each topic key. Imported only for DescribeConfigs with documentation and for the page."""

from __future__ import annotations

from typing import Final

# fmt: off
DOCS: Final[dict[str, str]] = {
    "segment.bytes": (
        "Size at which the active segment is closed and a new one is created. Retention and compaction work on whole "
        "closed segments."
    ),
    "segment.ms": (
        "Age at which the active segment is closed even if it is not full, so that its records can be removed or "
        "compacted."
    ),
    "segment.jitter.ms": (
        "The age limit of a segment is shortened by a random amount up to this, so that many partitions do not "
        "roll at once."
    ),
    "segment.index.bytes": "Largest size of an index file. Rarely worth changing.",
    "flush.messages": (
        "Records after which the log is synced to disk. With 1, every acknowledgement waits for the disk."
    ),
    "flush.ms": "Longest time between the append of a record and the sync of its log.",
    "retention.bytes": (
        "Size at which the oldest segments of a partition are removed; -1 is no limit. For the delete policy."
    ),
    "retention.ms": (
        "How long a record is kept before its segment may be removed, under the delete policy; -1 is forever."
    ),
    "max.message.bytes": "Largest record batch that is accepted, in bytes after compression.",
    "index.interval.bytes": "Bytes of log between two index entries, about.",
    "delete.retention.ms": (
        "How long a tombstone stays in a compacted topic, so that a reader that started before it can see it."
    ),
    "min.compaction.lag.ms": "How long a record is not compacted.",
    "max.compaction.lag.ms": "How long a record may wait to become eligible for compaction.",
    "file.delete.delay.ms": "How long the file of a removed segment stays on disk, renamed to .deleted.",
    "min.cleanable.dirty.ratio": "Share of the log that must be uncleaned before it is compacted.",
    "cleanup.policy": (
        "What is done with old segments: delete removes them by age or size, compact keeps the last record of "
        "each key; both may be set."
    ),
    "unclean.leader.election.enable": (
        "Whether a replica that is not in sync may become leader when no other is left. Records may be lost."
    ),
    "min.insync.replicas": (
        "In-sync replicas that a produce request with acks=all needs to be accepted."
    ),
    "compression.type": "How batches are stored: with one codec, uncompressed, or (producer) as received.",
    "compression.gzip.level": "Level used where compression.type is gzip; -1 is the codec's own default.",
    "compression.lz4.level": "Level used where compression.type is lz4.",
    "compression.zstd.level": "Level used where compression.type is zstd.",
    "preallocate": "Whether the file of a new segment is allocated at its full size.",
    "message.format.version": (
        "Record format to write. Deprecated: ignored since inter.broker.protocol.version 3.0."
    ),
    "message.timestamp.type": "Whether a record has the timestamp of its producer or that of its append.",
    "message.timestamp.difference.max.ms": (
        "How far a record's timestamp may be from the broker's clock. Deprecated: use the two keys for before "
        "and after."
    ),
    "message.timestamp.before.max.ms": (
        "How far a record's timestamp may be behind the broker's clock. Ignored with LogAppendTime."
    ),
    "message.timestamp.after.max.ms": (
        "How far a record's timestamp may be ahead of the broker's clock. Ignored with LogAppendTime."
    ),
    "leader.replication.throttled.replicas": (
        "Replicas whose replication is throttled on the leader, as partition:broker pairs, or * for all."
    ),
    "follower.replication.throttled.replicas": (
        "Replicas whose replication is throttled on the follower, as partition:broker pairs, or * for all."
    ),
    "message.downconversion.enable": (
        "Whether records are converted to an older format for old consumers. If false, those consumers get "
        "UNSUPPORTED_VERSION."
    ),
    "remote.storage.enable": "Whether the topic's closed segments are also kept in remote storage.",
    "local.retention.ms": (
        "How long segments stay on local disk once they are in remote storage; -2 is retention.ms."
    ),
    "local.retention.bytes": (
        "How much of a partition stays on local disk once it is in remote storage; -2 is retention.bytes."
    ),
    "remote.log.copy.disable": "Whether copying to remote storage stops. What is stored there stays readable.",
    "remote.log.delete.on.disable": "Whether disabling remote storage also deletes what is stored there.",
    "internal.segment.bytes": (
        "Takes the place of segment.bytes where it is set, and may be smaller than Kafka 4 allows that to be. Of Kafka "
        "4, which does not list it: it is for tests."
    ),
}
# fmt: on
