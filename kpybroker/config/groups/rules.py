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
    SHARE_ASSIGNMENT_INTERVAL_MS,
    SHARE_DELIVERY_COUNT_LIMIT,
    SHARE_HEARTBEAT_INTERVAL_MS,
    SHARE_PARTITION_MAX_RECORD_LOCKS,
    SHARE_RECORD_LOCK_DURATION_MS,
    SHARE_SESSION_TIMEOUT_MS,
    STREAMS_ASSIGNMENT_INTERVAL_MS,
    STREAMS_HEARTBEAT_INTERVAL_MS,
    STREAMS_NUM_STANDBY_REPLICAS,
    STREAMS_SESSION_TIMEOUT_MS,
)
from kpybroker.config.hash_order import hash_order
from kpybroker.config.values import (
    ConfigConflict,
    ConfigError,
    ConfigTextError,
    Value,
    check_value,
    parse_value,
)

if TYPE_CHECKING:
    from kpybroker.config.broker import BrokerConfig

_BOUNDS_ORDER: Final = (
    HEARTBEAT_INTERVAL_MS,
    SESSION_TIMEOUT_MS,
    ASSIGNMENT_INTERVAL_MS,
    SHARE_HEARTBEAT_INTERVAL_MS,
    SHARE_SESSION_TIMEOUT_MS,
    SHARE_RECORD_LOCK_DURATION_MS,
    SHARE_DELIVERY_COUNT_LIMIT,
    SHARE_PARTITION_MAX_RECORD_LOCKS,
    SHARE_ASSIGNMENT_INTERVAL_MS,
    STREAMS_HEARTBEAT_INTERVAL_MS,
    STREAMS_SESSION_TIMEOUT_MS,
    STREAMS_NUM_STANDBY_REPLICAS,
    STREAMS_ASSIGNMENT_INTERVAL_MS,
)
"""The order in which Kafka looks at bounds."""
_SESSIONS: Final = (
    (SESSION_TIMEOUT_MS, HEARTBEAT_INTERVAL_MS),
    (SHARE_SESSION_TIMEOUT_MS, SHARE_HEARTBEAT_INTERVAL_MS),
    (STREAMS_SESSION_TIMEOUT_MS, STREAMS_HEARTBEAT_INTERVAL_MS),
)
"""A session must be longer than the time between heartbeats."""


class UnknownGroupConfig(ConfigTextError):
    """A name that is not a key of groups."""

    def __init__(self, name: str) -> None:
        super().__init__(name, f"Unknown group config name: {name}")


class Effective(NamedTuple):
    """What holds for a group, by key, and a sentence about each stored value that does not."""

    values: dict[str, Value]
    warnings: list[str]


def group_value(config: BrokerConfig, props: Mapping[str, str], name: str) -> Value:
    """The value of a key: that of the group, else that of the broker. Raises ConfigError for text of another type."""
    key = GROUP_KEYS[name]
    if name in props:
        return parse_value(name, key.type, props[name])
    return _default(config, name)


def _default(config: BrokerConfig, name: str) -> Value:
    key = GROUP_KEYS[name]
    if key.default is None or (key.text is not None and key.default not in config.effective):
        return parse_value(name, key.type, key.text)
    return config.get_int(key.default)


def check_group_props(config: BrokerConfig, props: Mapping[str, str]) -> None:
    """Raise ConfigError unless `props` may be all that a group sets, in the order of Kafka's checks."""
    unknown = props.keys() - GROUP_KEYS.keys()
    if unknown:
        raise UnknownGroupConfig(hash_order(unknown)[0])
    values = {name: _checked(config, props, name) for name in GROUP_KEYS}
    for name in _BOUNDS_ORDER:
        bounds = GROUP_KEYS[name].bounds
        assert bounds is not None
        lowest, highest = bounds
        if lowest is not None and values[name] < config.get_int(lowest):
            raise ConfigConflict(name, f"{name} must be greater than or equal to {lowest}")
        if values[name] > config.get_int(highest):
            raise ConfigConflict(name, f"{name} must be less than or equal to {highest}")
    for session, heartbeat in _SESSIONS:
        if values[session] <= values[heartbeat]:
            raise ConfigConflict(session, f"{session} must be greater than {heartbeat}")


def _checked(config: BrokerConfig, props: Mapping[str, str], name: str) -> Value:
    value = group_value(config, props, name)
    check_value(name, value, GROUP_KEYS[name].validator)
    return value


def effective(config: BrokerConfig, group_id: str, props: Mapping[str, str]) -> Effective:
    """What holds for a group of which `props` are stored. Never raises: other programs may have written them."""
    values: dict[str, Value] = {}
    warnings: list[str] = []
    for name in GROUP_KEYS:
        try:
            value = _checked(config, props, name)
        except ConfigError as error:
            warnings.append(f"The group config of group '{group_id}' is not used: {error}")
            value = _default(config, name)
        values[name] = _capped(config, group_id, props, name, value, warnings)
    for session_key, heartbeat_key in _SESSIONS:
        session, heartbeat = values[session_key], values[heartbeat_key]
        if session <= heartbeat and not props.keys().isdisjoint({session_key, heartbeat_key}):
            warnings.append(
                f"The effective {session_key} ({session}) for group '{group_id}' is not greater than "
                f"{heartbeat_key} ({heartbeat}). Check that the broker-level min/max bounds for session timeout "
                "and heartbeat interval do not overlap."
            )
    return Effective(values, warnings)


def _capped(
    config: BrokerConfig, group_id: str, props: Mapping[str, str], name: str, value: Value, warnings: list[str]
) -> Value:
    key = GROUP_KEYS[name]
    if key.bounds is None:
        return value
    lowest = value if key.bounds.lowest is None else config.get_int(key.bounds.lowest)
    highest = config.get_int(key.bounds.highest)
    capped = min(max(value, lowest), highest)
    if capped != value:
        bound = f"is below the broker's allowed minimum {lowest}"
        if value > highest:
            bound = f"exceeds the broker's allowed maximum {highest}"
        what = f"group config '{name}' for group '{group_id}'" if name in props else f"config '{key.default}'"
        warnings.append(f"The {what} has value {value} which {bound}. The effective value will be capped to {capped}.")
    return capped
