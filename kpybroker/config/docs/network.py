"""One sentence on each network key. Imported only for DescribeConfigs with documentation and for the page."""

from __future__ import annotations

from typing import Final

# fmt: off
DOCS: Final[dict[str, str]] = {
    "num.io.threads": "Threads that serve requests.",
    "background.threads": "Threads for background work.",
    "max.incremental.fetch.session.cache.slots": "How many incremental fetch sessions are kept.",
    "fetch.max.bytes": "Most bytes in one fetch response, whatever the client asks for.",
    "max.request.partition.size.limit": "Most partitions in one DescribeTopicPartitions response.",
    "listeners": (
        "Addresses to listen on, as NAME://host:port separated by commas. An empty host is every interface. "
        "Without this key only loopback is bound, on port 9092."
    ),
    "advertised.listeners": (
        "Addresses that clients receive, where they differ from listeners. Without this key they are the bound "
        "addresses; a broker that is alone or has embedded coordination gives each client the address it connected to."
    ),
    "listener.security.protocol.map": "Security protocol of each listener name.",
    "socket.send.buffer.bytes": (
        "Send buffer of a socket; -1 leaves it to the system. Kafka's default, 102400, is treated as 300000."
    ),
    "socket.receive.buffer.bytes": "Receive buffer of a socket; -1 leaves it to the system.",
    "socket.request.max.bytes": "Largest request that is accepted, in bytes.",
    "socket.listen.backlog.size": (
        "How many connections may wait to be accepted. Kafka's default, 50, is treated as 4096."
    ),
    "max.connections.per.ip": "How many connections one client address may have.",
    "max.connections.per.ip.overrides": "Limits for single client addresses, as host:number separated by commas.",
    "max.connections": "How many connections the broker, and each listener, accepts; further ones wait.",
    "max.connection.creation.rate": "How many connections the broker, and each listener, accepts each second.",
    "connections.max.idle.ms": "How long a connection may be idle before it is closed.",
    "queued.max.requests": "How many requests may wait for a thread before the broker stops reading.",
    "queued.max.request.bytes": "Bytes of requests in memory at which the broker stops reading; -1 is no limit.",
    "num.network.threads": "Threads that read and write a listener's connections.",
    "fetch.purgatory.purge.interval.requests": "After how many requests the fetch purgatory is purged.",
    "producer.purgatory.purge.interval.requests": "After how many requests the produce purgatory is purged.",
    "delete.records.purgatory.purge.interval.requests": (
        "After how many requests the DeleteRecords purgatory is purged."
    ),
    "config.providers": "Names of Java classes that fetch values of keys from elsewhere. Of Kafka 4.",
    "metrics.num.samples": "Samples kept to compute a metric.",
    "metrics.sample.window.ms": "Length of a metric's sample.",
    "metric.reporters": "Java classes that report metrics.",
    "metrics.recording.level": "Most detailed level at which metrics are recorded.",
    "auto.include.jmx.reporter": (
        "Whether metrics are reported over JMX even where metric.reporters does not say so. Deprecated."
    ),
    "kafka.metrics.reporters": "Java classes that report the older kind of metrics. The one for Graphite is built in.",
    "kafka.metrics.polling.interval.secs": "How often the reporters of the older kind of metrics run.",
    "telemetry.max.bytes": "Largest push of client metrics that is accepted, compressed and uncompressed.",
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
