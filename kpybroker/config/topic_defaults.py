"""The topic defaults that a broker's configuration gives (`KafkaConfig.extractLogConfigMap`)."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from kpybroker.config.keys.synonyms import TOPIC_SYNONYMS
from kpybroker.config.topic import KAFKA_DEFAULTS, LogConfig, field_name
from kpybroker.config.values import LONG_MAX

if TYPE_CHECKING:
    from kpybroker.config.broker import BrokerConfig

_COMPOSED: Final = frozenset({"segment.ms", "segment.jitter.ms", "retention.ms", "flush.ms", "cleanup.policy"})


def topic_defaults(config: BrokerConfig) -> LogConfig:
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
        if values[newer] == LONG_MAX:  # KIP-937: the older key stands in for the newer ones
            values[newer] = difference
    return dataclasses.replace(KAFKA_DEFAULTS, **values)
