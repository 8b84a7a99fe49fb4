"""Checks between keys: ``KafkaConfig.validateValues``, in its order, with its error texts.

Checks for KRaft roles are missing: `interpret` maps a KRaft file to ZooKeeper mode first. A missing `zookeeper.connect`
is not an error here: coordination is then embedded.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kpybroker.config.listeners import NONROUTABLE, Endpoint, parse_map
from kpybroker.config.sources.passwords import OLD_SECRET, SECRET, encoder
from kpybroker.config.values import ConfigConflict

if TYPE_CHECKING:
    from kpybroker.config.config_lookup import ConfigLookup

ALL_LOG_DIRS: Final = "*"
"""In `cordoned.log.dirs`: all of them."""

_HOST: Final = re.compile(r"[0-9a-zA-Z\-%._:]*")


def _require(condition: bool, name: str, sentence: str) -> None:
    if not condition:
        raise ConfigConflict(name, sentence)


def _check_identity(config: ConfigLookup) -> None:
    broker_id = config.get_int("broker.id")
    _require(
        config.get_int("node.id") == broker_id,
        "node.id",
        "You must set `node.id` to the same value as `broker.id`.",
    )
    if config.get_bool("broker.id.generation.enable"):
        _require(
            -1 <= broker_id <= config.get_int("reserved.broker.max.id"),
            "broker.id",
            "broker.id must be greater than or equal to -1 and not greater than reserved.broker.max.id",
        )
    else:
        _require(broker_id >= 0, "broker.id", "broker.id must be greater than or equal to 0")


def _check_logs(config: ConfigLookup) -> None:
    _require(config.milliseconds("log.roll") >= 1, "log.roll.ms", "log.roll.ms must be greater than or equal to 1")
    _require(
        config.milliseconds("log.roll.jitter") >= 0,
        "log.roll.jitter.ms",
        "log.roll.jitter.ms must be greater than or equal to 0",
    )
    retention_ms = config.milliseconds("log.retention")
    _require(
        retention_ms >= 1 or retention_ms == -1,
        "log.retention.ms",
        "log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
    )
    _require(
        bool(config.log_dirs),
        "log.dirs",
        "At least one log directory must be defined via log.dirs or log.dir.",
    )
    _check_cordoned(config)
    threads = config.get_int("log.cleaner.threads")
    _require(
        threads == 0 or config.get_int("log.cleaner.dedupe.buffer.size") // threads > 1024 * 1024,
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
    )


def _check_cordoned(config: ConfigLookup) -> None:
    name = "cordoned.log.dirs"
    cordoned = config.get_list(name)
    if ALL_LOG_DIRS in cordoned:
        _require(len(cordoned) == 1, name, f"When {name} is set to {ALL_LOG_DIRS}, it must not contain other values")
        return
    missing = [path for path in cordoned if path not in config.log_dirs]
    _require(
        not missing,
        name,
        f"All entries in {name} must be present in log.dirs or log.dir. Missing entries : {', '.join(missing)}",
    )


def _check_replication(config: ConfigLookup) -> None:
    wait_max_ms = config.get_int("replica.fetch.wait.max.ms")
    _require(
        wait_max_ms <= config.get_int("replica.socket.timeout.ms"),
        "replica.socket.timeout.ms",
        "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms"
        " to prevent unnecessary socket timeouts",
    )
    _require(
        wait_max_ms <= config.get_int("replica.lag.time.max.ms"),
        "replica.fetch.wait.max.ms",
        "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms"
        " to prevent frequent changes in ISR",
    )


def _names(endpoints: tuple[Endpoint, ...]) -> str:
    return ",".join(endpoint.listener_name for endpoint in endpoints)


def _check_listeners(config: ConfigLookup) -> None:
    listeners = config.listeners
    advertised = config.advertised_listeners or listeners
    advertised_names = {endpoint.listener_name for endpoint in advertised}
    _require(bool(advertised), "listeners", "There must be at least one broker advertised listener.")
    _check_inter_broker(config, advertised_names, _names(advertised))
    _require(
        advertised_names <= {endpoint.listener_name for endpoint in listeners},
        "advertised.listeners",
        "advertised.listeners listener names must be equal to or a subset of the ones defined in listeners. "
        f"Found {_names(advertised)}. The valid options based on the current configuration are "
        f"{_names(listeners)}",
    )
    _require(
        all(endpoint.host != NONROUTABLE for endpoint in config.advertised_listeners),
        "advertised.listeners",
        "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address.",
    )
    control_plane = config.get_str("control.plane.listener.name").upper()
    if control_plane:
        _require(
            control_plane in advertised_names,
            "control.plane.listener.name",
            "control.plane.listener.name must be a listener name defined in advertised.listeners. The valid "
            f"options based on currently configured listeners are {_names(advertised)}",
        )
        _require(
            control_plane != config.inter_broker_listener_name,
            "control.plane.listener.name",
            "control.plane.listener.name, when defined, should have a different value from the inter broker "
            f"listener name. Currently they both have the value {control_plane}",
        )


def _check_inter_broker(config: ConfigLookup, advertised_names: set[str], shown: str) -> None:
    if config.get_str("inter.broker.listener.name"):
        _require(
            "security.inter.broker.protocol" not in config.effective,
            "security.inter.broker.protocol",
            "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set.",
        )
        _require(
            config.inter_broker_listener_name in config.security_protocols,
            "inter.broker.listener.name",
            f"Listener with name {config.inter_broker_listener_name} defined in inter.broker.listener.name "
            "not found in listener.security.protocol.map.",
        )
    _require(
        config.inter_broker_listener_name in advertised_names,
        "inter.broker.listener.name",
        "inter.broker.listener.name must be a listener name defined in advertised.listeners. The valid "
        f"options based on currently configured listeners are {shown}",
    )
    _check_inter_broker_mechanism(config)


def _check_inter_broker_mechanism(config: ConfigLookup) -> None:
    listener = config.inter_broker_listener_name
    if config.security_protocols[listener].startswith("SASL_"):
        _require(
            config.get_str("sasl.mechanism.inter.broker.protocol")
            in config.get_list(f"listener.name.{listener.lower()}.sasl.enabled.mechanisms"),
            "sasl.mechanism.inter.broker.protocol",
            "sasl.mechanism.inter.broker.protocol must be included in sasl.enabled.mechanisms when SASL is used for "
            "inter-broker communication",
        )


def _check_connections(config: ConfigLookup) -> None:
    queued_max_bytes = config.get_int("queued.max.request.bytes")
    _require(
        queued_max_bytes <= 0 or queued_max_bytes >= config.get_int("socket.request.max.bytes"),
        "queued.max.request.bytes",
        "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
    )
    overrides = parse_map("max.connections.per.ip.overrides", config.get_str("max.connections.per.ip.overrides"))
    for address, limit in overrides.items():
        _require(
            limit.isdigit(),
            "max.connections.per.ip.overrides",
            f"max.connections.per.ip.overrides: `{limit}` for {address} is not a number of connections",
        )
    _require(
        config.get_int("max.connections.per.ip") > 0 or bool(overrides),
        "max.connections.per.ip",
        "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set.",
    )
    invalid = [address for address in overrides if not _HOST.fullmatch(address)]
    _require(
        not invalid,
        "max.connections.per.ip.overrides",
        f"max.connections.per.ip.overrides contains invalid addresses : {','.join(invalid)}",
    )
    idle_max_ms = config.get_int("connections.max.idle.ms")
    delay_ms = config.get_int("connection.failed.authentication.delay.ms")
    _require(
        idle_max_ms < 0 or delay_ms < idle_max_ms,
        "connections.max.idle.ms",
        f"connection.failed.authentication.delay.ms={delay_ms} should always be less than "
        f"connections.max.idle.ms={idle_max_ms} to prevent failed authentication responses from timing out",
    )


_GROUP_BOUNDS: Final = (
    (
        "group.consumer.heartbeat.interval.ms",
        "group.consumer.min.heartbeat.interval.ms",
        "group.consumer.max.heartbeat.interval.ms",
    ),
    (
        "group.consumer.session.timeout.ms",
        "group.consumer.min.session.timeout.ms",
        "group.consumer.max.session.timeout.ms",
    ),
    (
        "group.consumer.assignment.interval.ms",
        "group.consumer.min.assignment.interval.ms",
        "group.consumer.max.assignment.interval.ms",
    ),
    (
        "group.share.heartbeat.interval.ms",
        "group.share.min.heartbeat.interval.ms",
        "group.share.max.heartbeat.interval.ms",
    ),
    (
        "group.share.session.timeout.ms",
        "group.share.min.session.timeout.ms",
        "group.share.max.session.timeout.ms",
    ),
    (
        "group.share.record.lock.duration.ms",
        "group.share.min.record.lock.duration.ms",
        "group.share.max.record.lock.duration.ms",
    ),
    (
        "group.share.delivery.count.limit",
        "group.share.min.delivery.count.limit",
        "group.share.max.delivery.count.limit",
    ),
    (
        "group.share.partition.max.record.locks",
        "group.share.min.partition.max.record.locks",
        "group.share.max.partition.max.record.locks",
    ),
    (
        "group.share.assignment.interval.ms",
        "group.share.min.assignment.interval.ms",
        "group.share.max.assignment.interval.ms",
    ),
    (
        "group.streams.heartbeat.interval.ms",
        "group.streams.min.heartbeat.interval.ms",
        "group.streams.max.heartbeat.interval.ms",
    ),
    (
        "group.streams.session.timeout.ms",
        "group.streams.min.session.timeout.ms",
        "group.streams.max.session.timeout.ms",
    ),
    (
        "group.streams.assignment.interval.ms",
        "group.streams.min.assignment.interval.ms",
        "group.streams.max.assignment.interval.ms",
    ),
)


def _check_group_bounds(config: ConfigLookup) -> None:
    for name, low_name, high_name in _GROUP_BOUNDS:
        value, low, high = config.get_int(name), config.get_int(low_name), config.get_int(high_name)
        _require(high >= low, high_name, f"{high_name} must be greater than or equal to {low_name}")
        _require(value >= low, name, f"{name} must be greater than or equal to {low_name}")
        _require(value <= high, name, f"{name} must be less than or equal to {high_name}")
    standby, standby_max = "group.streams.num.standby.replicas", "group.streams.max.standby.replicas"
    _require(
        config.get_int(standby) <= config.get_int(standby_max),
        standby,
        f"{standby} must be less than or equal to {standby_max}",
    )
    _require(
        bool(config.get_list("group.consumer.assignors")),
        "group.consumer.assignors",
        "group.consumer.assignors must name at least one assignor",
    )


def _check_coordination(config: ConfigLookup) -> None:
    if config.get("kpybroker.zookeeper.port") is not None:
        _require(
            not config.get_str("zookeeper.connect"),
            "kpybroker.zookeeper.port",
            "kpybroker.zookeeper.port serves the embedded tree, and with zookeeper.connect there is none.",
        )
        _require(
            not config.get_bool("zookeeper.set.acl"),
            "kpybroker.zookeeper.port",
            "kpybroker.zookeeper.port serves the embedded tree to all that reach it, yet zookeeper.set.acl is true.",
        )


def check_relations(config: ConfigLookup) -> None:
    """Raise `ConfigConflict` for the first keys whose values do not fit together."""
    _check_identity(config)
    _check_logs(config)
    _check_replication(config)
    _check_listeners(config)
    _check_connections(config)
    _check_group_bounds(config)
    _check_coordination(config)
    for key in (SECRET, OLD_SECRET):
        encoder(config, key)  # raises where its settings cannot be used
