"""Brokers that serve groups of the new protocol (KIP-848)."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from compat_tests.overload.raw import Raw
from compat_tests.support.services import KAFKA_VERSION, Broker
from kpybroker.config.development import QUICK_GROUPS
from kpybroker.core.features import GROUP_VERSION
from kpybroker.wire.messages.api_versions import ApiVersionsRequest

QUICK = {name.replace(".", "_"): value for name, value in QUICK_GROUPS.items()}
"""Keys of a broker whose groups settle fast. With the defaults a step of a rebalance takes up to five seconds."""

NOT_SERVED = "group.version is not finalized here"


NO_FEATURES = "Kafka 3.9 has no feature levels, nor has a broker in its place"


def has_features(kind: str) -> bool:
    """Whether brokers of this kind have feature levels, in this run."""
    return kind == "kpybroker" and os.environ.get(KAFKA_VERSION) != "3.9"


def serves_groups(broker: Broker) -> bool:
    """Whether `group.version` is finalized."""
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    with Raw(("127.0.0.1", broker.port)) as raw:
        finalized = raw.ask(request, 3).finalized_features
    return any(one.name == GROUP_VERSION and one.max_version_level >= 1 for one in finalized)


def group_broker(own_broker: Callable[..., Broker], **keys: str) -> Broker:
    """A broker whose groups settle fast. The test is skipped where nothing serves groups of the new protocol: on Kafka
    3.9.1, and on ours in its place.
    """
    broker = own_broker(**{**QUICK, "kpybroker_new_cluster_features": "newest", **keys})
    if not serves_groups(broker):
        pytest.skip(NOT_SERVED)
    return broker
