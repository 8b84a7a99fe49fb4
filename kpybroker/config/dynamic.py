"""Dynamic configuration, the pure part: which changes are allowed, and the result of incremental operations.

Kafka's `DynamicBrokerConfig` and ``ConfigAdminManager.prepareIncrementalConfigs``, with their error texts, which
clients print. Nothing here reads or writes: `broker.cluster.config_repository` does, and the handlers turn
`ConfigError` into error codes.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from kpybroker.config.keys.definition import CLUSTER_WIDE, PER_BROKER, READ_ONLY, Key
from kpybroker.config.keys.registry import BROKER_KEYS
from kpybroker.config.keys.releases import is_kafka_4
from kpybroker.config.keys.status import HONOURED
from kpybroker.config.keys.synonyms import LISTENER_KEY, base_key
from kpybroker.config.keys.topic import TOPIC_KEYS
from kpybroker.config.sources.passwords import Decode, PasswordError, encoder
from kpybroker.config.unserved import is_unserved
from kpybroker.config.values import LIST, LONG, LONG_MAX, ConfigError, ConfigTextError, at_least

if TYPE_CHECKING:
    from kpybroker.config.broker import BrokerConfig

QUOTA_KEYS: Final[dict[str, Key]] = {
    name: Key(name, LONG, str(LONG_MAX), at_least(0), "MEDIUM", CLUSTER_WIDE, HONOURED)
    for name in (
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    )
}
"""Broker keys that can be set dynamically only, never in a file (``QuotaConfigs.brokerQuotaConfigs``)."""

SECURITY_KEYS: Final = frozenset(
    {
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
"""May be set dynamically for one listener only."""

LISTENER_CLUSTER_KEYS: Final = frozenset({"max.connections", "max.connection.creation.rate", "num.network.threads"})
"""The listener keys that may be set for all brokers at once."""

THREAD_KEYS: Final = (
    "num.io.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "background.threads",
)

FIXED_AT_START: Final = ("listeners", "advertised.listeners", "listener.security.protocol.map")
"""Dynamic in Kafka; here the listeners stay as they are bound at start."""


class OpType(enum.IntEnum):
    """`AlterConfigOp.OpType`."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class AlterConfigOp(NamedTuple):
    """One operation of IncrementalAlterConfigs on one key; `value` is None for DELETE only."""

    name: str
    op: OpType
    value: str | None


class UnknownConfigName(ConfigTextError):
    """A list operation on a name that is not a key."""

    def __init__(self, name: str) -> None:
        super().__init__(name, f"Unknown config name: {name}")


class NotAList(ConfigTextError):
    """APPEND or SUBTRACT on a key that holds one value."""


# --- incremental operations


def apply_ops(
    props: Mapping[str, str], ops: Iterable[AlterConfigOp], list_default: Callable[[str], str | None]
) -> dict[str, str]:
    """`props` after `ops`. Raises `NotAList` for APPEND or SUBTRACT on a key of another type.

    `list_default(name)` is the default of a list key as text, None for a key of another type; it raises
    `UnknownConfigName`.
    """
    result = dict(props)
    for name, op, value in ops:
        if op is OpType.DELETE:
            result.pop(name, None)
            continue
        assert value is not None, "null values are refused before this"
        if op is OpType.SET:
            result[name] = value
            continue
        default = list_default(name)
        if default is None:
            raise NotAList(name, f"Config value {op.name.lower()} is not allowed for config key: {name}")
        old = [item for item in result.get(name, default).split(",") if item]
        given = value.split(",")
        if op is OpType.APPEND:
            result[name] = ",".join(old + [item for item in given if item not in old])
        else:
            result[name] = ",".join(_without(old, given))
    return result


def _without(items: list[str], removed: list[str]) -> list[str]:
    """Scala's `diff`: each item of `removed` removes one occurrence."""
    left = list(items)
    for item in removed:
        if item in left:
            left.remove(item)
    return left


def topic_list_default(name: str) -> str | None:
    """The default of a topic key of type LIST, None for another type. Raises `UnknownConfigName`."""
    if name not in TOPIC_KEYS:
        raise UnknownConfigName(name)
    _, type_name, default, *_ = TOPIC_KEYS[name]
    return default or "" if type_name == LIST else None


def broker_list_default(name: str, keys: Mapping[str, Key] = BROKER_KEYS) -> str | None:
    """The default of one of `keys` that is a LIST, None for another type. Raises `UnknownConfigName`."""
    key = keys.get(name)
    if key is None:
        raise UnknownConfigName(name)
    return (key.default or "") if key.type == LIST else None


# --- what may change


def is_dynamic(name: str, keys: Mapping[str, Key] = BROKER_KEYS) -> bool:
    """Whether Kafka allows a dynamic value; True for names that are not in `keys`, which it keeps."""
    key = keys.get(name)
    return key is None or key.mode != READ_ONLY


def is_password(name: str) -> bool:
    """Whether the key, or the key at the end of a listener's key, holds a password."""
    key = BROKER_KEYS.get(base_key(name))
    return key is not None and key.sensitive


def _read_only(props: Iterable[str], keys: Mapping[str, Key]) -> list[str]:
    return [name for name in props if not is_dynamic(name, keys)]


def _security_without_listener(props: Iterable[str]) -> list[str]:
    return [name for name in props if name in SECURITY_KEYS]


def _per_broker(props: Iterable[str], keys: Mapping[str, Key]) -> list[str]:
    found = []
    for name in props:
        listener_key = LISTENER_KEY.fullmatch(name)
        if listener_key is not None:
            if listener_key.group(1) not in LISTENER_CLUSTER_KEYS:
                found.append(name)
        elif name in keys and keys[name].mode == PER_BROKER:
            found.append(name)
    return found


def _refuse(config: BrokerConfig, names: list[str], sentence: str, container: str = "Set") -> None:
    """Raise for `names`, shown as Scala shows a set, and in Kafka 4 as Java: clients see this text."""
    if names:
        shown = ", ".join(sorted(names))
        as_set = f"[{shown}]" if is_kafka_4(config.release) else f"{container}({shown})"
        raise ConfigTextError(names[0], f"{sentence}: {as_set}")


def _check_type(name: str, text: str, keys: Mapping[str, Key]) -> None:
    base = LISTENER_KEY.fullmatch(name)
    plain = base.group(1) if base else name
    key = QUOTA_KEYS.get(plain) or keys.get(plain)
    if key is not None and is_dynamic(plain, keys):
        key.parse(text)


def validate_dynamic(config: BrokerConfig, props: Mapping[str, str], per_broker: bool) -> None:
    """Raise `ConfigError` unless `props` may become the dynamic layer of this broker, or of all."""
    _refuse(config, _read_only(props, config.keys), "Cannot update these configs dynamically")
    _refuse(
        config,
        _security_without_listener(props),
        "These security configs can be dynamically updated only per-listener using the listener prefix",
        "HashSet",
    )
    for name, text in props.items():
        _check_type(name, text, config.keys)
    if not per_broker:
        _refuse(
            config,
            _per_broker(props, config.keys),
            "Cannot update these configs at default cluster level, broker id must be specified",
        )
    if per_broker:
        new = config.with_dynamic(props, config.dynamic_default)
    else:
        new = config.with_dynamic(config.dynamic_broker, props)
    _check_change(config, new)


def storable(
    config: BrokerConfig, props: Mapping[str, str], per_broker: bool, random_bytes: Callable[[int], bytes]
) -> dict[str, str]:
    """`props` as they are kept: passwords encoded. Raises `ConfigError` where a password cannot be kept."""
    passwords = list(filter(is_password, props))
    if not passwords:
        return dict(props)
    if not per_broker:
        raise ConfigTextError(passwords[0], "Password config can be defined only at broker level")
    made = encoder(config)
    if made is None:
        raise ConfigTextError(passwords[0], "Password encoder secret not configured")
    return {**props, **{name: made.encode(props[name], random_bytes) for name in passwords}}


def without_encoding(stored: Mapping[str, str], decode: Decode | None) -> tuple[dict[str, str], dict[str, str]]:
    """Stored properties with their passwords decoded, and (key -> reason) those that cannot be."""
    props: dict[str, str] = {}
    failed: dict[str, str] = {}
    for name, text in stored.items():
        if not is_password(name):
            props[name] = text
        elif decode is None:
            failed[name] = "its password cannot be decoded: password.encoder.secret is not set"
        else:
            try:
                props[name] = decode(text)
            except PasswordError:
                failed[name] = "its password cannot be decoded: password.encoder.secret is another one"
    return props, failed


def _check_change(old: BrokerConfig, new: BrokerConfig) -> None:
    """The checks of Kafka's ``BrokerReconfigurable``s: from which value to which."""
    try:
        _check_threads(old, new)
        _check_cleaner_threads(old, new)
        _check_local_retention(new)
        _check_connections(old, new)
        for name in FIXED_AT_START:
            if new.get(name) != old.get(name):
                raise ConfigTextError(name, f"{name} cannot be changed while this broker runs")
        for check in old.checks:
            check(new)
    except ConfigError as error:
        # Kafka puts the cause in the place of the value, under this name; clients see this text.
        raise ConfigTextError(
            error.name,
            f"Invalid value org.apache.kafka.common.config.ConfigException: {error} "
            "for configuration Invalid dynamic configuration",
        ) from None


def _check_threads(old: BrokerConfig, new: BrokerConfig) -> None:
    for name in THREAD_KEYS:
        before, after = old.get_int(name), new.get_int(name)
        if after == before:
            continue
        failed = f"Dynamic thread count update validation failed for {name}={after}"
        if after < before // 2:
            raise ConfigTextError(name, f"{failed}, value should be at least half the current value {before}")
        if after > before * 2:
            raise ConfigTextError(name, f"{failed}, value should not be greater than double the current value {before}")


def _check_cleaner_threads(old: BrokerConfig, new: BrokerConfig) -> None:
    name = "log.cleaner.threads"
    before, after = old.get_int(name), new.get_int(name)
    if after == before:
        return
    if after < 1:
        raise ConfigTextError(name, "Log cleaner threads should be at least 1")
    if after < before // 2:
        raise ConfigTextError(
            name, f"Log cleaner threads cannot be reduced to less than half the current value {before}"
        )
    if after > before * 2:
        raise ConfigTextError(
            name, f"Log cleaner threads cannot be increased to more than double the current value {before}"
        )


def _check_connections(old: BrokerConfig, new: BrokerConfig) -> None:
    """Zero is allowed in the file only, and for one listener, as in Kafka."""
    for name in ("max.connections", "max.connection.creation.rate"):
        value = new.get_int(name)
        if value != old.get_int(name) and value <= 0:
            raise ConfigTextError(name, f"Invalid {name} {value}")


def _check_local_retention(new: BrokerConfig) -> None:
    pairs = (
        ("log.local.retention.ms", "log.retention.ms", new.milliseconds("log.retention")),
        ("log.local.retention.bytes", "log.retention.bytes", new.get_int("log.retention.bytes")),
    )
    for name, whole_name, whole in pairs:
        local = new.get_int(name)
        if whole == -1 or local == -2:
            continue
        if local == -1:
            raise ConfigError(name, local, f"Value must not be -1 as {whole_name} value is set as {whole}.")
        if local > whole:
            raise ConfigError(name, local, f"Value must not be more than {whole_name} property value: {whole}")


# --- values stored in the tree


def usable_dynamic(
    props: Mapping[str, str], keys: Mapping[str, Key], per_broker: bool, decode: Decode | None = None
) -> tuple[dict[str, str], dict[str, str]]:
    """Split `props`, as stored in the tree: (values to apply, ignored key -> reason). `keys` have the rules.

    Kafka ignores such keys with an error in its log (`fromPersistentProps`).
    """
    props, ignored = without_encoding(props, decode if per_broker else None)
    for name, text in props.items():
        try:
            _check_type(name, text, keys)
        except ConfigError as error:
            ignored[name] = str(error)
    ignored |= dict.fromkeys(_read_only(props, keys), "it cannot be changed dynamically")
    ignored |= dict.fromkeys(_security_without_listener(props), "it needs a listener prefix")
    if not per_broker:
        ignored |= dict.fromkeys(_per_broker(props, keys), "it can be set for one broker only")
    ignored |= {name: "it is fixed at start" for name in props if name in FIXED_AT_START}
    ignored |= {name: "it demands security that is not served yet" for name in props if is_unserved(name, props[name])}
    return {name: text for name, text in props.items() if name not in ignored}, ignored
