"""Brokers that serve groups of the new protocol (KIP-848)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.overload.raw import Raw
from compat_tests.support.services import Broker
from kpybroker.core.features import GROUP_VERSION
from kpybroker.wire.messages.api_versions import ApiVersionsRequest

QUICK = {
    "group_initial_rebalance_delay_ms": "0",
    "group_consumer_min_heartbeat_interval_ms": "100",
    "group_consumer_heartbeat_interval_ms": "100",
    "group_consumer_assignment_interval_ms": "0",
    "group_consumer_min_session_timeout_ms": "1000",
}
"""With the defaults every step of a rebalance takes up to five seconds."""

NOT_SERVED = "group.version is not finalized here"


def serves_groups(broker: Broker) -> bool:
    """Whether `group.version` is finalized."""
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    with Raw(("127.0.0.1", broker.port)) as raw:
        finalized = raw.ask(request, 3).finalized_features
    return any(one.name == GROUP_VERSION and one.max_version_level >= 1 for one in finalized)


def group_broker(own_broker: Callable[..., Broker], **keys: str) -> Broker:
    """A broker whose groups settle fast. The test is skipped where the broker has no groups of the new protocol: Kafka
    3.9.1, ours in its place, and ours on ZooKeeper, where nothing is finalized unasked.
    """
    broker = own_broker(**QUICK | keys)
    if not serves_groups(broker):
        pytest.skip(NOT_SERVED)
    return broker
