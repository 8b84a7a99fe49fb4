"""The configuration of a subscription (resource type CLIENT_METRICS): Kafka's ``ClientMetricsConfigs``, and its texts.

One difference: a pattern is in the language of RE2, where Kafka takes ``java.util.regex``. So look-around, references
to groups and possessive repetitions are refused, and `[a&&b]` is a class of three characters, not an intersection.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from kpybroker.config.hash_order import hash_order
from kpybroker.config.values import INT, LIST, ConfigError, Value, parse_value
from kpybroker.core.patterns.nodes import Subject
from kpybroker.core.patterns.topics import Pattern, compile_pattern
from kpybroker.wire.errors import ErrorCode, KafkaError

METRICS: Final = "metrics"
INTERVAL_MS: Final = "interval.ms"
MATCH: Final = "match"

VALUE_LENGTH_MAX: Final = 249
"""Characters of a client's attribute that a pattern is held against; a longer one matches none."""
_VALUES: Final = Subject(VALUE_LENGTH_MAX, is_ascii=False)

ALL_METRICS: Final = "*"
"""Among the prefixes of a subscription: every metric there is."""

INTERVAL_MS_DEFAULT: Final = 5 * 60 * 1000
INTERVAL_MS_MIN: Final = 100
INTERVAL_MS_MAX: Final = 60 * 60 * 1000

_JAVA_SPACE: Final = "".join(map(chr, range(ord(" ") + 1)))
"""What Java's ``String.trim`` removes."""


class Key(NamedTuple):
    """A key of a subscription: its type, its default, and Kafka's sentence on it."""

    type: str
    default: Value
    doc: str


KEYS: Final[dict[str, Key]] = {
    METRICS: Key(LIST, (), "Telemetry metric name prefix list"),
    INTERVAL_MS: Key(INT, INTERVAL_MS_DEFAULT, "Metrics push interval in milliseconds"),
    MATCH: Key(LIST, (), "Client match criteria"),
}
"""In the order in which Kafka parses them."""

ATTRIBUTES: Final = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
"""What of a client a subscription may be limited by."""


class Subscription(NamedTuple):
    """What one subscription asks for: prefixes of metric names, the interval of pushes, and of whom.

    `match` has the pattern of each attribute that is limited; of none, the subscription applies to every client.
    """

    metrics: tuple[str, ...]
    interval_ms: int
    match: Mapping[str, Pattern]


def value_of(props: Mapping[str, str], name: str) -> Value:
    """The value of a key, or its default. Raises ConfigError for text of another type."""
    key = KEYS[name]
    if name not in props:
        return key.default
    value = parse_value(name, key.type, props[name])
    if not isinstance(value, tuple):
        return value
    if "" in value:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Configuration '{name}' values must not be empty.")
    return tuple(dict.fromkeys(value))  # as Kafka, which removes duplicates with a warning


def parse(name: str, props: Mapping[str, str]) -> Subscription:
    """The subscription of this name. Raises KafkaError INVALID_REQUEST or INVALID_CONFIG, in the order of Kafka's
    checks.
    """
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    if unknown := props.keys() - KEYS.keys():
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {hash_order(unknown)[0]}")
    try:
        metrics, interval_ms, match = (value_of(props, key) for key in KEYS)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
    if not INTERVAL_MS_MIN <= interval_ms <= INTERVAL_MS_MAX:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {interval_ms} for {INTERVAL_MS}, interval must be between 100 and 3600000 (1 hour)",
        )
    return Subscription(metrics, interval_ms, dict(_criterion(text) for text in match))


def _criterion(text: str) -> tuple[str, Pattern]:
    """`client_id=app-.*` as an attribute and its pattern. Raises INVALID_CONFIG."""
    parts = text.rstrip("=").split("=")  # as Java's split, which drops what is empty at the end
    attribute = parts[0].strip(_JAVA_SPACE)
    if len(parts) == 2 and attribute in ATTRIBUTES:
        try:
            return attribute, compile_pattern(parts[1].strip(_JAVA_SPACE), subject=_VALUES)
        except KafkaError:
            pass  # Kafka does not say what is wrong with it
    raise KafkaError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {text}")
