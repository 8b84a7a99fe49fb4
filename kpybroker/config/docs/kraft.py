"""One sentence on each KRaft key. Imported only for DescribeConfigs with documentation and for the page."""

from __future__ import annotations

from typing import Final

# fmt: off
DOCS: Final[dict[str, str]] = {
    "early.start.listeners": "Listeners that a KRaft node opens before its authorizer is ready.",
    "unstable.api.versions.enable": "Whether API versions under development are served.",
    "unstable.feature.versions.enable": "Whether feature versions under development may be used.",
    "metadata.log.max.record.bytes.between.snapshots": "Bytes of KRaft metadata log after which a snapshot is taken.",
    "metadata.log.max.snapshot.interval.ms": "Time after which a snapshot of the KRaft metadata log is taken.",
    "process.roles": "Roles of a KRaft process: broker, controller, or both. Here the process is always a broker.",
    "node.id": "Id of a KRaft node. Here another name of broker.id.",
    "initial.broker.registration.timeout.ms": "How long a KRaft broker tries to register before it gives up.",
    "broker.heartbeat.interval.ms": "How often a KRaft broker sends a heartbeat to its controller.",
    "broker.session.timeout.ms": "How long a KRaft controller waits for a heartbeat before it fences a broker.",
    "controller.listener.names": "Listeners of the KRaft controller. They are not opened here.",
    "sasl.mechanism.controller.protocol": "SASL mechanism for connections to the KRaft controller.",
    "metadata.log.dir": "Directory of the KRaft metadata log.",
    "metadata.log.segment.bytes": "Segment size of the KRaft metadata log.",
    "metadata.log.segment.min.bytes": "Smallest segment size allowed for the KRaft metadata log.",
    "metadata.log.segment.ms": "Age at which a segment of the KRaft metadata log is closed.",
    "metadata.max.retention.bytes": "How much of the KRaft metadata log and its snapshots is kept.",
    "metadata.max.retention.ms": "How long the KRaft metadata log and its snapshots are kept.",
    "metadata.max.idle.interval.ms": "How often an idle KRaft controller writes a no-op record.",
    "server.max.startup.time.ms": "How long a KRaft server may take to start.",
    "zookeeper.metadata.migration.enable": "Whether the cluster migrates from ZooKeeper to KRaft.",
    "eligible.leader.replicas.enable": "Whether eligible leader replicas are tracked.",
    "zookeeper.metadata.migration.min.batch.size": "Records in one batch of the migration from ZooKeeper to KRaft.",
    "controller.quorum.voters": "Voters of the KRaft quorum, as id@host:port.",
    "controller.quorum.bootstrap.servers": "Addresses at which a KRaft node finds the quorum.",
    "controller.quorum.election.timeout.ms": (
        "How long a KRaft voter waits for votes before it starts a new election."
    ),
    "controller.quorum.fetch.timeout.ms": (
        "How long a KRaft node goes without its leader before it starts an election."
    ),
    "controller.quorum.election.backoff.max.ms": "Longest wait between two KRaft elections.",
    "controller.quorum.append.linger.ms": "How long a KRaft leader collects records before it writes them.",
    "controller.quorum.request.timeout.ms": "How long a KRaft node waits for a response.",
    "controller.quorum.retry.backoff.ms": "How long a KRaft node waits before it retries.",
    "controller.performance.always.log.threshold.ms": (
        "Time of an event of the KRaft controller above which it is logged. Of Kafka 4."
    ),
    "controller.performance.sample.period.ms": "How often the KRaft controller logs its slowest events. Of Kafka 4.",
    "controller.quorum.auto.join.enable": "Whether a KRaft controller joins the voters by itself. Of Kafka 4.",
    "controller.quorum.fetch.max.bytes": "Bytes that a KRaft node fetches at once. Of Kafka 4.",
    "controller.quorum.fetch.snapshot.max.bytes": "Bytes of a snapshot that a KRaft node fetches at once. Of Kafka 4.",
    "internal.metadata.delete.delay.millis": "How long deleted files of the KRaft metadata log are kept. Of Kafka 4.",
    "internal.metadata.log.segment.bytes": "Segment size of the KRaft metadata log, in tests. Of Kafka 4.",
    "internal.metadata.max.batch.size.in.bytes": "Largest batch of the KRaft metadata log. Of Kafka 4.",
}
# fmt: on
