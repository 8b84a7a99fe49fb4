"""The topic keys of Kafka 3.9.1 (`LogConfig`), in the order in which Kafka lists them, and what Kafka 4 added.

A row is: name, type, default, validator, importance, the broker keys that give its default (the first that is set wins;
`synonyms` has the units), status.
"""

from __future__ import annotations

from typing import Final

from kpybroker.config.keys.status import (
    HONOURED,
    NO_TIERED_STORAGE,
    SINCE_3_0_IGNORED,
)
from kpybroker.config.values import (
    ANYTHING,
    BOOLEAN,
    DOUBLE,
    GZIP_LEVEL,
    INT,
    LIST,
    LONG,
    METADATA_VERSION,
    STRING,
    THROTTLED_REPLICAS,
    Validator,
    at_least,
    between,
    list_of,
    one_of,
)

MEDIUM: Final = "MEDIUM"
LOW: Final = "LOW"
_LONG_MAX: Final = "9223372036854775807"
_CODECS: Final = one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")

TopicRow = tuple[str, str, str | None, Validator, str, tuple[str, ...], str]

# fmt: off
TOPIC_ROWS: Final[tuple[TopicRow, ...]] = (
    ("segment.bytes", INT, "1073741824", at_least(14), MEDIUM, ("log.segment.bytes",), HONOURED),
    ("segment.ms", LONG, "604800000", at_least(1), MEDIUM, ("log.roll.ms", "log.roll.hours"), HONOURED),
    ("segment.jitter.ms", LONG, "0", at_least(0), MEDIUM, ("log.roll.jitter.ms",
     "log.roll.jitter.hours"), HONOURED),
    ("segment.index.bytes", INT, "10485760", at_least(4), MEDIUM, ("log.index.size.max.bytes",), HONOURED),
    ("flush.messages", LONG, _LONG_MAX, at_least(1), MEDIUM, ("log.flush.interval.messages",), HONOURED),
    ("flush.ms", LONG, _LONG_MAX, at_least(0), MEDIUM,
     ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"), HONOURED),
    ("retention.bytes", LONG, "-1", ANYTHING, MEDIUM, ("log.retention.bytes",), HONOURED),
    ("retention.ms", LONG, "604800000", at_least(-1), MEDIUM,
     ("log.retention.ms", "log.retention.minutes", "log.retention.hours"), HONOURED),
    ("max.message.bytes", INT, "1048588", at_least(0), MEDIUM, ("message.max.bytes",), HONOURED),
    ("index.interval.bytes", INT, "4096", at_least(0), MEDIUM, ("log.index.interval.bytes",), HONOURED),
    ("delete.retention.ms", LONG, "86400000", at_least(0), MEDIUM,
     ("log.cleaner.delete.retention.ms",), HONOURED),
    ("min.compaction.lag.ms", LONG, "0", at_least(0), MEDIUM,
     ("log.cleaner.min.compaction.lag.ms",), HONOURED),
    ("max.compaction.lag.ms", LONG, _LONG_MAX, at_least(1), MEDIUM,
     ("log.cleaner.max.compaction.lag.ms",), HONOURED),
    ("file.delete.delay.ms", LONG, "60000", at_least(0), MEDIUM, ("log.segment.delete.delay.ms",), HONOURED),
    ("min.cleanable.dirty.ratio", DOUBLE, "0.5", between(0, 1), MEDIUM,
     ("log.cleaner.min.cleanable.ratio",), HONOURED),
    ("cleanup.policy", LIST, "delete", list_of("compact", "delete"), MEDIUM,
     ("log.cleanup.policy",), HONOURED),
    ("unclean.leader.election.enable", BOOLEAN, "false", ANYTHING, MEDIUM,
     ("unclean.leader.election.enable",), HONOURED),
    ("min.insync.replicas", INT, "1", at_least(1), MEDIUM, ("min.insync.replicas",), HONOURED),
    ("compression.type", STRING, "producer", _CODECS, MEDIUM, ("compression.type",), HONOURED),
    ("compression.gzip.level", INT, "-1", GZIP_LEVEL, MEDIUM, ("compression.gzip.level",), HONOURED),
    ("compression.lz4.level", INT, "9", between(1, 17), MEDIUM, ("compression.lz4.level",), HONOURED),
    ("compression.zstd.level", INT, "3", between(-131072, 22), MEDIUM, ("compression.zstd.level",), HONOURED),
    ("preallocate", BOOLEAN, "false", ANYTHING, MEDIUM, ("log.preallocate",), HONOURED),
    ("message.format.version", STRING, "3.0-IV1", METADATA_VERSION, MEDIUM,
     ("log.message.format.version",), SINCE_3_0_IGNORED),
    ("message.timestamp.type", STRING, "CreateTime", one_of("CreateTime", "LogAppendTime"), MEDIUM,
     ("log.message.timestamp.type",), HONOURED),
    ("message.timestamp.difference.max.ms", LONG, _LONG_MAX, at_least(0), MEDIUM,
     ("log.message.timestamp.difference.max.ms",), HONOURED),
    ("message.timestamp.before.max.ms", LONG, _LONG_MAX, at_least(0), MEDIUM,
     ("log.message.timestamp.before.max.ms",), HONOURED),
    ("message.timestamp.after.max.ms", LONG, _LONG_MAX, at_least(0), MEDIUM,
     ("log.message.timestamp.after.max.ms",), HONOURED),
    ("leader.replication.throttled.replicas", LIST, "", THROTTLED_REPLICAS, MEDIUM, (), HONOURED),
    ("follower.replication.throttled.replicas", LIST, "", THROTTLED_REPLICAS, MEDIUM, (), HONOURED),
    ("message.downconversion.enable", BOOLEAN, "true", ANYTHING, LOW,
     ("log.message.downconversion.enable",), HONOURED),
    ("remote.storage.enable", BOOLEAN, "false", ANYTHING, MEDIUM, (), NO_TIERED_STORAGE),
    ("local.retention.ms", LONG, "-2", at_least(-2), MEDIUM, ("log.local.retention.ms",), NO_TIERED_STORAGE),
    ("local.retention.bytes", LONG, "-2", at_least(-2), MEDIUM, ("log.local.retention.bytes",),
     NO_TIERED_STORAGE),
    ("remote.log.copy.disable", BOOLEAN, "false", ANYTHING, MEDIUM, (), NO_TIERED_STORAGE),
    ("remote.log.delete.on.disable", BOOLEAN, "false", ANYTHING, MEDIUM, (), NO_TIERED_STORAGE),
    ("internal.segment.bytes", INT, None, ANYTHING, MEDIUM, (), HONOURED),
)
# fmt: on

TOPIC_KEYS: Final[dict[str, TopicRow]] = {row[0]: row for row in TOPIC_ROWS}
"""By name."""
