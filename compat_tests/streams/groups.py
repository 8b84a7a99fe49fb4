"""Streams groups as the tests of applications look at them, and brokers that serve them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compat_tests.overload.raw import Raw
from compat_tests.support.groups.serving import group_broker
from compat_tests.support.services import Broker
from kpybroker.core.features import STREAMS_VERSION
from kpybroker.wire.messages.api_versions import ApiVersionsRequest
from kpybroker.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kpybroker.wire.messages.list_groups import ListGroupsRequest
from kpybroker.wire.messages.streams_group_describe import StreamsGroupDescribeRequest

GROUP = "words"
GROUP_RESOURCE = 32
SESSION_MS = "6000"


def streams_broker(own_broker: Callable[..., Broker], **keys: str) -> Broker:
    """A broker whose streams groups settle fast, and soon miss a member. Skipped where nothing serves them."""
    broker = group_broker(own_broker, group_streams_session_timeout_ms=SESSION_MS, **keys)
    with Raw(("127.0.0.1", broker.port)) as raw:
        finalized = raw.ask(ApiVersionsRequest(client_software_name="test", client_software_version="1"), 3)
    if not any(one.name == STREAMS_VERSION and one.max_version_level for one in finalized.finalized_features):
        pytest.skip("streams.version is not finalized here")
    return broker


def described(broker: Broker, group: str) -> Any:
    """The group as StreamsGroupDescribe has it."""
    with Raw(("127.0.0.1", broker.port)) as raw:
        (found,) = raw.ask(StreamsGroupDescribeRequest(group_ids=[group]), 0).groups
    return found


def state(broker: Broker, group: str) -> str | None:
    """The state of the group, of whatever kind it is; None if there is none of the name."""
    with Raw(("127.0.0.1", broker.port)) as raw:
        groups = raw.ask(ListGroupsRequest(), 5).groups
    return next((str(one.group_state) for one in groups if one.group_id == group), None)


def tasks(assignment: Any, kind: str = "active") -> set[str]:
    """Such as 0_1: partition 1 of subtopology 0."""
    return {
        f"{one.subtopology_id}_{partition}"
        for one in getattr(assignment, f"{kind}_tasks")
        for partition in one.partitions
    }


def by_process(group: Any, kind: str = "active") -> dict[str, set[str]]:
    """The tasks of each process."""
    found: dict[str, set[str]] = {}
    for member in group.members:
        found.setdefault(member.process_id, set()).update(tasks(member.assignment, kind))
    return found


def set_standbys(broker: Broker, number: int) -> None:
    """How many standby tasks each task with a state has: a setting of the group."""
    config = IncrementalAlterConfigsRequest.AlterableConfig(name="streams.num.standby.replicas", value=str(number))
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=GROUP_RESOURCE, resource_name=GROUP, configs=[config]
    )
    with Raw(("127.0.0.1", broker.port)) as raw:
        (result,) = raw.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    assert result.error_code == 0, result
