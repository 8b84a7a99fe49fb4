"""What groups set for themselves, as `/config/groups` has it, in the form in which their machines ask for it.

A machine asks at every heartbeat, so a change holds from the next one on, of the group or of the broker's defaults.
Bounded by the tree: a group that sets nothing has no entry. `core.consumer_group`, `core.share_group` and
`core.streams_group` are imported when a group first sets or needs something.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from kpybroker.wire import znodes

if TYPE_CHECKING:
    from kpybroker.config.broker import BrokerConfig
    from kpybroker.config.values import Value
    from kpybroker.core.modern_group.values import ModernGroupConfig
    from kpybroker.core.share.group_settings import ShareGroupSettings
    from kpybroker.core.streams_group.values import StreamsGroupConfig

logger = logging.getLogger("org.apache.kafka.coordinator.group.GroupConfig")

DYNAMIC_DEFAULTS: Final = frozenset(
    {
        "group.consumer.assignment.interval.ms",
        "group.share.assignment.interval.ms",
        "group.streams.assignment.interval.ms",
    }
)
"""Those of the broker's keys for groups that may change while it runs."""


class Configured(NamedTuple):
    """What holds for a group: by key, and as its machine asks for it, whichever kind it is of."""

    values: Mapping[str, Value]
    consumer: ModernGroupConfig
    share: ModernGroupConfig
    share_partitions: ShareGroupSettings
    streams: StreamsGroupConfig


class GroupConfigs:
    """`update` follows the tree; the others are what holds for a group now: its own values within the broker's bounds,
    and the broker's where it sets none.
    """

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._set: dict[str, Mapping[str, str]] = {}
        self._configured: dict[str, Configured] = {}
        config.on_change(self._broker_changed)

    def update(self, entity: str, props: Mapping[str, str]) -> None:
        """A group has these properties now; `entity` is its name in the tree."""
        group_id = znodes.group_of_entity(entity)
        if props:
            self._set[group_id] = dict(props)
            self._configured[group_id] = self._effective(group_id, props)
        else:
            self._set.pop(group_id, None)
            self._configured.pop(group_id, None)

    def of(self, group_id: str) -> ModernGroupConfig:
        """Of a consumer group."""
        return (self._configured.get(group_id) or self._broker_wide).consumer

    def of_share_group(self, group_id: str) -> ModernGroupConfig:
        """Of a share group: what concerns its members."""
        return (self._configured.get(group_id) or self._broker_wide).share

    def of_streams_group(self, group_id: str) -> StreamsGroupConfig:
        """Of a streams group: what concerns its members and their tasks."""
        return (self._configured.get(group_id) or self._broker_wide).streams

    def values_of(self, group_id: str) -> Mapping[str, Value]:
        """All keys of `config.groups.keys`; a new object after a change."""
        return (self._configured.get(group_id) or self._broker_wide).values

    def of_share_partitions(self, group_id: str) -> ShareGroupSettings:
        """Of a share group: what concerns the records that it consumes."""
        return (self._configured.get(group_id) or self._broker_wide).share_partitions

    @cached_property
    def _broker_wide(self) -> Configured:
        return self._effective("", {})

    def _broker_changed(self, names: frozenset[str]) -> None:
        if DYNAMIC_DEFAULTS.isdisjoint(names):
            return
        self.__dict__.pop("_broker_wide", None)
        self._configured = {group_id: self._effective(group_id, props) for group_id, props in self._set.items()}

    def _effective(self, group_id: str, props: Mapping[str, str]) -> Configured:
        from kpybroker.config.groups import keys
        from kpybroker.config.groups.rules import effective
        from kpybroker.core.modern_group.values import ModernGroupConfig
        from kpybroker.core.streams_group.values import StreamsGroupConfig

        values, warnings = effective(self._config, group_id, props)
        for sentence in warnings:
            logger.warning("%s", sentence)
        consumer = ModernGroupConfig(
            session_timeout_ms=values[keys.SESSION_TIMEOUT_MS],
            heartbeat_interval_ms=values[keys.HEARTBEAT_INTERVAL_MS],
            assignment_interval_ms=values[keys.ASSIGNMENT_INTERVAL_MS],
        )
        share = ModernGroupConfig(
            session_timeout_ms=values[keys.SHARE_SESSION_TIMEOUT_MS],
            heartbeat_interval_ms=values[keys.SHARE_HEARTBEAT_INTERVAL_MS],
            assignment_interval_ms=values[keys.SHARE_ASSIGNMENT_INTERVAL_MS],
        )
        streams = StreamsGroupConfig(
            session_timeout_ms=values[keys.STREAMS_SESSION_TIMEOUT_MS],
            heartbeat_interval_ms=values[keys.STREAMS_HEARTBEAT_INTERVAL_MS],
            assignment_interval_ms=values[keys.STREAMS_ASSIGNMENT_INTERVAL_MS],
            initial_rebalance_delay_ms=values[keys.STREAMS_INITIAL_REBALANCE_DELAY_MS],
            standby_replicas=values[keys.STREAMS_NUM_STANDBY_REPLICAS],
        )
        return Configured(values, consumer, share, _share_partitions(values), streams)


def _share_partitions(values: Mapping[str, Value]) -> ShareGroupSettings:
    from kpybroker.config.groups import keys
    from kpybroker.core.share.group_settings import ShareGroupSettings, parse_offset_reset
    from kpybroker.core.share.values import ShareSettings

    return ShareGroupSettings(
        partition=ShareSettings(
            record_lock_duration_ms=values[keys.SHARE_RECORD_LOCK_DURATION_MS],
            delivery_count_limit=values[keys.SHARE_DELIVERY_COUNT_LIMIT],
            partition_max_record_locks=values[keys.SHARE_PARTITION_MAX_RECORD_LOCKS],
            renew_acknowledge_enabled=values[keys.SHARE_RENEW_ACKNOWLEDGE_ENABLE],
        ),
        offset_reset=parse_offset_reset(values[keys.SHARE_AUTO_OFFSET_RESET]),
        reads_committed=values[keys.SHARE_ISOLATION_LEVEL] == keys.READ_COMMITTED,
    )
