"""One sentence on each replication key. Imported only for DescribeConfigs with documentation and for the page."""

from __future__ import annotations

from typing import Final

# fmt: off
DOCS: Final[dict[str, str]] = {
    "broker.id.generation.enable": (
        "Whether a broker without broker.id gets one from ZooKeeper, above reserved.broker.max.id."
    ),
    "reserved.broker.max.id": "Largest broker.id that may be set; generated ids are above it.",
    "broker.id": "Id of this broker; with -1 an id is generated.",
    "request.timeout.ms": "How long the broker waits for a response to its own requests.",
    "socket.connection.setup.timeout.ms": "How long the broker waits for an outgoing connection to be established.",
    "socket.connection.setup.timeout.max.ms": "Longest such wait after repeated failures.",
    "broker.rack": "Rack of this broker. Replicas are spread over racks.",
    "controlled.shutdown.max.retries": (
        "How many times a broker retries to move its leaderships away before it stops without that."
    ),
    "controlled.shutdown.retry.backoff.ms": "Wait between two such requests.",
    "controlled.shutdown.enable": "Whether a broker moves its leaderships to others before it stops.",
    "control.plane.listener.name": (
        "Listener that the controller uses to reach brokers, instead of the inter-broker listener."
    ),
    "controller.socket.timeout.ms": "Socket timeout of the controller's requests to brokers.",
    "default.replication.factor": "Replicas of a topic that is created without a replication factor.",
    "replica.lag.time.max.ms": "How long a follower may lag before it is removed from the ISR.",
    "replica.socket.timeout.ms": "Socket timeout of a follower's fetches.",
    "replica.socket.receive.buffer.bytes": "Receive buffer of a follower's socket.",
    "replica.fetch.max.bytes": (
        "Most bytes of one partition in one fetch of a follower. A larger first batch is still returned whole."
    ),
    "replica.fetch.wait.max.ms": "How long a follower's fetch may wait for data.",
    "replica.fetch.backoff.ms": "How long a follower waits after a failed fetch.",
    "replica.fetch.min.bytes": "Bytes that a follower's fetch waits for.",
    "replica.fetch.response.max.bytes": "Most bytes in one fetch response to a follower.",
    "num.replica.fetchers": "Connections that fetch from each leader's broker in parallel.",
    "replica.high.watermark.checkpoint.interval.ms": "How often high watermarks are written to disk.",
    "auto.leader.rebalance.enable": "Whether the controller moves leadership back to the preferred replicas.",
    "leader.imbalance.per.broker.percentage": (
        "Percentage of leaderships away from their preferred broker above which they are moved back."
    ),
    "leader.imbalance.check.interval.seconds": "How often the controller checks that percentage.",
    "unclean.leader.election.interval.ms": (
        "How often the controller checks for partitions that need an unclean election."
    ),
    "unclean.leader.election.enable": (
        "Whether a replica that is not in sync may become leader when no other is left. Records may be lost."
    ),
    "security.inter.broker.protocol": (
        "Security protocol between brokers, where inter.broker.listener.name is not set."
    ),
    "inter.broker.protocol.version": (
        "Version that brokers use among themselves. Raise it after all brokers are upgraded."
    ),
    "inter.broker.listener.name": "Listener that brokers use among themselves.",
    "replica.selector.class": (
        "Class that chooses the replica a consumer reads from: Kafka's LeaderSelector (the default) or "
        "RackAwareReplicaSelector. Any other class is reported at start, and the leader is used."
    ),
    "replication.quota.window.num": "Samples kept for replication quotas.",
    "replication.quota.window.size.seconds": "Length of a replication quota's sample.",
}
# fmt: on
