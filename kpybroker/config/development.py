"""What a broker for development and tests has in place of Kafka's defaults.

`kpybroker dev` and every broker that a Python program starts for its tests share these. What a user sets goes on top:
`BrokerConfig({**development_defaults(), "num.partitions": "3"})`.
"""

from __future__ import annotations

from typing import Final

from kpybroker.config.keys.own import CLIENT_METRICS, CLIENT_METRICS_SUBSCRIBED
from kpybroker.config.replication_factors import out_of_reach

QUICK_GROUPS: Final = {
    # A group's first member waits this long for others; in a test they mostly do not come.
    "group.initial.rebalance.delay.ms": "0",
    # Members of consumer groups learn of a rebalance by their heartbeats: three settle within 0.3 s, and not in 10. Not
    # 100: librdkafka asks for a first position 100 ms after it got a partition, and where more come just then, it asks
    # again half a second later and reads from the beginning once more.
    "group.consumer.min.heartbeat.interval.ms": "75",
    "group.consumer.heartbeat.interval.ms": "75",
    "group.consumer.assignment.interval.ms": "0",
    # The session is Kafka's, so that a debugger may hold a member; a test can ask for a shorter one.
    "group.consumer.min.session.timeout.ms": "1000",
    # The same of share groups; and a test may ask for a short lock of records.
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "100",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.min.record.lock.duration.ms": "1000",
    # And of streams groups.
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.heartbeat.interval.ms": "100",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.min.session.timeout.ms": "1000",
}


def development_defaults(brokers: int = 1) -> dict[str, str]:
    """The keys of one broker in an embedded cluster of `brokers`, as in Kafka's quickstart file for one.

    Each broker of a cluster needs in addition its own `broker.id`, `listeners` and `log.dirs`.
    """
    defaults = {key: str(used) for key, _, used in out_of_reach({}, brokers)}
    defaults |= {"broker.id": "0", **QUICK_GROUPS, CLIENT_METRICS: CLIENT_METRICS_SUBSCRIBED}
    if brokers > 1:
        defaults["default.replication.factor"] = str(min(brokers, 3))
    return defaults
