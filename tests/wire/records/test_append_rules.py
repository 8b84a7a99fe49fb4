"""A topic's configuration as rules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kpybroker.config.topic import LogConfig
from kpybroker.wire.compression import Codec
from kpybroker.wire.records.append_rules import AppendRules, append_rules
from kpybroker.wire.records.batch import TimestampType

DEFAULTS = LogConfig()


def test_the_default_topic_needs_no_look_at_records() -> None:
    rules = append_rules(DEFAULTS)
    assert rules == AppendRules(max_message_bytes=DEFAULTS.max_message_bytes)
    assert rules.opaque


@pytest.mark.parametrize(
    ("changes", "opaque"),
    [
        ({"cleanup_policy": frozenset({"compact"})}, False),
        ({"cleanup_policy": frozenset({"compact", "delete"})}, False),
        ({"message_timestamp_before_max_ms": 1000}, False),
        ({"message_timestamp_after_max_ms": 1000}, False),
        ({"message_timestamp_after_max_ms": 1000, "message_timestamp_type": "LogAppendTime"}, True),
        ({"message_timestamp_type": "LogAppendTime"}, True),
        ({"compression_type": "gzip"}, True),
    ],
)
def test_records_are_checked_where_the_response_depends_on_them(changes: dict[str, object], opaque: bool) -> None:
    config = replace(DEFAULTS, **changes)  # type: ignore[arg-type]
    assert append_rules(config).opaque is opaque
    assert not append_rules(config, check_every_record=True).opaque


@pytest.mark.parametrize(
    ("name", "codec", "level"),
    [
        ("producer", None, None),
        ("uncompressed", Codec.NONE, None),
        ("gzip", Codec.GZIP, 5),
        ("snappy", Codec.SNAPPY, None),
        ("lz4", Codec.LZ4, 6),
        ("zstd", Codec.ZSTD, 7),
    ],
)
def test_codec_and_level_come_from_their_keys(name: str, codec: Codec | None, level: int | None) -> None:
    config = replace(
        DEFAULTS, compression_type=name, compression_gzip_level=5, compression_lz4_level=6, compression_zstd_level=7
    )
    rules = append_rules(config)
    assert (rules.codec, rules.level) == (codec, level)


def test_the_timestamp_type_is_taken() -> None:
    config = replace(DEFAULTS, message_timestamp_type="LogAppendTime")
    assert append_rules(config).timestamp_type is TimestampType.LOG_APPEND_TIME
