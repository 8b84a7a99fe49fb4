"""`BrokerConfig`: the configuration of one broker, as live typed look-ups under Kafka's own key names.

Four layers, highest first (KIP-226): dynamic for this broker, dynamic default of all brokers, static (the file, the
environment, `--override`), and Kafka's default. A key set in a higher layer hides its synonyms in the lower ones: a
dynamic `log.retention.ms` hides a static `log.retention.hours`.

The constructor refuses bad values with `ConfigError`. Unknown keys are kept, as in Kafka; `interpret` reports them.
This module reads no file and no tree: `broker.cluster.config_repository` calls `set_dynamic`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from kpybroker.config.keys.definition import Key
from kpybroker.config.keys.own import GRAPHITE_REPORTER, KAFKA_VERSION
from kpybroker.config.keys.releases import keys_of
from kpybroker.config.keys.synonyms import MILLISECONDS_PER, base_key, broker_synonyms
from kpybroker.config.listeners import (
    Endpoint,
    check_distinct_ports,
    parse_endpoints,
    security_protocol_map,
)
from kpybroker.config.relations import ALL_LOG_DIRS, check_relations
from kpybroker.config.replication_factors import Lowered, out_of_reach
from kpybroker.config.topic import LogConfig, topic_defaults
from kpybroker.config.unserved import check_served
from kpybroker.config.values import ConfigError, Value

ChangeCallback = Callable[[frozenset[str]], None]
CheckCallback = Callable[["BrokerConfig"], None]
"""Raises `ConfigError` for a configuration that a part of the broker could not apply."""


class BrokerConfig:
    """The configuration of one broker. Look-ups are live: the next call sees a dynamic change."""

    def __init__(self, props: Mapping[str, str] | None = None) -> None:
        self.static: dict[str, str] = _with_identity(dict(props or {}))
        self.release: str | None = self.static.get(KAFKA_VERSION)
        self.following: frozenset[str] = frozenset()
        """Keys that no one has set, and that have a value below Kafka's default: there are not so many brokers."""
        """Whose place this broker takes; None: everything is served."""
        self.keys: Mapping[str, Key] = keys_of(self.release)
        """Every key of brokers, with the defaults and rules of the release whose place this broker takes."""
        self.dynamic_broker: dict[str, str] = {}
        self.dynamic_default: dict[str, str] = {}
        self._effective: dict[str, str] = dict(self.static)
        self._values: dict[str, Value] = {}
        self._log_defaults: LogConfig | None = None
        self._callbacks: list[ChangeCallback] = []
        self.checks: list[CheckCallback] = []
        check_props(self.static, self.keys)
        check_served(self)
        check_relations(self)

    # --- look-ups

    def get(self, name: str) -> Value:
        """The typed value, None where Kafka's default is null. `KeyError` for a name that is no key."""
        try:
            return self._values[name]
        except KeyError:
            key = self.keys[base_key(name)]
            texts = (self._effective[n] for n in _lookup_order(name) if n in self._effective)
            value = self._values[name] = key.parse(next(texts, key.default))
            return value

    def get_int(self, name: str) -> int:
        """An INT, SHORT or LONG key; raises `ConfigError` where it is null."""
        return cast(int, self._required(name))

    def get_float(self, name: str) -> float:
        """A DOUBLE key; raises `ConfigError` where it is null."""
        return cast(float, self._required(name))

    def get_bool(self, name: str) -> bool:
        """A BOOLEAN key; raises `ConfigError` where it is null."""
        return cast(bool, self._required(name))

    def get_str(self, name: str) -> str:
        """A STRING key, "" where it is null; or a LIST, which some keys are in Kafka 4, as text."""
        value = self.get(name)
        return ",".join(value) if isinstance(value, tuple) else cast(str, value) or ""

    def get_list(self, name: str) -> tuple[str, ...]:
        """The items of a LIST key, or of a STRING key that Kafka splits at commas; empty where it is null."""
        value = self.get(name)
        if isinstance(value, str):
            return tuple(item.strip() for item in value.split(",") if item.strip())
        return cast("tuple[str, ...]", value) or ()

    def get_optional_int(self, name: str) -> int | None:
        """An INT, SHORT or LONG key, None where it is null."""
        return cast("int | None", self.get(name))

    def _required(self, name: str) -> Value:
        value = self.get(name)
        if value is None:
            raise ConfigError(name, None, "it has no value and no default")
        return value

    # --- values made of several keys

    def milliseconds(self, stem: str) -> int:
        """`log.retention`, `log.roll` or `log.roll.jitter`, from the finest unit that is set; -1 is unlimited."""
        for unit in ("ms", "minutes", "hours"):
            name = f"{stem}.{unit}"
            value = self.get_optional_int(name) if name in self.keys else None
            if value is not None:
                return value * MILLISECONDS_PER[unit] if value >= 0 else -1
        raise ConfigError(stem, None, "it has no value in any unit")

    @property
    def reports_to_graphite(self) -> bool:
        """Whether `kafka.metrics.reporters` names Graphite's, and its own switch is on."""
        named = GRAPHITE_REPORTER in self.get_list("kafka.metrics.reporters")
        return named and self.get_bool("kafka.graphite.metrics.reporter.enabled")

    @property
    def finalizes_newest(self) -> bool:
        """Whether a new cluster begins with the newest levels of all features; by default if the tree is embedded."""
        wanted = self.get("kpybroker.new.cluster.features")
        return wanted == "newest" if wanted is not None else not self.get_str("zookeeper.connect")

    @property
    def log_dirs(self) -> tuple[str, ...]:
        """The paths of `log.dirs`, or of `log.dir` where that is not set."""
        return self.get_list("log.dirs") or self.get_list("log.dir")

    @property
    def cordoned_log_dirs(self) -> tuple[str, ...]:
        """The paths of `cordoned.log.dirs`; `*` is all of `log_dirs`."""
        named = self.get_list("cordoned.log.dirs")
        return self.log_dirs if ALL_LOG_DIRS in named else named

    @property
    def security_protocols(self) -> dict[str, str]:
        """Listener name -> security protocol."""
        return security_protocol_map(self.get_str("listener.security.protocol.map"))

    @property
    def listeners(self) -> tuple[Endpoint, ...]:
        """The listeners to bind. Raises `ConfigError` for text that is not a list of endpoints."""
        text = self.get_str("listeners")
        endpoints = parse_endpoints("listeners", text, self.security_protocols)
        check_distinct_ports("listeners", text, endpoints)
        return endpoints

    @property
    def advertised_listeners(self) -> tuple[Endpoint, ...]:
        """The listeners that clients are given, from `advertised.listeners`; empty when it is not set."""
        return parse_endpoints("advertised.listeners", self.get_str("advertised.listeners"), self.security_protocols)

    @property
    def inter_broker_listener_name(self) -> str:
        """The listener that brokers use among themselves, in upper case."""
        return (self.get_str("inter.broker.listener.name") or self.get_str("security.inter.broker.protocol")).upper()

    @property
    def log_defaults(self) -> LogConfig:
        """What topics inherit (``KafkaConfig.extractLogConfigMap``)."""
        if self._log_defaults is None:
            self._log_defaults = topic_defaults(self)
        return self._log_defaults

    # --- dynamic values

    def on_change(self, callback: ChangeCallback) -> None:
        """`callback(names)` runs after a dynamic change, with the keys whose layer changed."""
        self._callbacks.append(callback)

    def on_check(self, check: CheckCallback) -> None:
        """`check(new)` runs before a dynamic change of this broker is accepted."""
        self.checks.append(check)

    def set_dynamic(self, broker: Mapping[str, str], default: Mapping[str, str]) -> frozenset[str]:
        """Replace both dynamic layers and return the keys that changed. If it raises `ConfigError`, nothing changed."""
        effective = merged(self.static, default, broker)
        check_props(effective, self.keys)
        changed = frozenset(
            name
            for name in effective.keys() | self._effective.keys()
            if effective.get(name) != self._effective.get(name)
        )
        self.dynamic_broker, self.dynamic_default = dict(broker), dict(default)
        self._effective = effective
        self._values.clear()
        self._log_defaults = None
        if changed:
            for callback in self._callbacks:
                callback(changed)
        return changed

    def limit_factors(self, brokers: int) -> list[Lowered]:
        """Lower every replication factor that `brokers` brokers can never meet; returns those that the user had set.

        For embedded coordination, before anything else reads them. Without a value of their own they follow the number
        of brokers, which is no news to report.
        """
        lowered = out_of_reach(self.static, brokers)
        reported = [one for one in lowered if one.key in self.static]
        self.following |= {one.key for one in lowered if one.key not in self.static}
        self.static |= {one.key: str(one.used) for one in lowered}
        self.set_dynamic(self.dynamic_broker, self.dynamic_default)
        return reported

    def with_dynamic(self, broker: Mapping[str, str], default: Mapping[str, str]) -> BrokerConfig:
        """The configuration with other dynamic layers; raises `ConfigError` if its values or relations are refused."""
        return BrokerConfig(merged(self.static, default, broker))

    @property
    def effective(self) -> Mapping[str, str]:
        """Every key that is set in some layer, unparsed."""
        return self._effective


def _lookup_order(name: str) -> tuple[str, ...]:
    """A listener's key falls back to the plain key; `milliseconds` combines units, not this."""
    plain = base_key(name)
    return (name,) if plain == name else (name, plain)


def _with_identity(props: dict[str, str]) -> dict[str, str]:
    """`broker.id` and `node.id` are one value under two names (``KafkaConfig.populateSynonyms``)."""
    if "broker.id" in props:
        props.setdefault("node.id", props["broker.id"])
    elif "node.id" in props:
        props["broker.id"] = props["node.id"]
    return props


def merged(static: Mapping[str, str], default: Mapping[str, str], broker: Mapping[str, str]) -> dict[str, str]:
    """The three layers as one; a key of a higher layer removes its synonyms below (`overrideProps`)."""
    effective = dict(static)
    for layer in (default, broker):
        for name in layer:
            for synonym in broker_synonyms(name, match_listener_override=False):
                effective.pop(synonym, None)
        effective.update(layer)
    return effective


def check_props(props: Mapping[str, str], keys: Mapping[str, Key]) -> None:
    """Parse every known key; raises `ConfigError` at the first bad value."""
    for name, text in props.items():
        key = keys.get(base_key(name))
        if key is not None:
            try:
                key.parse(text)
            except ConfigError as error:
                raise ConfigError(name, error.value, error.reason) from None
