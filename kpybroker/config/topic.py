"""`LogConfig`: the parsed configuration of the logs of one topic.

Fields are Kafka's topic keys with `.` and `-` replaced by `_`. They have the effective values, as in Kafka's
`LogConfig`: the topic's overrides on top of the broker's defaults. `overridden` is the keys that the topic itself sets.
A `LogConfig` is immutable: a configuration change makes a new one for the log.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kpybroker.config.keys.releases import is_kafka_4, topic_keys_of
from kpybroker.config.keys.synonyms import TOPIC_SYNONYMS
from kpybroker.config.keys.topic import TOPIC_KEYS, TopicRow
from kpybroker.config.values import (
    LONG_MAX,
    ConfigConflict,
    ConfigError,
    ConfigTextError,
    Value,
    check_value,
    parse_value,
    without_repetitions,
)

if TYPE_CHECKING:
    from kpybroker.config.config_lookup import ConfigLookup

COMPACT: Final = "compact"
DELETE: Final = "delete"
NO_RETENTION_LIMIT: Final = -1


class UnknownTopicConfig(ValueError):
    """Kafka: `InvalidConfigurationException("Unknown topic config name: x")`."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Unknown topic config name: {name}")
        self.name = name


@dataclasses.dataclass(frozen=True, slots=True)
class LogConfig:
    """One topic's log settings. Sizes in bytes, times in milliseconds."""

    segment_bytes: int = 1024**3
    segment_ms: int = 604_800_000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 * 1024**2
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    retention_bytes: int = NO_RETENTION_LIMIT
    retention_ms: int = 604_800_000
    max_message_bytes: int = 1_048_588
    index_interval_bytes: int = 4096
    delete_retention_ms: int = 86_400_000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LONG_MAX
    file_delete_delay_ms: int = 60_000
    min_cleanable_dirty_ratio: float = 0.5
    cleanup_policy: frozenset[str] = frozenset({DELETE})
    unclean_leader_election_enable: bool = False
    min_insync_replicas: int = 1
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    preallocate: bool = False
    message_format_version: str = "3.0-IV1"
    message_timestamp_type: str = "CreateTime"
    message_timestamp_difference_max_ms: int = LONG_MAX
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_after_max_ms: int = LONG_MAX
    leader_replication_throttled_replicas: tuple[str, ...] = ()
    follower_replication_throttled_replicas: tuple[str, ...] = ()
    message_downconversion_enable: bool = True
    remote_storage_enable: bool = False
    local_retention_ms: int = -2
    local_retention_bytes: int = -2
    remote_log_copy_disable: bool = False
    remote_log_delete_on_disable: bool = False
    internal_segment_bytes: int | None = None
    overridden: frozenset[str] = frozenset()
    max_segment_ms: int = dataclasses.field(init=False, repr=False)
    """Age at which a segment is rolled. In a compacted topic it must become cleanable within its maximum lag."""

    def __post_init__(self) -> None:
        lag_ms = self.max_compaction_lag_ms if self.compact else LONG_MAX
        object.__setattr__(self, "max_segment_ms", min(self.segment_ms, lag_ms))  # asked for by each append

    @property
    def compact(self) -> bool:
        """Whether `cleanup.policy` includes compaction."""
        return COMPACT in self.cleanup_policy

    @property
    def delete(self) -> bool:
        """Whether `cleanup.policy` includes removal by age or size."""
        return DELETE in self.cleanup_policy

    @classmethod
    def from_props(
        cls,
        overrides: Mapping[str, str],
        defaults: LogConfig | None = None,
        keys: Mapping[str, TopicRow] = TOPIC_KEYS,
    ) -> LogConfig:
        """`defaults` (the broker's) with the topic's `overrides` on top, of which `keys` have the rules.

        Raises `ConfigError` for a bad value. Names that are not topic keys are ignored, as in Kafka: ZooKeeper may
        have keys of another version. `validate_topic_props` checks what clients send.
        """
        parsed = {name: parse_topic_value(name, text, keys) for name, text in overrides.items() if name in keys}
        base = defaults if defaults is not None else KAFKA_DEFAULTS
        if not parsed:
            return base
        changes: dict[str, Any] = {field_name(name): _field_value(name, value) for name, value in parsed.items()}
        if "internal_segment_bytes" in changes:  # KIP-1030: below the least size that users may set
            changes["segment_bytes"] = changes["internal_segment_bytes"]
        _apply_timestamp_fallback(changes, base)
        return dataclasses.replace(base, overridden=frozenset(parsed), **changes)


KAFKA_DEFAULTS: Final = LogConfig()


def field_name(key: str) -> str:
    """The field of `LogConfig` with the value of a topic key."""
    return key.replace(".", "_").replace("-", "_")


def _field_value(name: str, value: Value) -> Value:
    return frozenset(value) if name == "cleanup.policy" else value


def _apply_timestamp_fallback(changes: dict[str, Any], base: LogConfig) -> None:
    """KIP-937: the older `difference` key gives the value of each newer key that is left at its default."""
    difference = changes.get("message_timestamp_difference_max_ms", base.message_timestamp_difference_max_ms)
    for newer in ("message_timestamp_before_max_ms", "message_timestamp_after_max_ms"):
        inherited = getattr(base, newer)
        if inherited == base.message_timestamp_difference_max_ms:
            inherited = LONG_MAX  # it only repeats the older key
        if changes.get(newer, inherited) == LONG_MAX:
            changes[newer] = difference


def parse_topic_value(name: str, text: str | None, keys: Mapping[str, TopicRow] = TOPIC_KEYS) -> Value:
    """The checked value of one of `keys`; raises `ConfigError`."""
    _, type_name, _, validator, *_ = keys[name]
    value = without_repetitions(parse_value(name, type_name, text), validator)
    if value is None:
        raise ConfigError(name, None, "Value must be non-null")
    check_value(name, value, validator)
    return value


def validate_topic_props(
    overrides: Mapping[str, str], defaults: LogConfig | None = None, release: str | None = None
) -> LogConfig:
    """The `LogConfig` of `overrides`, checked as CreateTopics and the configuration APIs do (``LogConfig.validate``) in
    a release of Kafka; None: by the rules of 3.9.

    Raises `UnknownTopicConfig`, `ConfigConflict` or `ConfigError`.
    """
    keys = topic_keys_of(release)
    for name in overrides:
        if name not in keys:
            raise UnknownTopicConfig(name)
    config = LogConfig.from_props(overrides, defaults, keys)
    if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
        raise ConfigConflict(
            "min.compaction.lag.ms",
            "conflict topic config setting min.compaction.lag.ms "
            f"({config.min_compaction_lag_ms}) > max.compaction.lag.ms ({config.max_compaction_lag_ms})",
        )
    if not is_kafka_4(release) and (config.remote_log_delete_on_disable or config.remote_log_copy_disable):
        raise ConfigConflict(
            "remote.log.copy.disable",
            "It is invalid to set `remote.log.delete.on.disable` or `remote.log.copy.disable` under Zookeeper's mode.",
        )
    if config.remote_storage_enable:
        raise ConfigTextError(
            "remote.storage.enable",
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        )
    return config


# --- defaults from the broker's keys

_COMPOSED: Final = frozenset({"segment.ms", "segment.jitter.ms", "retention.ms", "flush.ms", "cleanup.policy"})
"""Topic keys whose default is put together from several broker keys, or has another type."""


def topic_defaults(config: ConfigLookup) -> LogConfig:
    """What topics inherit from the broker's keys (``KafkaConfig.extractLogConfigMap``)."""
    values: dict[str, Any] = {
        field_name(topic_key): config.get(broker_key)
        for topic_key, broker_key in TOPIC_SYNONYMS.items()
        if topic_key not in _COMPOSED
    }
    flush_ms = config.get_optional_int("log.flush.interval.ms")
    values["segment_ms"] = config.milliseconds("log.roll")
    values["segment_jitter_ms"] = config.milliseconds("log.roll.jitter")
    values["retention_ms"] = config.milliseconds("log.retention")
    values["flush_ms"] = config.get_int("log.flush.scheduler.interval.ms") if flush_ms is None else flush_ms
    values["cleanup_policy"] = frozenset(config.get_list("log.cleanup.policy"))
    difference = values["message_timestamp_difference_max_ms"]
    for newer in ("message_timestamp_before_max_ms", "message_timestamp_after_max_ms"):
        if values[newer] == LONG_MAX:  # KIP-937, as in _apply_timestamp_fallback
            values[newer] = difference
    return dataclasses.replace(KAFKA_DEFAULTS, **values)
