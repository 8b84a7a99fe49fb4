"""Throttled replication: how many bytes a second, and of which partitions. Kafka's ``ReplicationQuotaManager``.

The rates are dynamic keys of one broker (`leader.replication.throttled.rate`, `follower.replication.throttled.rate`).
The topic says which replicas are throttled (`leader.replication.throttled.replicas`: partition and broker, or `*`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpybroker.config.values import LONG_MAX
from kpybroker.core.rate import Rate

if TYPE_CHECKING:
    from kpybroker.broker.replication.partition import Partition
    from kpybroker.config.broker import BrokerConfig

LEADER = "leader"
FOLLOWER = "follower"
_FIELDS = {LEADER: "leader_replication_throttled_replicas", FOLLOWER: "follower_replication_throttled_replicas"}


class ReplicationQuota:
    """The limit for one side, LEADER or FOLLOWER, over all throttled partitions together."""

    def __init__(self, config: BrokerConfig, side: str) -> None:
        self._config = config
        self._field = _FIELDS[side]
        self._rate_key = f"{side}.replication.throttled.rate"
        self._rate = Rate(
            config.get_int("replication.quota.window.num"),
            config.get_int("replication.quota.window.size.seconds") * 1000,
        )

    def is_throttled(self, partition: Partition) -> bool:
        """Whether the topic's settings name this replica; False while its log is offline."""
        if partition.log is None:
            return False
        replicas: tuple[str, ...] = getattr(partition.log.config, self._field)
        return bool(replicas) and ("*" in replicas or f"{partition.index}:{partition.broker_id}" in replicas)

    def record(self, size: int, now_ms: int) -> None:
        """Count bytes that were replicated."""
        self._rate.record(size, now_ms)

    def is_exceeded(self, now_ms: int) -> bool:
        """Whether the rate of the last seconds is above the bound."""
        return self._rate.measure(now_ms) > self.bound

    @property
    def bound(self) -> int:
        """Bytes a second; without a limit the largest long."""
        config = self._config
        rate = config.dynamic_broker.get(self._rate_key, config.dynamic_default.get(self._rate_key))
        return LONG_MAX if rate is None else int(rate)
