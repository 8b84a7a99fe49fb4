"""What the kraft keys are for, in our words. Loaded only when somebody asks for documentation."""

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
    "node.id": "A KRaft node's number. Here another name of broker.id.",
    "initial.broker.registration.timeout.ms": "How long a KRaft broker tries to register before it gives up.",
    "broker.heartbeat.interval.ms": "How often a KRaft broker calls its controller.",
    "broker.session.timeout.ms": "How long a KRaft controller keeps a broker that does not call.",
    "controller.listener.names": "Listeners of the KRaft controller. Here they are not opened.",
    "sasl.mechanism.controller.protocol": "SASL mechanism towards the KRaft controller.",
    "metadata.log.dir": "Directory of the KRaft metadata log.",
    "metadata.log.segment.bytes": "Segment size of the KRaft metadata log.",
    "metadata.log.segment.min.bytes": "Smallest segment size allowed for the KRaft metadata log.",
    "metadata.log.segment.ms": "Age at which a segment of the KRaft metadata log is closed.",
    "metadata.max.retention.bytes": "How much of the KRaft metadata log and its snapshots is kept.",
    "metadata.max.retention.ms": "How long the KRaft metadata log and its snapshots are kept.",
    "metadata.max.idle.interval.ms": "How often a KRaft controller writes when there is nothing to write.",
    "server.max.startup.time.ms": "How long a KRaft server may take to start.",
    "zookeeper.metadata.migration.enable": "Whether the cluster is on its way from ZooKeeper to KRaft.",
    "eligible.leader.replicas.enable": "Whether eligible leader replicas are tracked.",
    "zookeeper.metadata.migration.min.batch.size": "Records written at once on the way from ZooKeeper to KRaft.",
    "controller.quorum.voters": "Voters of the KRaft quorum, as id@host:port.",
    "controller.quorum.bootstrap.servers": "Where a KRaft node finds the quorum at first.",
    "controller.quorum.election.timeout.ms": (
        "How long a KRaft voter waits for votes before it starts a new election."
    ),
    "controller.quorum.fetch.timeout.ms": (
        "How long a KRaft node does without its leader before it stands for election."
    ),
    "controller.quorum.election.backoff.max.ms": "Longest rest between two KRaft elections.",
    "controller.quorum.append.linger.ms": "How long a KRaft leader gathers records before it writes them.",
    "controller.quorum.request.timeout.ms": "How long a KRaft node waits for an answer.",
    "controller.quorum.retry.backoff.ms": "How long a KRaft node rests before it asks again.",
}
# fmt: on
