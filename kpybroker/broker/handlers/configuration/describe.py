"""What DescribeConfigs returns for a topic, a broker, the broker defaults, the loggers and a group (``ConfigHelper``).

Every key has its value, its source and, when asked for, every synonym that could have given it
another value, in order of precedence. Passwords, and values of keys that are not known, are never shown.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kpybroker.broker.cluster import loggers
from kpybroker.config.dynamic import QUOTA_KEYS
from kpybroker.config.groups.keys import GROUP_KEYS
from kpybroker.config.groups.rules import group_value
from kpybroker.config.hash_order import hash_order, hash_set_order
from kpybroker.config.keys.definition import READ_ONLY
from kpybroker.config.keys.own import OWN
from kpybroker.config.keys.releases import default_texts, is_kafka_4, listed, listed_of_topics, topic_keys_of
from kpybroker.config.keys.synonyms import TOPIC_SYNONYMS, base_key, broker_synonyms
from kpybroker.config.keys.topic import TOPIC_KEYS
from kpybroker.config.values import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    SHORT,
    STRING,
    Value,
    parse_value,
    value_text,
    without_repetitions,
)
from kpybroker.wire.messages.describe_configs import DescribeConfigsResponse

if TYPE_CHECKING:
    from kpybroker.config.broker import BrokerConfig

Entry = DescribeConfigsResponse.DescribeConfigsResourceResult
Synonym = DescribeConfigsResponse.DescribeConfigsSynonym


class ConfigResourceType(enum.IntEnum):
    """`ConfigResource.Type`, with the ids that travel."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32

    @classmethod
    def of(cls, type_id: int) -> ConfigResourceType:
        """The type of an id on the wire; UNKNOWN if there is none."""
        return cls(type_id) if type_id in cls._value2member_map_ else cls.UNKNOWN


class Source(enum.IntEnum):
    """``DescribeConfigsResponse.ConfigSource``."""

    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


UNKNOWN_TYPE: Final = 0
TYPE_IDS: Final[dict[str, int]] = {
    BOOLEAN: 1,
    STRING: 2,
    INT: 3,
    SHORT: 4,
    LONG: 5,
    DOUBLE: 6,
    LIST: 7,
    CLASS: 8,
    PASSWORD: 9,
}
"""``DescribeConfigsResponse.ConfigType``."""

_UNIT_KEYS: Final = {
    "segment.ms": "log.roll",
    "segment.jitter.ms": "log.roll.jitter",
    "retention.ms": "log.retention",
}


class Asked(NamedTuple):
    """What the request wants of one resource. `names` empty: every key."""

    names: frozenset[str]
    synonyms: bool
    documentation: bool

    def wants(self, name: str) -> bool:
        """Whether the request asks for this key."""
        return not self.names or name in self.names

    def of(self, names: set[str]) -> set[str]:
        """Those of `names` that the request asks for."""
        return names & self.names if self.names else names


def _ordered(
    config: BrokerConfig, listed: frozenset[str], given: Collection[str], declared: Collection[str], asked: Asked
) -> list[str]:
    """The requested of the `listed` keys, and of what else is `given`, in Kafka's order.

    Kafka 4 has first other names, then a Java map of the listed. Our own keys are behind that.
    """
    if not is_kafka_4(config.release):
        return hash_order(asked.of({*listed, *given}))
    known = [name for name in declared if name in listed]
    kafkas = hash_set_order([name for name in known if name not in OWN])
    others = [name for name in hash_set_order(given) if name not in listed]
    return [name for name in (*others, *kafkas, *filter(OWN.__contains__, known)) if asked.wants(name)]


# --- topics


def topic_entries(config: BrokerConfig, overrides: Mapping[str, str], asked: Asked) -> Iterator[Entry]:
    """A topic's requested keys in Kafka's order. `overrides` are what the topic itself sets."""
    for name in _ordered(config, listed_of_topics(config.release), overrides, TOPIC_KEYS, asked):
        yield topic_entry(config, overrides, name, asked)


def topic_entry(config: BrokerConfig, overrides: Mapping[str, str], name: str, asked: Asked) -> Entry:
    """One key of a topic with its value, source and synonyms."""
    key = TOPIC_KEYS.get(name)
    sensitive = key is None  # an unknown key may be a password
    value = None if key is None else value_text(_topic_value(config, overrides, name, key[1]), key[1])
    synonyms = []
    if name in overrides:
        synonyms.append(Synonym(name=name, value=value, source=Source.TOPIC_CONFIG))
    if name in TOPIC_SYNONYMS:
        broker_key = TOPIC_SYNONYMS[name]
        synonyms += _broker_synonyms(config, broker_key, broker_synonyms(broker_key), sensitive)
    return Entry(
        name=name,
        value=value,
        config_source=synonyms[0].source if synonyms else Source.DEFAULT_CONFIG,
        is_sensitive=sensitive,
        read_only=False,
        synonyms=synonyms if asked.synonyms else [],
        config_type=UNKNOWN_TYPE if key is None else TYPE_IDS[key[1]],
        documentation=_documentation(name, topic=True) if asked.documentation else None,
    )


def _topic_value(config: BrokerConfig, overrides: Mapping[str, str], name: str, type_name: str) -> Value:
    """The value as configured, where `LogConfig` holds what follows from it."""
    if name in overrides:
        rule = topic_keys_of(config.release).get(name, TOPIC_KEYS[name])[3]
        return without_repetitions(parse_value(name, type_name, overrides[name]), rule)
    if name in _UNIT_KEYS:
        return config.milliseconds(_UNIT_KEYS[name])
    if name == "flush.ms":
        return config.log_defaults.flush_ms
    if name in TOPIC_SYNONYMS:
        return config.get(TOPIC_SYNONYMS[name])
    return parse_value(name, type_name, TOPIC_KEYS[name][2])


# --- groups


def group_entries(config: BrokerConfig, overrides: Mapping[str, str], asked: Asked) -> Iterator[Entry]:
    """A group's requested keys in Kafka's order, and what else is stored for it."""
    for name in hash_order(asked.of({*GROUP_KEYS, *overrides})):
        yield _group_entry(config, overrides, name, asked)


def _group_entry(config: BrokerConfig, overrides: Mapping[str, str], name: str, asked: Asked) -> Entry:
    key = GROUP_KEYS.get(name)
    value = None if key is None else value_text(group_value(config, overrides, name), key.type)
    synonyms = []
    if name in overrides:
        synonyms.append(Synonym(name=name, value=value, source=Source.DYNAMIC_GROUP_CONFIG))
    if key is not None and key.default is None:
        synonyms.append(Synonym(name=name, value=key.text, source=Source.DEFAULT_CONFIG))
    elif key is not None and key.default is not None:
        synonyms += _broker_synonyms(config, key.default, broker_synonyms(key.default), sensitive=False)
    return Entry(
        name=name,
        value=value,
        config_source=synonyms[0].source,
        is_sensitive=key is None,  # an unknown key may be a password
        read_only=False,
        synonyms=synonyms if asked.synonyms else [],
        config_type=UNKNOWN_TYPE if key is None else TYPE_IDS[key.type],
        documentation=_group_documentation(name) if asked.documentation else None,
    )


def _group_documentation(name: str) -> str | None:
    from kpybroker.config.docs.group_resource import DOCS

    return DOCS.get(name)


# --- brokers


def broker_entries(config: BrokerConfig, asked: Asked, *, as_kafka_4: bool) -> Iterator[Entry]:
    """Every key but the internal ones, and whatever else is set. Kafka 4 lists some that Kafka 3.9 does not."""
    names = listed(config.release, with_kafka_4=as_kafka_4)
    shown = config.effective.keys() - (config.following - names)
    for name in _ordered(config, names, shown, config.keys, asked):
        yield _broker_entry(config, name, asked, per_broker=True)


def default_entries(config: BrokerConfig, asked: Asked) -> Iterator[Entry]:
    """The dynamic defaults of all brokers: only what is set."""
    for name in config.dynamic_default:
        if asked.wants(name):
            yield _broker_entry(config, name, asked, per_broker=False)


def _broker_entry(config: BrokerConfig, name: str, asked: Asked, *, per_broker: bool) -> Entry:
    base = base_key(name)
    key = config.keys.get(base) or QUOTA_KEYS.get(name)
    sensitive = key is None or key.sensitive
    synonyms = [
        synonym
        for synonym in _broker_synonyms(config, name, broker_synonyms(name), sensitive)
        if per_broker or synonym.source == Source.DYNAMIC_DEFAULT_BROKER_CONFIG
    ]
    if key is None or sensitive:
        value = None
    elif name in QUOTA_KEYS:
        value = config.effective[name] if per_broker else config.dynamic_default[name]
    elif per_broker:
        value = value_text(config.get(name), key.type)
    else:
        value = config.dynamic_default[name]
    return Entry(
        name=name,
        value=value,
        config_source=synonyms[0].source if synonyms else Source.DEFAULT_CONFIG,
        is_sensitive=sensitive,
        # A listener's own key is not in Kafka's set of dynamic ones, so it is said to be read-only.
        read_only=name != base or key is None or key.mode == READ_ONLY or _is_rate_of_3_9(config, name),
        synonyms=synonyms if asked.synonyms else [],
        config_type=UNKNOWN_TYPE if key is None else TYPE_IDS[key.type],
        documentation=_documentation(base, topic=False) if asked.documentation else None,
    )


def _is_rate_of_3_9(config: BrokerConfig, name: str) -> bool:
    """Rates of replication are in the set of dynamic keys since Kafka 4."""
    return name in QUOTA_KEYS and not is_kafka_4(config.release)


def _broker_synonyms(config: BrokerConfig, name: str, names: Sequence[str], sensitive: bool) -> list[Synonym]:
    """Everything that could give `name` its value, best first, from `name`'s own first entry on."""
    layers = (
        (config.dynamic_broker, Source.DYNAMIC_BROKER_CONFIG),
        (config.dynamic_default, Source.DYNAMIC_DEFAULT_BROKER_CONFIG),
        (config.static, Source.STATIC_BROKER_CONFIG),
        (default_texts(config.release), Source.DEFAULT_CONFIG),
    )
    found = [
        Synonym(name=one, value=None if sensitive else layer[one], source=source)
        for layer, source in layers
        for one in names
        if one in layer
    ]
    first = next((index for index, synonym in enumerate(found) if synonym.name == name), len(found))
    return found[first:]


def _documentation(name: str, *, topic: bool) -> str | None:
    from kpybroker.config.docs.lookup import broker_doc, topic_doc  # hundreds of sentences, seldom asked for

    return topic_doc(name) if topic else broker_doc(name)


# --- loggers


def logger_entries(asked: Asked) -> Iterator[Entry]:
    """The requested loggers with their levels."""
    for name, level in loggers.levels().items():
        if asked.wants(name):
            yield Entry(name=name, value=level, config_source=Source.DYNAMIC_BROKER_LOGGER_CONFIG)
