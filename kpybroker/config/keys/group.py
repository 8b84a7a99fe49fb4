"""Group coordinator, offsets topic and transaction keys.

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
    ALL_ACKS,
    BOUNDS_ONLY,
    HONOURED,
    NO_CONSUMER_PROTOCOL,
    NO_SHARE_GROUPS,
)
from kpybroker.config.values import (
    ANYTHING,
    BOOLEAN,
    INT,
    LIST,
    LONG,
    SHORT,
    STRING,
    any_case_one_of,
    at_least,
    between,
    list_of,
)

# fmt: off
ROWS: Final[tuple[Row, ...]] = (
    ("group.min.session.timeout.ms", INT, "6000", ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("group.max.session.timeout.ms", INT, "1800000", ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("group.initial.rebalance.delay.ms", INT, "3000", ANYTHING, MEDIUM, READ_ONLY, HONOURED),
    ("group.max.size", INT, "2147483647", at_least(1), MEDIUM, READ_ONLY, HONOURED),
    ("group.coordinator.rebalance.protocols", LIST, "classic", list_of("consumer", "classic",
     "share", "streams", "unknown"), MEDIUM, READ_ONLY, HONOURED),
    ("group.coordinator.threads", INT, "1", at_least(1), MEDIUM, READ_ONLY, NO_CONSUMER_PROTOCOL),
    ("group.coordinator.append.linger.ms", INT, "10", at_least(0), MEDIUM, READ_ONLY, NO_CONSUMER_PROTOCOL),
    ("group.coordinator.new.enable", BOOLEAN, "false", ANYTHING, MEDIUM, READ_ONLY, NO_CONSUMER_PROTOCOL),
    ("offset.metadata.max.bytes", INT, "4096", ANYTHING, HIGH, READ_ONLY, HONOURED),
    ("offsets.load.buffer.size", INT, "5242880", at_least(1), HIGH, READ_ONLY, HONOURED),
    ("offsets.topic.replication.factor", SHORT, "3", at_least(1), HIGH, READ_ONLY, HONOURED),
    ("offsets.topic.num.partitions", INT, "50", at_least(1), HIGH, READ_ONLY, HONOURED),
    ("offsets.topic.segment.bytes", INT, "104857600", at_least(1), HIGH, READ_ONLY, HONOURED),
    ("offsets.topic.compression.codec", INT, "0", ANYTHING, HIGH, READ_ONLY, HONOURED),
    ("offsets.retention.minutes", INT, "10080", at_least(1), HIGH, READ_ONLY, HONOURED),
    ("offsets.retention.check.interval.ms", LONG, "600000", at_least(1), HIGH, READ_ONLY, HONOURED),
    ("offsets.commit.timeout.ms", INT, "5000", at_least(1), HIGH, READ_ONLY, HONOURED),
    ("offsets.commit.required.acks", SHORT, "-1", ANYTHING, HIGH, READ_ONLY, ALL_ACKS),
    ("group.consumer.session.timeout.ms", INT, "45000", at_least(1), MEDIUM, READ_ONLY, HONOURED),
    ("group.consumer.min.session.timeout.ms", INT, "45000", at_least(1), MEDIUM, READ_ONLY, BOUNDS_ONLY),
    ("group.consumer.max.session.timeout.ms", INT, "60000", at_least(1), MEDIUM, READ_ONLY, BOUNDS_ONLY),
    ("group.consumer.heartbeat.interval.ms", INT, "5000", at_least(1), MEDIUM, READ_ONLY, HONOURED),
    ("group.consumer.min.heartbeat.interval.ms", INT, "5000", at_least(1), MEDIUM, READ_ONLY, BOUNDS_ONLY),
    ("group.consumer.max.heartbeat.interval.ms", INT, "15000", at_least(1), MEDIUM, READ_ONLY, BOUNDS_ONLY),
    ("group.consumer.max.size", INT, "2147483647", at_least(1), MEDIUM, READ_ONLY, HONOURED),
    ("group.consumer.assignors", LIST,
     "org.apache.kafka.coordinator.group.assignor.UniformAssignor,"
     "org.apache.kafka.coordinator.group.assignor.RangeAssignor",
     list_of("uniform", "range", "org.apache.kafka.coordinator.group.assignor.UniformAssignor",
     "org.apache.kafka.coordinator.group.assignor.RangeAssignor"), MEDIUM, READ_ONLY, HONOURED),
    ("group.consumer.assignment.interval.ms", INT, "1000", between(0, 15000), MEDIUM, READ_ONLY, HONOURED),
    ("group.consumer.regex.refresh.interval.ms", INT, "600000", at_least(10000), MEDIUM, READ_ONLY, HONOURED),
    ("group.consumer.migration.policy", STRING, "disabled", any_case_one_of("DISABLED",
     "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"), MEDIUM, READ_ONLY, NO_CONSUMER_PROTOCOL),
    ("group.share.session.timeout.ms", INT, "45000", at_least(1), MEDIUM, READ_ONLY, NO_SHARE_GROUPS),
    ("group.share.min.session.timeout.ms", INT, "45000", at_least(1), MEDIUM, READ_ONLY, NO_SHARE_GROUPS),
    ("group.share.max.session.timeout.ms", INT, "60000", at_least(1), MEDIUM, READ_ONLY, NO_SHARE_GROUPS),
    ("group.share.heartbeat.interval.ms", INT, "5000", at_least(1), MEDIUM, READ_ONLY, NO_SHARE_GROUPS),
    ("group.share.min.heartbeat.interval.ms", INT, "5000", at_least(1), MEDIUM, READ_ONLY, NO_SHARE_GROUPS),
    ("group.share.max.heartbeat.interval.ms", INT, "15000", at_least(1), MEDIUM, READ_ONLY, NO_SHARE_GROUPS),
    ("group.share.max.size", SHORT, "200", between(10, 1000), MEDIUM, READ_ONLY, NO_SHARE_GROUPS),
    ("group.share.enable", BOOLEAN, "false", ANYTHING, MEDIUM, READ_ONLY, NO_SHARE_GROUPS),
    ("group.share.delivery.count.limit", INT, "5", between(2, 10), MEDIUM, READ_ONLY, NO_SHARE_GROUPS),
    ("group.share.record.lock.duration.ms", INT, "30000", between(1000, 60000), MEDIUM, READ_ONLY,
     NO_SHARE_GROUPS),
    ("group.share.min.record.lock.duration.ms", INT, "15000", between(1000, 30000), MEDIUM,
     READ_ONLY, NO_SHARE_GROUPS),
    ("group.share.max.record.lock.duration.ms", INT, "60000", between(30000, 3600000), MEDIUM,
     READ_ONLY, NO_SHARE_GROUPS),
    ("group.share.max.groups", SHORT, "10", between(1, 100), MEDIUM, READ_ONLY, NO_SHARE_GROUPS),
    ("group.share.partition.max.record.locks", INT, "200", between(100, 10000), MEDIUM, READ_ONLY,
     NO_SHARE_GROUPS),
    ("transaction.state.log.min.isr", INT, "2", at_least(1), HIGH, READ_ONLY, HONOURED),
    ("transaction.state.log.load.buffer.size", INT, "5242880", at_least(1), HIGH, READ_ONLY, HONOURED),
    ("transaction.state.log.replication.factor", SHORT, "3", at_least(1), HIGH, READ_ONLY, HONOURED),
    ("transaction.state.log.num.partitions", INT, "50", at_least(1), HIGH, READ_ONLY, HONOURED),
    ("transaction.state.log.segment.bytes", INT, "104857600", at_least(1), HIGH, READ_ONLY, HONOURED),
    ("transaction.partition.verification.enable", BOOLEAN, "true", ANYTHING, LOW, CLUSTER_WIDE, HONOURED),
    ("producer.id.expiration.ms", INT, "86400000", at_least(1), LOW, CLUSTER_WIDE, HONOURED),
    ("producer.id.expiration.check.interval.ms", INT, "600000", at_least(1), LOW, READ_ONLY, HONOURED),
    ("transactional.id.expiration.ms", INT, "604800000", at_least(1), HIGH, READ_ONLY, HONOURED),
    ("transaction.max.timeout.ms", INT, "900000", at_least(1), HIGH, READ_ONLY, HONOURED),
    ("transaction.abort.timed.out.transaction.cleanup.interval.ms", INT, "10000", at_least(1), LOW, READ_ONLY,
     HONOURED),
    ("transaction.remove.expired.transaction.cleanup.interval.ms", INT, "3600000", at_least(1),
     LOW, READ_ONLY, HONOURED),
)
# fmt: on
