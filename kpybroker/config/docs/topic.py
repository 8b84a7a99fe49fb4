"""What the topic keys are for, in our words. Loaded only when somebody asks for documentation."""

from __future__ import annotations

from typing import Final

# fmt: off
DOCS: Final[dict[str, str]] = {
    "segment.bytes": (
        "Size at which the active segment is closed and a new one begun. Retention and compaction work on whole "
        "closed segments."
    ),
    "segment.ms": (
        "Age at which the active segment is closed even if it is not full, so that its records can be removed or "
        "compacted."
    ),
    "segment.jitter.ms": (
        "Up to this much, at random, is taken off the segment's age limit, so that many partitions do not roll at "
        "once."
    ),
    "segment.index.bytes": "Largest size of an index file. Rarely worth changing.",
    "flush.messages": (
        "How many records may be appended before the log is synced to disk. 1 makes every acknowledgement wait "
        "for the disk."
    ),
    "flush.ms": "How long an appended record may wait before the log is synced to disk.",
    "retention.bytes": (
        "How much a partition may hold before its oldest segments are removed; -1 is no limit. Counts for the "
        "delete policy, per partition."
    ),
    "retention.ms": (
        "How long a record is kept before its segment may be removed under the delete policy; -1 is for ever."
    ),
    "max.message.bytes": "Largest record batch that is accepted, after compression.",
    "index.interval.bytes": "One index entry is written for about this many bytes of log.",
    "delete.retention.ms": (
        "How long a tombstone stays in a compacted topic, so that readers who started before it can see it."
    ),
    "min.compaction.lag.ms": "How long a record is safe from compaction.",
    "max.compaction.lag.ms": "How long a record may wait to become eligible for compaction.",
    "file.delete.delay.ms": "How long a removed segment's file stays on disk under its .deleted name.",
    "min.cleanable.dirty.ratio": "Share of the log that has to be uncleaned before compaction starts on it.",
    "cleanup.policy": (
        "What becomes of old segments: delete removes them by age or size, compact keeps the last record of every "
        "key; both may be set."
    ),
    "unclean.leader.election.enable": (
        "Whether a replica that is not in sync may lead when no other is left, at the price of lost records."
    ),
    "min.insync.replicas": (
        "With acks=all, how many replicas have to be in sync for a produce request to be accepted."
    ),
    "compression.type": "How batches are stored: with one codec, uncompressed, or (producer) as they arrive.",
    "compression.gzip.level": "Level used where compression.type is gzip; -1 is the codec's own default.",
    "compression.lz4.level": "Level used where compression.type is lz4.",
    "compression.zstd.level": "Level used where compression.type is zstd.",
    "preallocate": "Whether a new segment's file is made at its full size at once.",
    "message.format.version": (
        "Format in which records were to be written. Deprecated: ignored since inter.broker.protocol.version 3.0."
    ),
    "message.timestamp.type": "Whether a record carries the time its producer gave it or the time of its append.",
    "message.timestamp.difference.max.ms": (
        "How far a record's timestamp may lie from the broker's clock. Deprecated in favour of the two keys for "
        "before and after."
    ),
    "message.timestamp.before.max.ms": (
        "How far a record's timestamp may lie behind the broker's clock. Ignored with LogAppendTime."
    ),
    "message.timestamp.after.max.ms": (
        "How far a record's timestamp may lie ahead of the broker's clock. Ignored with LogAppendTime."
    ),
    "leader.replication.throttled.replicas": (
        "Replicas whose replication is throttled on the leader's side, as partition:broker pairs, or * for all."
    ),
    "follower.replication.throttled.replicas": (
        "Replicas whose replication is throttled on the follower's side, as partition:broker pairs, or * for all."
    ),
    "message.downconversion.enable": (
        "Whether old consumers are served by converting records to an older format; otherwise they get "
        "UNSUPPORTED_VERSION."
    ),
    "remote.storage.enable": "Whether the topic's closed segments are also kept in remote storage.",
    "local.retention.ms": (
        "How long segments stay on local disk once they are in remote storage; -2 takes retention.ms."
    ),
    "local.retention.bytes": (
        "How much of a partition stays on local disk once it is in remote storage; -2 takes retention.bytes."
    ),
    "remote.log.copy.disable": "Whether copying to remote storage is stopped while what lies there stays readable.",
    "remote.log.delete.on.disable": "Whether disabling remote storage also removes what lies there.",
}
# fmt: on
