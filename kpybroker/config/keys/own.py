"""Keys of kpybroker that Kafka does not have, and the names that `kpybroker.shortcuts` takes. Rows: `keys.definition`.

A shortcut is a place where the broker is harder to read because that is faster. Without it, requests take the plain
path next to it, with the same results. docs/internals/shortcuts.md says what each does, what it saves, and when it
falls back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kpybroker.config.keys.definition import LOW, READ_ONLY, Row
from kpybroker.config.keys.status import HONOURED
from kpybroker.config.values import (
    ANYTHING,
    BOOLEAN,
    CLUSTER_ID,
    INT,
    LIST,
    LONG,
    NON_EMPTY,
    PASSWORD,
    REGEX,
    STRING,
    at_least,
    between,
    list_of,
    one_of,
)

POLLER: Final = "poller"
"""One epoll serves all connections in trio's place."""
INLINE_REQUESTS: Final = "inline-requests"
"""Requests that need no waiting get their responses without waking the task of their connection."""
FAST_PRODUCE: Final = "fast-produce"
"""A Produce of one batch is read and responded to without making its messages."""
SENDFILE: Final = "sendfile"
"""Large slices of segments go from the page cache to the socket within the kernel."""
RECEIVE_BUFFERS: Final = "receive-buffers"
"""Large requests are received into buffers that are used again."""

SPELLINGS: Final = ("jmx-exporter", "metrics-reporter", "kafka-overview")
"""`kpybroker.metrics.spelling`: which names Prometheus gets; `kpybroker.metrics.spelling` says what each is."""

GRAPHITE_REPORTER: Final = "com.criteo.kafka.KafkaGraphiteMetricsReporter"
"""The one reporter in `kafka.metrics.reporters`, under the name of its Java class. Its keys and their defaults are
those of that class."""
_GRAPHITE_DIMENSIONS: Final = (
    *("count", "meanRate", "rate1m", "rate5m", "rate15m"),
    *("min", "max", "mean", "stddev", "sum", "median", "p75", "p95", "p98", "p99", "p999"),
)

CLIENT_METRICS: Final = "kpybroker.client.metrics"
CLIENT_METRICS_OFF, CLIENT_METRICS_SUBSCRIBED, CLIENT_METRICS_ON = "off", "subscribed", "on"
"""Whether clients are invited to push metrics: never, while there is a subscription, or always."""
KAFKA_VERSION: Final = "kpybroker.kafka.version"
NEW_CLUSTER_FEATURES: Final = "kpybroker.new.cluster.features"
NEW_CLUSTER_ID: Final = "kpybroker.new.cluster.id"
KAFKA_VERSIONS: Final = ("3.9", "4.0", "4.1", "4.2", "4.3")
"""Releases of Kafka whose place a broker can take."""

SHORTCUTS: Final = frozenset((POLLER, INLINE_REQUESTS, FAST_PRODUCE, SENDFILE, RECEIVE_BUFFERS))

ROWS: Final[tuple[Row, ...]] = (
    ("kpybroker.log.client.lines.max", INT, "100", at_least(0), LOW, READ_ONLY, HONOURED),
    ("kpybroker.log.dir", STRING, None, ANYTHING, LOW, READ_ONLY, HONOURED),
    ("kpybroker.log.levels", LIST, "", ANYTHING, LOW, READ_ONLY, HONOURED),
    ("kpybroker.log.max.bytes", LONG, "104857600", at_least(1), LOW, READ_ONLY, HONOURED),
    ("kpybroker.log.max.files", INT, "10", at_least(1), LOW, READ_ONLY, HONOURED),
    ("kpybroker.log.roll", STRING, "size", one_of("size", "hourly", "daily"), LOW, READ_ONLY, HONOURED),
    ("kpybroker.validate.records", BOOLEAN, "false", ANYTHING, LOW, READ_ONLY, HONOURED),
    ("kpybroker.max.state.bytes", LONG, "268435456", at_least(1), LOW, READ_ONLY, HONOURED),
    ("kpybroker.max.state.bytes.per.ip", LONG, "67108864", at_least(1), LOW, READ_ONLY, HONOURED),
    ("kpybroker.max.state.bytes.per.principal", LONG, "67108864", at_least(1), LOW, READ_ONLY, HONOURED),
    ("kpybroker.jaas.config.file", STRING, None, ANYTHING, LOW, READ_ONLY, HONOURED),
    ("kpybroker.scram.initial.users", PASSWORD, None, ANYTHING, LOW, READ_ONLY, HONOURED),
    ("kpybroker.metrics.port", INT, None, between(0, 65535), LOW, READ_ONLY, HONOURED),
    ("kpybroker.metrics.host", STRING, "127.0.0.1", ANYTHING, LOW, READ_ONLY, HONOURED),
    ("kpybroker.metrics.allowed.hosts", LIST, "", ANYTHING, LOW, READ_ONLY, HONOURED),
    ("kpybroker.metrics.spelling", STRING, "jmx-exporter", one_of(*SPELLINGS), LOW, READ_ONLY, HONOURED),
    ("kafka.graphite.metrics.reporter.enabled", BOOLEAN, "false", ANYTHING, LOW, READ_ONLY, HONOURED),
    ("kafka.graphite.metrics.host", STRING, "localhost", NON_EMPTY, LOW, READ_ONLY, HONOURED),
    ("kafka.graphite.metrics.port", INT, "2003", between(1, 65535), LOW, READ_ONLY, HONOURED),
    ("kafka.graphite.metrics.group", STRING, "kafka", NON_EMPTY, LOW, READ_ONLY, HONOURED),
    ("kafka.graphite.metrics.exclude.regex", STRING, None, REGEX, LOW, READ_ONLY, HONOURED),
    *(
        (f"kafka.graphite.dimension.enabled.{name}", BOOLEAN, "true", ANYTHING, LOW, READ_ONLY, HONOURED)
        for name in _GRAPHITE_DIMENSIONS
    ),
    ("kpybroker.otlp.endpoint", STRING, None, ANYTHING, LOW, READ_ONLY, HONOURED),
    ("kpybroker.otlp.interval.ms", INT, "60000", at_least(1000), LOW, READ_ONLY, HONOURED),
    ("kpybroker.otlp.headers", PASSWORD, None, ANYTHING, LOW, READ_ONLY, HONOURED),
    ("kpybroker.zookeeper.port", INT, None, between(0, 65535), LOW, READ_ONLY, HONOURED),
    ("kpybroker.zookeeper.host", STRING, "127.0.0.1", ANYTHING, LOW, READ_ONLY, HONOURED),
    (
        *(CLIENT_METRICS, STRING, CLIENT_METRICS_OFF),
        one_of(CLIENT_METRICS_OFF, CLIENT_METRICS_SUBSCRIBED, CLIENT_METRICS_ON),
        *(LOW, READ_ONLY, HONOURED),
    ),
    (KAFKA_VERSION, STRING, None, one_of(*KAFKA_VERSIONS), LOW, READ_ONLY, HONOURED),
    (NEW_CLUSTER_FEATURES, STRING, None, one_of("newest", "none"), LOW, READ_ONLY, HONOURED),
    (NEW_CLUSTER_ID, STRING, None, CLUSTER_ID, LOW, READ_ONLY, HONOURED),
    ("kpybroker.shortcuts", LIST, "all", list_of("all", "none", *sorted(SHORTCUTS)), LOW, READ_ONLY, HONOURED),
)

OWN: Final = frozenset(row[0] for row in ROWS)
"""The names of the keys that are not Kafka's."""


def chosen_shortcuts(names: Iterable[str]) -> frozenset[str]:
    """The shortcuts that a value of `kpybroker.shortcuts` leaves on: `all`, `none`, or a list of names."""
    named = frozenset(names)
    return SHORTCUTS if "all" in named else named & SHORTCUTS
