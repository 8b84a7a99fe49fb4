"""The keys that a group may set for itself, as Kafka 4.3's ``GroupConfig``."""

from __future__ import annotations

from typing import Final, NamedTuple

from kpybroker.config.values import ANYTHING, BOOLEAN, INT, OFFSET_RESET, STRING, Validator, at_least, one_of

SESSION_TIMEOUT_MS: Final = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL_MS: Final = "consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL_MS: Final = "consumer.assignment.interval.ms"
SHARE_SESSION_TIMEOUT_MS: Final = "share.session.timeout.ms"
SHARE_HEARTBEAT_INTERVAL_MS: Final = "share.heartbeat.interval.ms"
SHARE_RECORD_LOCK_DURATION_MS: Final = "share.record.lock.duration.ms"
SHARE_DELIVERY_COUNT_LIMIT: Final = "share.delivery.count.limit"
SHARE_PARTITION_MAX_RECORD_LOCKS: Final = "share.partition.max.record.locks"
SHARE_AUTO_OFFSET_RESET: Final = "share.auto.offset.reset"
SHARE_ISOLATION_LEVEL: Final = "share.isolation.level"
SHARE_RENEW_ACKNOWLEDGE_ENABLE: Final = "share.renew.acknowledge.enable"
SHARE_ASSIGNMENT_INTERVAL_MS: Final = "share.assignment.interval.ms"
STREAMS_SESSION_TIMEOUT_MS: Final = "streams.session.timeout.ms"
STREAMS_HEARTBEAT_INTERVAL_MS: Final = "streams.heartbeat.interval.ms"
STREAMS_NUM_STANDBY_REPLICAS: Final = "streams.num.standby.replicas"
STREAMS_INITIAL_REBALANCE_DELAY_MS: Final = "streams.initial.rebalance.delay.ms"
STREAMS_ASSIGNMENT_INTERVAL_MS: Final = "streams.assignment.interval.ms"

READ_COMMITTED: Final = "read_committed"
READ_UNCOMMITTED: Final = "read_uncommitted"


class Bounds(NamedTuple):
    """The broker's keys that bound a key of a group; without a lowest one, its validator has that bound."""

    lowest: str | None
    highest: str


class GroupKey(NamedTuple):
    """A key of a group: the broker's key that gives its default, None where there is none, and those that bound it.

    `text` is the default of a key without one, and of one whose own default is not that of groups.
    """

    validator: Validator
    default: str | None
    bounds: Bounds | None = None
    type: str = INT
    text: str | None = None


GROUP_KEYS: Final[dict[str, GroupKey]] = {
    SESSION_TIMEOUT_MS: GroupKey(
        at_least(1),
        "group.consumer.session.timeout.ms",
        Bounds("group.consumer.min.session.timeout.ms", "group.consumer.max.session.timeout.ms"),
    ),
    HEARTBEAT_INTERVAL_MS: GroupKey(
        at_least(1),
        "group.consumer.heartbeat.interval.ms",
        Bounds("group.consumer.min.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"),
    ),
    ASSIGNMENT_INTERVAL_MS: GroupKey(
        at_least(0),
        "group.consumer.assignment.interval.ms",
        Bounds("group.consumer.min.assignment.interval.ms", "group.consumer.max.assignment.interval.ms"),
    ),
    SHARE_SESSION_TIMEOUT_MS: GroupKey(
        at_least(1),
        "group.share.session.timeout.ms",
        Bounds("group.share.min.session.timeout.ms", "group.share.max.session.timeout.ms"),
    ),
    SHARE_HEARTBEAT_INTERVAL_MS: GroupKey(
        at_least(1),
        "group.share.heartbeat.interval.ms",
        Bounds("group.share.min.heartbeat.interval.ms", "group.share.max.heartbeat.interval.ms"),
    ),
    SHARE_RECORD_LOCK_DURATION_MS: GroupKey(
        at_least(1000),
        "group.share.record.lock.duration.ms",
        Bounds("group.share.min.record.lock.duration.ms", "group.share.max.record.lock.duration.ms"),
    ),
    SHARE_DELIVERY_COUNT_LIMIT: GroupKey(
        at_least(2),
        "group.share.delivery.count.limit",
        Bounds("group.share.min.delivery.count.limit", "group.share.max.delivery.count.limit"),
    ),
    # 200 is the default that DescribeConfigs shows, that of Kafka 3.9's early access
    SHARE_PARTITION_MAX_RECORD_LOCKS: GroupKey(
        at_least(100),
        "group.share.partition.max.record.locks",
        Bounds("group.share.min.partition.max.record.locks", "group.share.max.partition.max.record.locks"),
        text="2000",
    ),
    SHARE_AUTO_OFFSET_RESET: GroupKey(OFFSET_RESET, None, type=STRING, text="latest"),
    SHARE_ISOLATION_LEVEL: GroupKey(one_of(READ_COMMITTED, READ_UNCOMMITTED), None, type=STRING, text=READ_UNCOMMITTED),
    SHARE_RENEW_ACKNOWLEDGE_ENABLE: GroupKey(ANYTHING, None, type=BOOLEAN, text="true"),
    SHARE_ASSIGNMENT_INTERVAL_MS: GroupKey(
        at_least(0),
        "group.share.assignment.interval.ms",
        Bounds("group.share.min.assignment.interval.ms", "group.share.max.assignment.interval.ms"),
    ),
    STREAMS_SESSION_TIMEOUT_MS: GroupKey(
        at_least(1),
        "group.streams.session.timeout.ms",
        Bounds("group.streams.min.session.timeout.ms", "group.streams.max.session.timeout.ms"),
    ),
    STREAMS_HEARTBEAT_INTERVAL_MS: GroupKey(
        at_least(1),
        "group.streams.heartbeat.interval.ms",
        Bounds("group.streams.min.heartbeat.interval.ms", "group.streams.max.heartbeat.interval.ms"),
    ),
    STREAMS_NUM_STANDBY_REPLICAS: GroupKey(
        at_least(0), "group.streams.num.standby.replicas", Bounds(None, "group.streams.max.standby.replicas")
    ),
    STREAMS_INITIAL_REBALANCE_DELAY_MS: GroupKey(at_least(0), "group.streams.initial.rebalance.delay.ms"),
    STREAMS_ASSIGNMENT_INTERVAL_MS: GroupKey(
        at_least(0),
        "group.streams.assignment.interval.ms",
        Bounds("group.streams.min.assignment.interval.ms", "group.streams.max.assignment.interval.ms"),
    ),
}
"""In the order in which Kafka parses them."""
