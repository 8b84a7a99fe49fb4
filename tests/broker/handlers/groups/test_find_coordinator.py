"""FindCoordinator: who leads the key's partition, creation on first mention, refusals in every version."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from kpybroker.broker.handlers.groups import find_coordinator
from kpybroker.core.authorizer import CLUSTER_NAME, Operation, ResourceType
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.support.brokers.fake_broker import FakeBroker, call, fake_broker, versions

SHARE_KEY = "g:4L6g3nShT-eMCtK--X86sw:0"


async def find(broker: FakeBroker, version: int, key: str = "g", key_type: int = 0) -> Any:
    """The coordinator's entry, wherever the version has it."""
    if version >= 4:
        request = FindCoordinatorRequest(coordinator_keys=[key], key_type=key_type)
        (found,) = (await call(broker, find_coordinator, request, version)).coordinators
        assert found.key == key
        return found
    return await call(broker, find_coordinator, FindCoordinatorRequest(key=key, key_type=key_type), version)


@pytest.mark.parametrize("version", versions(find_coordinator))
async def test_the_leader_of_the_groups_partition(version: int) -> None:
    async with fake_broker(4) as broker:
        found = await find(broker, version)
        assert (found.error_code, found.node_id, found.host, found.port) == (ErrorCode.NONE, 1, "127.0.0.1", 9092)
        assert found.error_message == ("NONE" if 1 <= version <= 3 else "")
        assert broker.topics.created == 0


@pytest.mark.parametrize("version", versions(find_coordinator, 1))
async def test_the_topic_is_created_when_first_asked_for(version: int) -> None:
    async with fake_broker(leads=False) as broker:
        del broker.metadata.topics["__consumer_offsets"]
        for key_type in (0, 1):
            found = await find(broker, version, key_type=key_type)
            assert (found.error_code, found.node_id) == (ErrorCode.NONE, 1)
        assert set(broker.metadata.topics) >= {"__consumer_offsets", "__transaction_state"}
        assert broker.topics.created == 2


@pytest.mark.parametrize("version", versions(find_coordinator))
async def test_a_topic_that_cannot_be_created_has_no_coordinator(version: int) -> None:
    async with fake_broker(leads=False) as broker:
        del broker.metadata.topics["__consumer_offsets"]
        broker.topics.refusal = ErrorCode.INVALID_REPLICATION_FACTOR
        found = await find(broker, version)
        assert (found.error_code, found.node_id, found.host, found.port) == (
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            -1,
            "",
            -1,
        )


async def test_a_leader_is_waited_for_a_moment_only(autojump_clock: trio.testing.MockClock) -> None:
    async with fake_broker() as broker:
        broker.metadata.leaderless.add("__consumer_offsets")
        started = trio.current_time()
        assert (await find(broker, 6)).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert trio.current_time() - started == pytest.approx(find_coordinator.CREATION_WAIT_S_MAX)


async def test_a_leader_that_is_elected_in_time_is_named() -> None:
    async with fake_broker() as broker, trio.open_nursery() as nursery:
        broker.metadata.leaderless.add("__consumer_offsets")

        async def expect() -> None:
            assert (await find(broker, 6)).error_code == ErrorCode.NONE

        nursery.start_soon(expect)
        await trio.testing.wait_all_tasks_blocked()
        broker.metadata.leaderless.clear()
        broker.metadata.news.set()


@pytest.mark.parametrize("version", versions(find_coordinator, 1))
async def test_refusals(version: int) -> None:
    async with fake_broker() as broker:
        broker.authorizer.denied |= {
            (Operation.DESCRIBE, ResourceType.GROUP, "g"),
            (Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "g"),
        }
        refused = await find(broker, version)
        assert (refused.error_code, refused.node_id) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, -1)
        refused = await find(broker, version, key_type=1)
        assert refused.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        refused = await find(broker, version, key_type=3)
        assert refused.error_code == ErrorCode.INVALID_REQUEST


async def test_share_groups_have_no_coordinator_here() -> None:
    async with fake_broker() as broker:
        assert (await find(broker, 5, SHARE_KEY, key_type=2)).error_code == ErrorCode.INVALID_REQUEST
        assert (await find(broker, 6, "g", key_type=2)).error_code == ErrorCode.INVALID_REQUEST
        assert (await find(broker, 6, SHARE_KEY, key_type=2)).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        broker.authorizer.denied.add((Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME))
        assert (await find(broker, 6, SHARE_KEY, key_type=2)).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_several_keys() -> None:
    async with fake_broker(4) as broker:
        broker.authorizer.denied.add((Operation.DESCRIBE, ResourceType.GROUP, "b"))
        request = FindCoordinatorRequest(coordinator_keys=["a", "b", "c"])
        response = await call(broker, find_coordinator, request, 6)
        assert [(found.key, found.error_code) for found in response.coordinators] == [
            ("a", ErrorCode.NONE),
            ("b", ErrorCode.GROUP_AUTHORIZATION_FAILED),
            ("c", ErrorCode.NONE),
        ]
