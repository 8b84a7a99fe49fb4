"""The sentence on each key that a group may set for itself."""

from __future__ import annotations

from typing import Final

DOCS: Final[dict[str, str]] = {
    "consumer.session.timeout.ms": (
        "After this time without a heartbeat a member of this group is removed, under the consumer group protocol."
    ),
    "consumer.heartbeat.interval.ms": (
        "How often members of this group send a heartbeat, under the consumer group protocol. Each response to a "
        "heartbeat has it."
    ),
    "consumer.assignment.interval.ms": (
        "Shortest time between two assignments of this group, under the consumer group protocol."
    ),
    "share.session.timeout.ms": "After this time without a heartbeat a member of this share group is removed.",
    "share.heartbeat.interval.ms": (
        "How often members of this share group send a heartbeat. Each response to a heartbeat has it."
    ),
    "share.record.lock.duration.ms": (
        "How long a member of this share group may keep records that it was given, before others get them."
    ),
    "share.delivery.count.limit": "How often a record is given to members of this share group before it is archived.",
    "share.partition.max.record.locks": (
        "How many records of one partition may be with members of this share group at one time."
    ),
    "share.auto.offset.reset": (
        "Where this share group begins in a partition: `latest`, `earliest`, or `by_duration:` and how long ago, such "
        "as `by_duration:PT1H`."
    ),
    "share.isolation.level": (
        "Which records of transactions this share group is given: with `read_committed` those that were committed, "
        "with `read_uncommitted` all."
    ),
    "share.renew.acknowledge.enable": (
        "Whether members of this share group may have more time for records that they were given (KIP-1222)."
    ),
    "share.assignment.interval.ms": "Shortest time between two assignments of this share group.",
    "streams.session.timeout.ms": (
        "A member of this streams group that sends no heartbeat for so long is removed, and its tasks go to others."
    ),
    "streams.heartbeat.interval.ms": "Interval at which members of this streams group are to send heartbeats.",
    "streams.num.standby.replicas": "Standby replicas of each task with state. A change leads to a new assignment.",
    "streams.initial.rebalance.delay.ms": (
        "How long this streams group, once it is empty, waits for more members before its first assignment."
    ),
    "streams.assignment.interval.ms": "Shortest time between two assignments of this streams group.",
}
