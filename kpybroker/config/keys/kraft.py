"""KRaft keys: accepted in a newer `server.properties`, mapped or reported.

Rows as in `keys.definition`, in Kafka's order.
"""

from __future__ import annotations

from typing import Final

from kpybroker.config.keys.definition import (
    HIGH,
    LOW,
    MEDIUM,
    READ_ONLY,
    Row,
)
from kpybroker.config.keys.status import (
    HONOURED,
    KRAFT_MAPPED,
    NO_KRAFT,
)
from kpybroker.config.values import (
    ANYTHING,
    BOOLEAN,
    INT,
    LIST,
    LONG,
    STRING,
    at_least,
    list_of,
)

# fmt: off
ROWS: Final[tuple[Row, ...]] = (
    ("early.start.listeners", STRING, None, ANYTHING, HIGH, READ_ONLY, NO_KRAFT),
    ("unstable.api.versions.enable", BOOLEAN, "false", ANYTHING, HIGH, READ_ONLY, NO_KRAFT),
    ("unstable.feature.versions.enable", BOOLEAN, "false", ANYTHING, HIGH, READ_ONLY, NO_KRAFT),
    ("metadata.log.max.record.bytes.between.snapshots", LONG, "20971520", at_least(1), HIGH,
     READ_ONLY, NO_KRAFT),
    ("metadata.log.max.snapshot.interval.ms", LONG, "3600000", at_least(0), HIGH, READ_ONLY, NO_KRAFT),
    ("process.roles", LIST, "", list_of("broker", "controller"), HIGH, READ_ONLY, KRAFT_MAPPED),
    ("node.id", INT, "-1", ANYTHING, HIGH, READ_ONLY, HONOURED),
    ("initial.broker.registration.timeout.ms", INT, "60000", ANYTHING, MEDIUM, READ_ONLY, NO_KRAFT),
    ("broker.heartbeat.interval.ms", INT, "2000", ANYTHING, MEDIUM, READ_ONLY, NO_KRAFT),
    ("broker.session.timeout.ms", INT, "9000", ANYTHING, MEDIUM, READ_ONLY, NO_KRAFT),
    ("controller.listener.names", STRING, None, ANYTHING, HIGH, READ_ONLY, KRAFT_MAPPED),
    ("sasl.mechanism.controller.protocol", STRING, "GSSAPI", ANYTHING, HIGH, READ_ONLY, NO_KRAFT),
    ("metadata.log.dir", STRING, None, ANYTHING, HIGH, READ_ONLY, NO_KRAFT),
    ("metadata.log.segment.bytes", INT, "1073741824", at_least(12), HIGH, READ_ONLY, NO_KRAFT),
    ("metadata.log.segment.min.bytes", INT, "8388608", at_least(12), HIGH, READ_ONLY, NO_KRAFT),
    ("metadata.log.segment.ms", LONG, "604800000", ANYTHING, HIGH, READ_ONLY, NO_KRAFT),
    ("metadata.max.retention.bytes", LONG, "104857600", ANYTHING, HIGH, READ_ONLY, NO_KRAFT),
    ("metadata.max.retention.ms", LONG, "604800000", ANYTHING, HIGH, READ_ONLY, NO_KRAFT),
    ("metadata.max.idle.interval.ms", INT, "500", at_least(0), LOW, READ_ONLY, NO_KRAFT),
    ("server.max.startup.time.ms", LONG, "9223372036854775807", at_least(0), MEDIUM, READ_ONLY, NO_KRAFT),
    ("zookeeper.metadata.migration.enable", BOOLEAN, "false", ANYTHING, HIGH, READ_ONLY, NO_KRAFT),
    ("eligible.leader.replicas.enable", BOOLEAN, "false", ANYTHING, HIGH, READ_ONLY, NO_KRAFT),
    ("zookeeper.metadata.migration.min.batch.size", INT, "200", at_least(1), MEDIUM, READ_ONLY, NO_KRAFT),
    ("controller.quorum.voters", LIST, "", ANYTHING, HIGH, READ_ONLY, NO_KRAFT),
    ("controller.quorum.bootstrap.servers", LIST, "", ANYTHING, HIGH, READ_ONLY, NO_KRAFT),
    ("controller.quorum.election.timeout.ms", INT, "1000", ANYTHING, HIGH, READ_ONLY, NO_KRAFT),
    ("controller.quorum.fetch.timeout.ms", INT, "2000", ANYTHING, HIGH, READ_ONLY, NO_KRAFT),
    ("controller.quorum.election.backoff.max.ms", INT, "1000", ANYTHING, HIGH, READ_ONLY, NO_KRAFT),
    ("controller.quorum.append.linger.ms", INT, "25", ANYTHING, MEDIUM, READ_ONLY, NO_KRAFT),
    ("controller.quorum.request.timeout.ms", INT, "2000", ANYTHING, MEDIUM, READ_ONLY, NO_KRAFT),
    ("controller.quorum.retry.backoff.ms", INT, "20", ANYTHING, LOW, READ_ONLY, NO_KRAFT),
    ("controller.performance.always.log.threshold.ms", LONG, "2000", at_least(0), MEDIUM, READ_ONLY, NO_KRAFT),
    ("controller.performance.sample.period.ms", LONG, "60000", at_least(100), MEDIUM, READ_ONLY, NO_KRAFT),
    ("controller.quorum.auto.join.enable", BOOLEAN, "false", ANYTHING, LOW, READ_ONLY, NO_KRAFT),
    ("controller.quorum.fetch.max.bytes", INT, "1048576", at_least(1), LOW, READ_ONLY, NO_KRAFT),
    ("controller.quorum.fetch.snapshot.max.bytes", INT, "1048576", at_least(1), LOW, READ_ONLY, NO_KRAFT),
    ("internal.metadata.delete.delay.millis", LONG, "60000", ANYTHING, LOW, READ_ONLY, NO_KRAFT),
    ("internal.metadata.log.segment.bytes", INT, None, ANYTHING, LOW, READ_ONLY, NO_KRAFT),
    ("internal.metadata.max.batch.size.in.bytes", INT, "8388608", ANYTHING, LOW, READ_ONLY, NO_KRAFT),
)
# fmt: on
