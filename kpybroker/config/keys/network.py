"""Network, request limits, quotas and metrics keys.

Rows as in `keys.definition`, in Kafka's order.
"""

from __future__ import annotations

from typing import Final

from kpybroker.config.keys.definition import (
    CLUSTER_WIDE,
    HIGH,
    LOW,
    MEDIUM,
    PER_BROKER,
    READ_ONLY,
    Row,
)
from kpybroker.config.keys.status import (
    HONOURED,
    NO_JMX,
    NO_JVM_PLUGIN,
    NO_PURGATORY,
    NO_QUEUE,
    NO_THREADS,
)
from kpybroker.config.values import (
    ANYTHING,
    BOOLEAN,
    CLASS,
    INT,
    LIST,
    LONG,
    STRING,
    at_least,
    distinct,
)

LOOPBACK_LISTENER: Final = "PLAINTEXT://127.0.0.1:9092"
"""The one default that differs from Kafka's, `PLAINTEXT://:9092`, which binds every interface."""

# fmt: off
ROWS: Final[tuple[Row, ...]] = (
    ("num.io.threads", INT, "8", at_least(1), HIGH, CLUSTER_WIDE, NO_THREADS),
    ("background.threads", INT, "10", at_least(1), HIGH, CLUSTER_WIDE, NO_THREADS),
    ("max.incremental.fetch.session.cache.slots", INT, "1000", at_least(0), MEDIUM, READ_ONLY, HONOURED),
    ("fetch.max.bytes", INT, "57671680", at_least(1024), MEDIUM, READ_ONLY, HONOURED),
    ("max.request.partition.size.limit", INT, "2000", at_least(1), MEDIUM, READ_ONLY, HONOURED),
    ("listeners", STRING, LOOPBACK_LISTENER, ANYTHING, HIGH, PER_BROKER, HONOURED),
    ("advertised.listeners", STRING, None, ANYTHING, HIGH, PER_BROKER, HONOURED),
    ("listener.security.protocol.map", STRING,
     "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
     ANYTHING, LOW, PER_BROKER, HONOURED),
    ("socket.send.buffer.bytes", INT, "102400", ANYTHING, HIGH, READ_ONLY, HONOURED),
    ("socket.receive.buffer.bytes", INT, "102400", ANYTHING, HIGH, READ_ONLY, HONOURED),
    ("socket.request.max.bytes", INT, "104857600", at_least(1), HIGH, READ_ONLY, HONOURED),
    ("socket.listen.backlog.size", INT, "50", at_least(1), MEDIUM, READ_ONLY, HONOURED),
    ("max.connections.per.ip", INT, "2147483647", at_least(0), MEDIUM, CLUSTER_WIDE, HONOURED),
    ("max.connections.per.ip.overrides", STRING, "", ANYTHING, MEDIUM, CLUSTER_WIDE, HONOURED),
    ("max.connections", INT, "2147483647", at_least(0), MEDIUM, CLUSTER_WIDE, HONOURED),
    ("max.connection.creation.rate", INT, "2147483647", at_least(0), MEDIUM, CLUSTER_WIDE, HONOURED),
    ("connections.max.idle.ms", LONG, "600000", ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("queued.max.requests", INT, "500", at_least(1), HIGH, READ_ONLY, NO_QUEUE),
    ("queued.max.request.bytes", LONG, "-1", ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("num.network.threads", INT, "3", at_least(1), HIGH, CLUSTER_WIDE, NO_THREADS),
    ("fetch.purgatory.purge.interval.requests", INT, "1000", ANYTHING, MEDIUM, READ_ONLY, NO_PURGATORY),
    ("producer.purgatory.purge.interval.requests", INT, "1000", ANYTHING, MEDIUM, READ_ONLY, NO_PURGATORY),
    ("delete.records.purgatory.purge.interval.requests", INT, "1", ANYTHING, MEDIUM, READ_ONLY, NO_PURGATORY),
    ("config.providers", LIST, "", distinct(), LOW, CLUSTER_WIDE, NO_JVM_PLUGIN),
    ("metrics.num.samples", INT, "2", at_least(1), LOW, READ_ONLY, NO_JMX),
    ("metrics.sample.window.ms", LONG, "30000", at_least(1), LOW, READ_ONLY, NO_JMX),
    ("metric.reporters", LIST, "", ANYTHING, LOW, CLUSTER_WIDE, NO_JVM_PLUGIN),
    ("metrics.recording.level", STRING, "INFO", ANYTHING, LOW, READ_ONLY, NO_JMX),
    ("auto.include.jmx.reporter", BOOLEAN, "true", ANYTHING, LOW, READ_ONLY, NO_JMX),
    ("kafka.metrics.reporters", LIST, "", ANYTHING, LOW, READ_ONLY, HONOURED),
    ("kafka.metrics.polling.interval.secs", INT, "10", at_least(1), LOW, READ_ONLY, HONOURED),
    ("telemetry.max.bytes", INT, "1048576", at_least(1), LOW, READ_ONLY, HONOURED),
    ("quota.window.num", INT, "11", at_least(1), LOW, READ_ONLY, HONOURED),
    ("alter.log.dirs.replication.quota.window.num", INT, "11", at_least(1), LOW, READ_ONLY, HONOURED),
    ("controller.quota.window.num", INT, "11", at_least(1), LOW, READ_ONLY, HONOURED),
    ("quota.window.size.seconds", INT, "1", at_least(1), LOW, READ_ONLY, HONOURED),
    ("alter.log.dirs.replication.quota.window.size.seconds", INT, "1", at_least(1), LOW, READ_ONLY,
     HONOURED),
    ("controller.quota.window.size.seconds", INT, "1", at_least(1), LOW, READ_ONLY, HONOURED),
    ("client.quota.callback.class", CLASS, None, ANYTHING, LOW, READ_ONLY, NO_JVM_PLUGIN),
)
# fmt: on
