"""Which replica a consumer should read from (KIP-392): Kafka's two `ReplicaSelector`s.

Pure. Classes of other names cannot be loaded: there is no JVM here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kpybroker.config.keys.replication import LEADER_SELECTOR, RACK_AWARE_SELECTOR


class ReplicaView(NamedTuple):
    """A replica that has the offset the consumer fetches."""

    broker_id: int
    rack: str | None
    log_end_offset: int
    lag_ms: int
    """Milliseconds since it was last caught up."""


ReplicaSelector = Callable[[str, Sequence[ReplicaView], int], int]
"""(the consumer's rack, the replicas, the leader's id) -> a broker id."""


def rack_aware(rack_id: str, replicas: Sequence[ReplicaView], leader_id: int) -> int:
    """The leader if it is in the consumer's rack, else the replica there with the highest log end, else the leader."""
    near = [replica for replica in replicas if rack_id and replica.rack == rack_id]
    if not near or any(replica.broker_id == leader_id for replica in near):
        return leader_id
    return max(near, key=lambda replica: (replica.log_end_offset, -replica.lag_ms, replica.broker_id)).broker_id


_SELECTORS: dict[str, ReplicaSelector | None] = {
    "": None,
    LEADER_SELECTOR: None,
    RACK_AWARE_SELECTOR: rack_aware,
}


def replica_selector(class_name: str | None) -> ReplicaSelector | None:
    """The selector for `replica.selector.class`; None where consumers always read from the leader."""
    return _SELECTORS.get(class_name or "")
