"""Broker identity, replication and controller keys.

Rows as in `keys.definition`, in Kafka's order.
"""

from __future__ import annotations

from typing import Final

from kpybroker.config.keys.definition import (
    CLUSTER_WIDE,
    HIGH,
    LOW,
    MEDIUM,
    READ_ONLY,
    Row,
)
from kpybroker.config.keys.status import (
    HONOURED,
    NO_KRAFT,
    REQUEST_TIMEOUTS,
    SYSTEM_BUFFER,
)
from kpybroker.config.values import (
    ANYTHING,
    BOOLEAN,
    INT,
    LONG,
    METADATA_VERSION,
    STRING,
    at_least,
    one_of,
)

LEADER_SELECTOR: Final = "org.apache.kafka.common.replica.LeaderSelector"
RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
"""The two values of `replica.selector.class` that have an effect (KIP-392)."""

# fmt: off
ROWS: Final[tuple[Row, ...]] = (
    ("broker.id.generation.enable", BOOLEAN, "true", ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("reserved.broker.max.id", INT, "1000", at_least(0), MEDIUM, READ_ONLY, HONOURED),
    ("broker.id", INT, "-1", ANYTHING, HIGH, READ_ONLY, HONOURED),
    ("request.timeout.ms", INT, "30000", ANYTHING, HIGH, READ_ONLY, HONOURED),
    ("socket.connection.setup.timeout.ms", LONG, "10000", ANYTHING, MEDIUM, READ_ONLY, REQUEST_TIMEOUTS),
    ("socket.connection.setup.timeout.max.ms", LONG, "30000", ANYTHING, MEDIUM, READ_ONLY, REQUEST_TIMEOUTS),
    ("broker.rack", STRING, None, ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("controlled.shutdown.max.retries", INT, "3", ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("controlled.shutdown.retry.backoff.ms", LONG, "5000", ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("controlled.shutdown.enable", BOOLEAN, "true", ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("control.plane.listener.name", STRING, None, ANYTHING, HIGH, READ_ONLY, HONOURED),
    ("controller.socket.timeout.ms", INT, "30000", ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("default.replication.factor", INT, "1", ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("replica.lag.time.max.ms", LONG, "30000", ANYTHING, HIGH, READ_ONLY, HONOURED),
    ("replica.socket.timeout.ms", INT, "30000", ANYTHING, HIGH, READ_ONLY, HONOURED),
    ("replica.socket.receive.buffer.bytes", INT, "65536", ANYTHING, HIGH, READ_ONLY, SYSTEM_BUFFER),
    ("replica.fetch.max.bytes", INT, "1048576", at_least(0), MEDIUM, READ_ONLY, HONOURED),
    ("replica.fetch.wait.max.ms", INT, "500", ANYTHING, HIGH, READ_ONLY, HONOURED),
    ("replica.fetch.backoff.ms", INT, "1000", at_least(0), MEDIUM, READ_ONLY, HONOURED),
    ("replica.fetch.min.bytes", INT, "1", ANYTHING, HIGH, READ_ONLY, HONOURED),
    ("replica.fetch.response.max.bytes", INT, "10485760", at_least(0), MEDIUM, READ_ONLY, HONOURED),
    ("num.replica.fetchers", INT, "1", ANYTHING, HIGH, CLUSTER_WIDE, HONOURED),
    ("replica.high.watermark.checkpoint.interval.ms", LONG, "5000", ANYTHING, HIGH, READ_ONLY, HONOURED),
    ("auto.leader.rebalance.enable", BOOLEAN, "true", ANYTHING, HIGH, READ_ONLY, HONOURED),
    ("leader.imbalance.per.broker.percentage", INT, "10", ANYTHING, HIGH, READ_ONLY, HONOURED),
    ("leader.imbalance.check.interval.seconds", LONG, "300", at_least(1), HIGH, READ_ONLY, HONOURED),
    ("unclean.leader.election.interval.ms", LONG, "300000", at_least(1), MEDIUM, READ_ONLY, NO_KRAFT),
    ("unclean.leader.election.enable", BOOLEAN, "false", ANYTHING, HIGH, CLUSTER_WIDE, HONOURED),
    ("security.inter.broker.protocol", STRING, "PLAINTEXT", one_of("PLAINTEXT", "SSL",
     "SASL_PLAINTEXT", "SASL_SSL"), MEDIUM, READ_ONLY, HONOURED),
    ("inter.broker.protocol.version", STRING, "3.9-IV0", METADATA_VERSION, MEDIUM, READ_ONLY,
     HONOURED),
    ("inter.broker.listener.name", STRING, None, ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("replica.selector.class", STRING, None, ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("replication.quota.window.num", INT, "11", at_least(1), LOW, READ_ONLY, HONOURED),
    ("replication.quota.window.size.seconds", INT, "1", at_least(1), LOW, READ_ONLY, HONOURED),
)
# fmt: on
