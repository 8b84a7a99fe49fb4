"""The broker as a whole: its state, its session with the tree, requests that wait, fetch sessions."""

from __future__ import annotations

from typing import Final

from kpybroker.metrics.mbeans import Table

BROKER: Final = Table("kafka.server", "KafkaServer")
BROKER_STATE: Final = BROKER.gauge(
    "BrokerState",
    "state",
    "1 until the tree is reached, 2 until the broker is registered and a controller is known, 3 while it runs, 6 while "
    "it hands over what it leads, 7 while it stops. A scrape waits while logs are loaded.",
    "It is 1 or 2 for minutes: ZooKeeper or the controller is away; 6: other brokers do not take over.",
)
DISK_READ: Final = BROKER.gauge("linux-disk-read-bytes", "bytes", "Read from disks by this process; Linux only.")
DISK_WRITTEN: Final = BROKER.gauge("linux-disk-write-bytes", "bytes", "Written to disks by this process; Linux only.")

SESSION: Final = Table("kafka.server", "SessionExpireListener")
EXPIRES: Final = SESSION.meter(
    "ZooKeeperExpiresPerSec",
    "sessions",
    "Sessions with the tree that have expired.",
    "It grows: the broker was out of the cluster for a while; ZooKeeper or the broker stalls.",
)
DISCONNECTS: Final = SESSION.meter(
    "ZooKeeperDisconnectsPerSec", "connections", "Connections to ZooKeeper that were lost.", "It grows."
)
SYNC_CONNECTS: Final = SESSION.meter("ZooKeeperSyncConnectsPerSec", "connections", "Connections to ZooKeeper.")
AUTH_FAILURES: Final = SESSION.meter(
    "ZooKeeperAuthFailuresPerSec", "logins", "Logins that ZooKeeper refused.", "It grows: wrong credentials."
)

TREE: Final = Table("kafka.server", "ZooKeeperClientMetrics")
TREE_LATENCY: Final = TREE.histogram(
    "ZooKeeperRequestLatencyMs",
    "ms",
    "From a request to the tree until its response. With embedded coordination there are none.",
    "The 99th percentile nears zookeeper.session.timeout.ms.",
)

PURGATORY: Final = Table("kafka.server", "DelayedOperationPurgatory", ("delayedOperation",))
DELAYED: Final = PURGATORY.gauge(
    "NumDelayedOperations",
    "requests",
    "Requests that wait: Produce for followers, Fetch for records, Rebalance for members.",
)
PURGATORY_SIZE: Final = PURGATORY.gauge(
    "PurgatorySize", "requests", "The same; Kafka counts some twice that wait for several partitions."
)

SESSIONS: Final = Table("kafka.server", "FetchSessionCache")
FETCH_SESSIONS: Final = SESSIONS.gauge("NumIncrementalFetchSessions", "sessions", "Fetch sessions (KIP-227).")
FETCH_SESSION_PARTITIONS: Final = SESSIONS.gauge(
    "NumIncrementalFetchPartitionsCached", "partitions", "Partitions in all fetch sessions."
)
FETCH_SESSION_EVICTIONS: Final = SESSIONS.meter(
    "IncrementalFetchSessionEvictionsPerSec",
    "sessions",
    "Fetch sessions that gave way to others.",
    "It grows: raise max.incremental.fetch.session.cache.slots.",
)

FAMILIES: Final = (*BROKER, *SESSION, *TREE, *PURGATORY, *SESSIONS)
