"""What a group may set, and what holds for it: ``GroupConfig.validate`` and ``GroupConfig.evaluate``, with their texts.

A client may set only what is within the broker's bounds. The bounds may change later, or differ between brokers: what
is stored is then clamped (KIP-1240), with a warning. DescribeConfigs shows what is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from kpybroker.config.groups.keys import (
    ASSIGNMENT_INTERVAL_MS,
    GROUP_KEYS,
    HEARTBEAT_INTERVAL_MS,
    SESSION_TIMEOUT_MS,
)
from kpybroker.config.hash_order import hash_order
from kpybroker.config.values import INT, ConfigConflict, ConfigError, ConfigTextError, check_value, parse_value

if TYPE_CHECKING:
    from kpybroker.config.broker import BrokerConfig

_BOUNDS_ORDER: Final = (HEARTBEAT_INTERVAL_MS, SESSION_TIMEOUT_MS, ASSIGNMENT_INTERVAL_MS)
"""The order in which Kafka looks at bounds."""


class UnknownGroupConfig(ConfigTextError):
    """A name that is not a key of groups."""

    def __init__(self, name: str) -> None:
        super().__init__(name, f"Unknown group config name: {name}")


class Effective(NamedTuple):
    """What holds for a group, by key, and a sentence about each stored value that does not."""

    values: dict[str, int]
    warnings: list[str]


def group_value(config: BrokerConfig, props: Mapping[str, str], name: str) -> int:
    """The value of a key: that of the group, else that of the broker. Raises ConfigError for text of another type."""
    key = GROUP_KEYS[name]
    if name not in props:
        return config.get_int(key.default)
    value: int = parse_value(name, INT, props[name])
    return value


def check_group_props(config: BrokerConfig, props: Mapping[str, str]) -> None:
    """Raise ConfigError unless `props` may be all that a group sets, in the order of Kafka's checks."""
    unknown = props.keys() - GROUP_KEYS.keys()
    if unknown:
        raise UnknownGroupConfig(hash_order(unknown)[0])
    values = {name: _checked(config, props, name) for name in GROUP_KEYS}
    for name in _BOUNDS_ORDER:
        lowest, highest = GROUP_KEYS[name].lowest, GROUP_KEYS[name].highest
        if values[name] < config.get_int(lowest):
            raise ConfigConflict(name, f"{name} must be greater than or equal to {lowest}")
        if values[name] > config.get_int(highest):
            raise ConfigConflict(name, f"{name} must be less than or equal to {highest}")
    if values[SESSION_TIMEOUT_MS] <= values[HEARTBEAT_INTERVAL_MS]:
        raise ConfigConflict(SESSION_TIMEOUT_MS, f"{SESSION_TIMEOUT_MS} must be greater than {HEARTBEAT_INTERVAL_MS}")


def _checked(config: BrokerConfig, props: Mapping[str, str], name: str) -> int:
    value = group_value(config, props, name)
    check_value(name, value, GROUP_KEYS[name].validator)
    return value


def effective(config: BrokerConfig, group_id: str, props: Mapping[str, str]) -> Effective:
    """What holds for a group of which `props` are stored. Never raises: other programs may have written them."""
    values: dict[str, int] = {}
    warnings: list[str] = []
    for name, key in GROUP_KEYS.items():
        try:
            value = _checked(config, props, name)
        except ConfigError as error:
            warnings.append(f"The group config of group '{group_id}' is not used: {error}")
            value = config.get_int(key.default)
        lowest, highest = config.get_int(key.lowest), config.get_int(key.highest)
        values[name] = min(max(value, lowest), highest)
        if values[name] != value:
            bound = f"is below the broker's allowed minimum {lowest}"
            if value > highest:
                bound = f"exceeds the broker's allowed maximum {highest}"
            what = f"group config '{name}' for group '{group_id}'" if name in props else f"config '{key.default}'"
            warnings.append(
                f"The {what} has value {value} which {bound}. The effective value will be capped to {values[name]}."
            )
    session, heartbeat = values[SESSION_TIMEOUT_MS], values[HEARTBEAT_INTERVAL_MS]
    if session <= heartbeat and not props.keys().isdisjoint({SESSION_TIMEOUT_MS, HEARTBEAT_INTERVAL_MS}):
        warnings.append(
            f"The effective {SESSION_TIMEOUT_MS} ({session}) for group '{group_id}' is not greater than "
            f"{HEARTBEAT_INTERVAL_MS} ({heartbeat}). Check that the broker-level min/max bounds for session timeout "
            "and heartbeat interval do not overlap."
        )
    return Effective(values, warnings)
