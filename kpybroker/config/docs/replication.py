"""What the replication keys are for, in our words. Loaded only when somebody asks for documentation."""

from __future__ import annotations

from typing import Final

# fmt: off
DOCS: Final[dict[str, str]] = {
    "broker.id.generation.enable": (
        "Whether a broker without broker.id gets one from ZooKeeper, above reserved.broker.max.id."
    ),
    "reserved.broker.max.id": "Largest number that may be given by hand as broker.id.",
    "broker.id": "This broker's number; -1 lets the broker take one.",
    "request.timeout.ms": "How long the broker waits for an answer to its own requests.",
    "socket.connection.setup.timeout.ms": "How long the broker waits for a connection of its own to stand.",
    "socket.connection.setup.timeout.max.ms": "Longest such wait, after repeated failures.",
    "broker.rack": "Where this broker stands; replicas are spread over racks.",
    "controlled.shutdown.max.retries": (
        "How often a broker asks to hand over its leaderships before it stops regardless."
    ),
    "controlled.shutdown.retry.backoff.ms": "How long it waits between two such requests.",
    "controlled.shutdown.enable": "Whether a broker hands over its leaderships before it stops.",
    "control.plane.listener.name": "Listener kept for requests between the controller and brokers.",
    "controller.socket.timeout.ms": "Socket timeout of the controller's requests to brokers.",
    "default.replication.factor": "Replicas of a topic that is created without saying how many.",
    "replica.lag.time.max.ms": "How long a follower may lag before it leaves the in-sync replicas.",
    "replica.socket.timeout.ms": "Socket timeout of a follower's fetches.",
    "replica.socket.receive.buffer.bytes": "Receive buffer of a follower's socket.",
    "replica.fetch.max.bytes": (
        "Bytes that a follower fetches of one partition at once. A larger first batch still comes whole."
    ),
    "replica.fetch.wait.max.ms": "How long a follower's fetch may wait for data.",
    "replica.fetch.backoff.ms": "How long a follower rests after a failed fetch.",
    "replica.fetch.min.bytes": "Bytes that a follower's fetch waits for.",
    "replica.fetch.response.max.bytes": "Most bytes of one answer to a follower.",
    "num.replica.fetchers": "Threads that fetch from each leader's broker.",
    "replica.high.watermark.checkpoint.interval.ms": "How often high watermarks are written down.",
    "auto.leader.rebalance.enable": "Whether leadership goes back to preferred replicas by itself.",
    "leader.imbalance.per.broker.percentage": "Share of leaderships off their preferred broker that is left alone.",
    "leader.imbalance.check.interval.seconds": "How often the controller looks at that share.",
    "unclean.leader.election.interval.ms": (
        "How often the controller looks for partitions that need an unclean election."
    ),
    "unclean.leader.election.enable": (
        "Whether a replica that is not in sync may lead when no other is left, at the price of lost records."
    ),
    "security.inter.broker.protocol": (
        "Security protocol between brokers, where inter.broker.listener.name is not set."
    ),
    "inter.broker.protocol.version": (
        "Version that brokers speak with one another; raised after all brokers were upgraded."
    ),
    "inter.broker.listener.name": "Listener by which brokers reach one another.",
    "replica.selector.class": "Java class that chooses the replica a consumer should read from.",
    "replication.quota.window.num": "Samples kept for replication quotas.",
    "replication.quota.window.size.seconds": "Length of a replication quota's sample.",
}
# fmt: on
