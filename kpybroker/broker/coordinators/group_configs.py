"""What groups set for themselves, as `/config/groups` has it, in the form in which their machines ask for it.

A machine asks at every heartbeat, so a change holds from the next one on, of the group or of the broker's defaults.
Bounded by the tree: a group that sets nothing has no entry. `core.consumer_group` is imported when a group first sets
or needs something.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

from kpybroker.wire import znodes

if TYPE_CHECKING:
    from kpybroker.config.broker import BrokerConfig
    from kpybroker.core.consumer_group.values import ConsumerGroupConfig
    from kpybroker.core.share.group_settings import ShareGroupSettings

logger = logging.getLogger("org.apache.kafka.coordinator.group.GroupConfig")

DYNAMIC_DEFAULT: Final = "group.consumer.assignment.interval.ms"
"""The one of the broker's keys for groups that may change while it runs."""


class GroupConfigs:
    """`update` follows the tree; `of` is what holds for a group now."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._set: dict[str, Mapping[str, str]] = {}
        self._configured: dict[str, ConsumerGroupConfig] = {}
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

    def of(self, group_id: str) -> ConsumerGroupConfig:
        """The group's own values within the broker's bounds, and the broker's where it sets none."""
        return self._configured.get(group_id) or self._broker_wide

    def share_of(self, group_id: str) -> ShareGroupSettings:
        """What holds for a share group now: its partitions, resets and isolation. No group sets anything of it yet."""
        return self._share_wide

    @cached_property
    def _share_wide(self) -> ShareGroupSettings:
        from kpybroker.core.share.group_settings import ShareGroupSettings

        return ShareGroupSettings()

    @cached_property
    def _broker_wide(self) -> ConsumerGroupConfig:
        return self._effective("", {})

    def _broker_changed(self, names: frozenset[str]) -> None:
        if DYNAMIC_DEFAULT not in names:
            return
        self.__dict__.pop("_broker_wide", None)
        self._configured = {group_id: self._effective(group_id, props) for group_id, props in self._set.items()}

    def _effective(self, group_id: str, props: Mapping[str, str]) -> ConsumerGroupConfig:
        from kpybroker.config.groups.keys import ASSIGNMENT_INTERVAL_MS, HEARTBEAT_INTERVAL_MS, SESSION_TIMEOUT_MS
        from kpybroker.config.groups.rules import effective
        from kpybroker.core.consumer_group.values import ConsumerGroupConfig

        values, warnings = effective(self._config, group_id, props)
        for sentence in warnings:
            logger.warning("%s", sentence)
        return ConsumerGroupConfig(
            session_timeout_ms=values[SESSION_TIMEOUT_MS],
            heartbeat_interval_ms=values[HEARTBEAT_INTERVAL_MS],
            assignment_interval_ms=values[ASSIGNMENT_INTERVAL_MS],
        )
