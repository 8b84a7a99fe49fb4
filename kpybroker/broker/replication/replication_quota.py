"""Throttled replication: how much may be replicated a second, of which partitions. Kafka's `ReplicationQuotaManager`.

`leader.replication.throttled.rate` and `follower.replication.throttled.rate` are dynamic keys of this one broker; which
replicas are meant says the topic (`leader.replication.throttled.replicas`: pairs of partition and broker, or `*`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.config.values import LONG_MAX
from kpybroker.core.rate import Rate

if TYPE_CHECKING:
    from kpybroker.broker.app import Broker

LEADER = "leader"
FOLLOWER = "follower"
_FIELDS = {LEADER: "leader_replication_throttled_replicas", FOLLOWER: "follower_replication_throttled_replicas"}


class ReplicationQuota:
    """`side` is LEADER or FOLLOWER."""

    def __init__(self, broker: Broker, side: str) -> None:
        self._broker = broker
        self._field = _FIELDS[side]
        self._rate_key = f"{side}.replication.throttled.rate"
        config = broker.config
        self._rate = Rate(
            config.get_int("replication.quota.window.num"),
            config.get_int("replication.quota.window.size.seconds") * 1000,
        )

    def is_throttled(self, topic: str, index: int) -> bool:
        partition = self._broker.replicas.partition(topic, index)
        if partition is None or partition.log is None:
            return False
        replicas: tuple[str, ...] = getattr(partition.log.config, self._field)
        return bool(replicas) and ("*" in replicas or f"{index}:{self._broker.node_id}" in replicas)

    def record(self, size: int, now_ms: int) -> None:
        self._rate.record(size, now_ms)

    def is_exceeded(self, now_ms: int) -> bool:
        return self._rate.measure(now_ms) > self.bound

    @property
    def bound(self) -> int:
        """Bytes a second."""
        config = self._broker.config
        rate = config.dynamic_broker.get(self._rate_key, config.dynamic_default.get(self._rate_key))
        return LONG_MAX if rate is None else int(rate)
