"""What the network keys are for, in our words. Loaded only when somebody asks for documentation."""

from __future__ import annotations

from typing import Final

# fmt: off
DOCS: Final[dict[str, str]] = {
    "num.io.threads": "Threads that serve requests.",
    "background.threads": "Threads for background work.",
    "max.incremental.fetch.session.cache.slots": "How many incremental fetch sessions are kept.",
    "fetch.max.bytes": "Most bytes that one fetch answers with, whatever the client asks for.",
    "max.request.partition.size.limit": "Most partitions that one DescribeTopicPartitions answer names.",
    "listeners": (
        "Addresses to listen at, as NAME://host:port separated by commas. An empty host is every interface. "
        "Without this key only loopback is bound, on 9092."
    ),
    "advertised.listeners": (
        "Addresses that clients are told to use, where they differ from listeners. Without this key they are as "
        "bound, or, of a broker that is alone or has embedded coordination, the address by which a client came."
    ),
    "listener.security.protocol.map": "Which security protocol each listener name stands for.",
    "socket.send.buffer.bytes": (
        "Send buffer of a connection's socket; -1 leaves it to the system. Kafka's default is taken to mean 300000."
    ),
    "socket.receive.buffer.bytes": "Receive buffer of a connection's socket; -1 leaves it to the system.",
    "socket.request.max.bytes": "Largest request that is read.",
    "socket.listen.backlog.size": "How many connections may wait to be accepted.",
    "max.connections.per.ip": "How many connections one address may hold.",
    "max.connections.per.ip.overrides": "Other limits for some addresses, as host:number separated by commas.",
    "max.connections": "How many connections the broker holds; when they are used up, accepting waits.",
    "max.connection.creation.rate": "How many connections may be opened a second.",
    "connections.max.idle.ms": "How long a connection may be idle before it is closed.",
    "queued.max.requests": "How many requests may wait for a thread before reading stops.",
    "queued.max.request.bytes": "How many bytes of requests may be in memory before reading stops; -1 is no limit.",
    "num.network.threads": "Threads that read and write a listener's connections.",
    "fetch.purgatory.purge.interval.requests": "After how many requests the fetch purgatory is purged.",
    "producer.purgatory.purge.interval.requests": "After how many requests the produce purgatory is purged.",
    "delete.records.purgatory.purge.interval.requests": (
        "After how many requests the DeleteRecords purgatory is purged."
    ),
    "metrics.num.samples": "Samples kept to compute a metric.",
    "metrics.sample.window.ms": "Length of a metric's sample.",
    "metric.reporters": "Java classes that report metrics.",
    "metrics.recording.level": "Up to which level metrics are recorded.",
    "auto.include.jmx.reporter": (
        "Whether metrics are reported over JMX even where metric.reporters does not say so. Deprecated."
    ),
    "kafka.metrics.reporters": "Java classes that report the older kind of metrics.",
    "kafka.metrics.polling.interval.secs": "How often reporters of the older metrics are asked.",
    "telemetry.max.bytes": "Largest batch of client metrics that is accepted.",
    "quota.window.num": "Samples kept for client quotas.",
    "alter.log.dirs.replication.quota.window.num": (
        "Samples kept for the quota on moving replicas between log directories."
    ),
    "controller.quota.window.num": "Samples kept for quotas on controller mutations.",
    "quota.window.size.seconds": "Length of a client quota's sample.",
    "alter.log.dirs.replication.quota.window.size.seconds": (
        "Length of a sample of the quota on moving replicas between log directories."
    ),
    "controller.quota.window.size.seconds": "Length of a sample of quotas on controller mutations.",
    "client.quota.callback.class": "Java class that decides on client quotas.",
}
# fmt: on
