"""What a topic's configuration requires of an append, computed once per configuration."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache

from kpybroker.config.topic import LogConfig
from kpybroker.wire.compression import CODEC_NAMES, Codec
from kpybroker.wire.records.batch import TimestampType
from kpybroker.wire.records.default_record import HEADER_BYTES_MIN, INT64_MAX, RECORD_BYTES_MIN

UNCOMPRESSED_BYTES_MAX = 28 * 1024 * 1024
"""A codec's window may take as much again (zstd's does); both fit into the 64 MiB that one input may cost."""

CHECKED_RECORDS_MIN = 150_000
"""Records that a batch may always have where each of them must be checked."""
CHECKED_HEADERS_MIN = 500_000
"""Headers that its records may always have together there."""


@dataclass(frozen=True, slots=True)
class AppendRules:
    """How batches appended to a topic are checked and converted; see `append_rules`.

    `codec` None keeps the producer's (`compression.type=producer`). `check_every_record` reads every record, as Kafka
    does. `to_magic` below 2 is for clusters whose inter.broker.protocol.version is below 3.0.
    """

    max_message_bytes: int = 1048588
    compacted: bool = False
    codec: Codec | None = None
    level: int | None = None
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    timestamp_before_max_ms: int = INT64_MAX
    timestamp_after_max_ms: int = INT64_MAX
    to_magic: int = 2
    check_every_record: bool = False
    max_uncompressed_bytes: int = UNCOMPRESSED_BYTES_MAX
    opaque: bool = field(init=False)
    """Whether a batch that needs no conversion is stored without reading its records."""
    fast: bool = field(init=False)
    """Whether validation may try its fast path: `opaque`, and only the codec can call for a conversion."""
    as_sent: bool = field(init=False)
    """Whether a sound batch is stored as it was sent: `fast`, and the topic keeps the producer's codec."""
    max_checked_records: int = field(init=False)
    """As many of the smallest records as fit into a batch of `max_message_bytes` without compression."""
    max_checked_headers: int = field(init=False)
    """As many of the smallest headers, of all its records together."""

    def __post_init__(self) -> None:
        bounded = self.timestamp_type is TimestampType.CREATE_TIME and (
            self.timestamp_before_max_ms < INT64_MAX or self.timestamp_after_max_ms < INT64_MAX
        )
        opaque = not (self.check_every_record or self.compacted or bounded)
        fast = opaque and self.to_magic == 2 and self.timestamp_type is TimestampType.CREATE_TIME
        object.__setattr__(self, "opaque", opaque)
        object.__setattr__(self, "fast", fast)
        object.__setattr__(self, "as_sent", fast and self.codec is None)
        object.__setattr__(
            self, "max_checked_records", max(self.max_message_bytes // RECORD_BYTES_MIN, CHECKED_RECORDS_MIN)
        )
        object.__setattr__(
            self, "max_checked_headers", max(self.max_message_bytes // HEADER_BYTES_MIN, CHECKED_HEADERS_MIN)
        )

    def strict(self) -> AppendRules:
        """The same rules, for a batch whose header is not to be believed."""
        return replace(self, check_every_record=True)


@lru_cache(maxsize=64)
def append_rules(config: LogConfig, *, check_every_record: bool = False, to_magic: int = 2) -> AppendRules:
    """The rules that follow from a topic's configuration; partitions of one share them."""
    codec = _TARGET_CODECS[config.compression_type]
    levels = {
        Codec.GZIP: config.compression_gzip_level,
        Codec.LZ4: config.compression_lz4_level,
        Codec.ZSTD: config.compression_zstd_level,
    }
    log_append = config.message_timestamp_type == "LogAppendTime"
    return AppendRules(
        max_message_bytes=config.max_message_bytes,
        compacted="compact" in config.cleanup_policy,
        codec=codec,
        level=None if codec is None else levels.get(codec),
        timestamp_type=TimestampType.LOG_APPEND_TIME if log_append else TimestampType.CREATE_TIME,
        timestamp_before_max_ms=config.message_timestamp_before_max_ms,
        timestamp_after_max_ms=config.message_timestamp_after_max_ms,
        to_magic=to_magic,
        check_every_record=check_every_record,
        max_uncompressed_bytes=max(UNCOMPRESSED_BYTES_MAX, config.max_message_bytes),
    )


_TARGET_CODECS: dict[str, Codec | None] = {
    "producer": None,
    "uncompressed": Codec.NONE,
    **{name: codec for name, codec in CODEC_NAMES.items() if codec is not Codec.NONE},
}
