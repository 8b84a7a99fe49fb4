"""Tiered storage keys.

Rows as in `keys.definition`, in Kafka's order.
"""

from __future__ import annotations

from typing import Final

from kpybroker.config.keys.definition import (
    CLUSTER_WIDE,
    LOW,
    MEDIUM,
    READ_ONLY,
    Row,
)
from kpybroker.config.keys.status import (
    NO_TIERED_STORAGE,
)
from kpybroker.config.values import (
    ANYTHING,
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    NON_EMPTY,
    POSITIVE_OR_MINUS_ONE,
    STRING,
    at_least,
    between,
)

# fmt: off
ROWS: Final[tuple[Row, ...]] = (
    ("remote.log.storage.system.enable", BOOLEAN, "false", ANYTHING, MEDIUM, READ_ONLY, NO_TIERED_STORAGE),
    ("remote.log.storage.manager.impl.prefix", STRING, "rsm.config.", NON_EMPTY, MEDIUM, READ_ONLY,
     NO_TIERED_STORAGE),
    ("remote.log.metadata.manager.impl.prefix", STRING, "rlmm.config.", NON_EMPTY, MEDIUM,
     READ_ONLY, NO_TIERED_STORAGE),
    ("remote.log.storage.manager.class.name", STRING, None, NON_EMPTY, MEDIUM, READ_ONLY, NO_TIERED_STORAGE),
    ("remote.log.storage.manager.class.path", STRING, None, ANYTHING, MEDIUM, READ_ONLY, NO_TIERED_STORAGE),
    ("remote.log.metadata.manager.class.name", STRING,
     "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
     NON_EMPTY, MEDIUM, READ_ONLY, NO_TIERED_STORAGE),
    ("remote.log.metadata.manager.class.path", STRING, None, ANYTHING, MEDIUM, READ_ONLY, NO_TIERED_STORAGE),
    ("remote.log.metadata.manager.listener.name", STRING, None, NON_EMPTY, MEDIUM, READ_ONLY,
     NO_TIERED_STORAGE),
    ("remote.log.metadata.custom.metadata.max.bytes", INT, "128", at_least(0), LOW, READ_ONLY,
     NO_TIERED_STORAGE),
    ("remote.log.index.file.cache.total.size.bytes", LONG, "1073741824", at_least(1), LOW,
     CLUSTER_WIDE, NO_TIERED_STORAGE),
    ("remote.log.manager.thread.pool.size", INT, "10", at_least(1), MEDIUM, READ_ONLY, NO_TIERED_STORAGE),
    ("remote.log.manager.copier.thread.pool.size", INT, "-1", POSITIVE_OR_MINUS_ONE, MEDIUM,
     READ_ONLY, NO_TIERED_STORAGE),
    ("remote.log.manager.expiration.thread.pool.size", INT, "-1", POSITIVE_OR_MINUS_ONE, MEDIUM,
     READ_ONLY, NO_TIERED_STORAGE),
    ("remote.log.manager.task.interval.ms", LONG, "30000", at_least(1), LOW, READ_ONLY, NO_TIERED_STORAGE),
    ("remote.log.manager.task.retry.backoff.ms", LONG, "500", at_least(1), LOW, READ_ONLY, NO_TIERED_STORAGE),
    ("remote.log.manager.task.retry.backoff.max.ms", LONG, "30000", at_least(1), LOW, READ_ONLY,
     NO_TIERED_STORAGE),
    ("remote.log.manager.task.retry.jitter", DOUBLE, "0.2", between(0, 0.5), LOW, READ_ONLY,
     NO_TIERED_STORAGE),
    ("remote.log.reader.threads", INT, "10", at_least(1), MEDIUM, READ_ONLY, NO_TIERED_STORAGE),
    ("remote.log.reader.max.pending.tasks", INT, "100", at_least(1), MEDIUM, READ_ONLY, NO_TIERED_STORAGE),
    ("log.local.retention.ms", LONG, "-2", at_least(-2), MEDIUM, CLUSTER_WIDE, NO_TIERED_STORAGE),
    ("log.local.retention.bytes", LONG, "-2", at_least(-2), MEDIUM, CLUSTER_WIDE, NO_TIERED_STORAGE),
    ("remote.log.manager.copy.max.bytes.per.second", LONG, "9223372036854775807", at_least(1),
     MEDIUM, CLUSTER_WIDE, NO_TIERED_STORAGE),
    ("remote.log.manager.copy.quota.window.num", INT, "11", at_least(1), MEDIUM, READ_ONLY,
     NO_TIERED_STORAGE),
    ("remote.log.manager.copy.quota.window.size.seconds", INT, "1", at_least(1), MEDIUM, READ_ONLY,
     NO_TIERED_STORAGE),
    ("remote.log.manager.fetch.max.bytes.per.second", LONG, "9223372036854775807", at_least(1),
     MEDIUM, CLUSTER_WIDE, NO_TIERED_STORAGE),
    ("remote.log.manager.fetch.quota.window.num", INT, "11", at_least(1), MEDIUM, READ_ONLY,
     NO_TIERED_STORAGE),
    ("remote.log.manager.fetch.quota.window.size.seconds", INT, "1", at_least(1), MEDIUM,
     READ_ONLY, NO_TIERED_STORAGE),
    ("remote.list.offsets.request.timeout.ms", LONG, "30000", at_least(1), MEDIUM, CLUSTER_WIDE,
     NO_TIERED_STORAGE),
    ("remote.log.index.file.cache.ttl.ms", LONG, "900000", at_least(-1), LOW, READ_ONLY, NO_TIERED_STORAGE),
    ("remote.log.manager.follower.thread.pool.size", INT, "2", at_least(1), MEDIUM, CLUSTER_WIDE,
     NO_TIERED_STORAGE),
    ("follower.fetch.last.tiered.offset.enable", BOOLEAN, "false", ANYTHING, MEDIUM, CLUSTER_WIDE,
     NO_TIERED_STORAGE),
    ("remote.fetch.max.wait.ms", INT, "500", at_least(1), MEDIUM, CLUSTER_WIDE, NO_TIERED_STORAGE),
)
# fmt: on
