"""DescribeAcls, CreateAcls and DeleteAcls: Kafka's checks, codes and messages, in every version."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from kpybroker.broker.app import Broker
from kpybroker.core.authorizer import Operation, Principal, ResourceType
from kpybroker.core.security.acls import PatternType, Permission
from kpybroker.wire.errors import ErrorCode, ProtocolError
from kpybroker.wire.messages.create_acls import CreateAclsRequest
from kpybroker.wire.messages.delete_acls import DeleteAclsRequest
from kpybroker.wire.messages.describe_acls import DescribeAclsRequest
from tests.support.brokers.running_broker import ask, running_broker

Creation = CreateAclsRequest.AclCreation
ACL_FILTER: dict[str, Any] = {
    "resource_type_filter": ResourceType.ANY,
    "resource_name_filter": None,
    "pattern_type_filter": PatternType.ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": Operation.ANY,
    "permission_type": Permission.ANY,
}


def authorized_broker(directory: Path, super_users: str = "User:ANONYMOUS") -> AbstractAsyncContextManager[Broker]:
    """A broker with an authorizer."""
    name = "kafka.security.authorizer.AclAuthorizer"
    return running_broker(directory, authorizer_class_name=name, super_users=super_users)


def creation(name: str = "orders", **changes: Any) -> Creation:
    fields: dict[str, Any] = {
        "resource_type": ResourceType.TOPIC,
        "resource_name": name,
        "resource_pattern_type": PatternType.LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": Operation.READ,
        "permission_type": Permission.ALLOW,
    }
    return Creation(**(fields | changes))


def _without_pattern_type(creation: Creation) -> Creation:
    return Creation(**{name: getattr(creation, name) for name in Creation.__slots__ if name != "resource_pattern_type"})


async def create(broker: Broker, *creations: Creation, version: int = 3) -> list[tuple[int, str | None]]:
    response = await ask(broker, CreateAclsRequest(creations=list(creations)), version)
    return [(result.error_code, result.error_message) for result in response.results]


def acl_filter(version: int = 3, **changes: Any) -> dict[str, Any]:
    """What fits all, but for `changes`. Version 0 has no pattern types."""
    fields = ACL_FILTER | changes
    if version == 0:
        del fields["pattern_type_filter"]
    return fields


async def described(broker: Broker, version: int = 3, **changes: Any) -> list[tuple[str, int, int]]:
    response = await ask(broker, DescribeAclsRequest(**acl_filter(version, **changes)), version)
    assert response.error_code == ErrorCode.NONE
    return [(resource.resource_name, resource.pattern_type, len(resource.acls)) for resource in response.resources]


@pytest.mark.parametrize("version", range(4))
async def test_an_acl_is_created_described_and_deleted(tmp_path: Path, version: int) -> None:
    async with authorized_broker(tmp_path) as broker:
        second = creation(operation=Operation.WRITE, permission_type=Permission.DENY)
        creations = [creation(), second, creation("other")]
        if version == 0:
            creations = [_without_pattern_type(one) for one in creations]
        assert await create(broker, *creations, version=version) == [(0, "")] * 3
        assert sorted(await described(broker, version)) == [("orders", 3, 2), ("other", 3, 1)]
        assert await described(broker, version, permission_type=Permission.DENY) == [("orders", 3, 1)]
        wanted = DeleteAclsRequest.DeleteAclsFilter(**acl_filter(version, operation=Operation.READ))
        response = await ask(broker, DeleteAclsRequest(filters=[wanted]), version)
        (result,) = response.filter_results
        assert (result.error_code, result.error_message) == (0, None)
        assert {(acl.resource_name, acl.operation, acl.error_code) for acl in result.matching_acls} == {
            ("orders", Operation.READ, 0),
            ("other", Operation.READ, 0),
        }
        assert await described(broker, version) == [("orders", 3, 1)]


async def test_one_filter_by_match_finds_prefixes_and_wildcards(tmp_path: Path) -> None:
    async with authorized_broker(tmp_path) as broker:
        await create(
            broker,
            creation("ord", resource_pattern_type=PatternType.PREFIXED),
            creation("*"),
            creation("orders"),
            creation("other"),
        )
        found = await described(broker, resource_name_filter="orders", pattern_type_filter=PatternType.MATCH)
        assert {name for name, _, _ in found} == {"ord", "*", "orders"}


INVALID, UNKNOWN = ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize(
    ("refused", "response"),
    [
        (
            creation("nine", resource_type=ResourceType.CLUSTER),
            (INVALID, "The only valid name for the CLUSTER resource is kafka-cluster"),
        ),
        (creation(""), (INVALID, "Invalid empty resource name")),
        (creation("a/b"), (INVALID, "Failed to create ACL")),
        (creation(operation=77), (INVALID, "Failed to create ACL")),
        (creation("x", principal="alice"), (UNKNOWN, None)),
    ],
)
async def test_a_bad_acl_is_refused_alone(
    tmp_path: Path, refused: Creation, response: tuple[ErrorCode, str | None]
) -> None:
    async with authorized_broker(tmp_path) as broker:
        assert await create(broker, refused, creation("fine")) == [response, (0, "")]
        assert await described(broker) == [("fine", 3, 1)]


@pytest.mark.parametrize(
    "refused",
    [
        creation(operation=Operation.ANY),
        creation(permission_type=Permission.ANY),
        creation(resource_type=ResourceType.ANY),
        creation(resource_pattern_type=PatternType.MATCH),
        creation(resource_pattern_type=PatternType.ANY),
    ],
)
async def test_what_only_a_filter_may_hold_fails_the_request(tmp_path: Path, refused: Creation) -> None:
    async with authorized_broker(tmp_path) as broker:
        responses = await create(broker, refused, creation())
        assert [code for code, _ in responses] == [UNKNOWN, UNKNOWN]
        assert await described(broker) == []


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (CreateAclsRequest(creations=[creation(operation=Operation.UNKNOWN)]), 3),
        (CreateAclsRequest(creations=[creation(resource_type=ResourceType.UNKNOWN)]), 1),
        (DescribeAclsRequest(**(ACL_FILTER | {"permission_type": Permission.UNKNOWN})), 2),
        (
            DeleteAclsRequest(
                filters=[DeleteAclsRequest.DeleteAclsFilter(**(ACL_FILTER | {"pattern_type_filter": 0}))]
            ),
            3,
        ),
    ],
)
async def test_unknown_elements_end_the_connection(tmp_path: Path, request_: Any, version: int) -> None:
    async with authorized_broker(tmp_path) as broker:
        with pytest.raises(ProtocolError, match="UNKNOWN"):
            await ask(broker, request_, version)


async def test_without_an_authorizer_there_are_no_acls(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        response = await ask(broker, DescribeAclsRequest(**ACL_FILTER), 3)
        disabled = ErrorCode.SECURITY_DISABLED
        assert (response.error_code, response.error_message) == (disabled, "No Authorizer is configured on the broker")
        assert await create(broker, creation()) == [(disabled, "No Authorizer is configured.")]
        wanted = DeleteAclsRequest.DeleteAclsFilter(**ACL_FILTER)
        response = await ask(broker, DeleteAclsRequest(filters=[wanted]), 3)
        assert [(one.error_code, one.error_message) for one in response.filter_results] == [
            (disabled, "No Authorizer is configured.")
        ]


async def test_a_client_needs_the_cluster(tmp_path: Path) -> None:
    async with authorized_broker(tmp_path, super_users="User:admin") as broker:
        denied = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert [code for code, _ in await create(broker, creation(), creation())] == [denied, denied]
        response = await ask(broker, DescribeAclsRequest(**ACL_FILTER), 3)
        assert response.error_code == denied


async def test_a_change_counts_at_the_next_request(tmp_path: Path) -> None:
    """On the same connection: no decision of before is used."""
    async with authorized_broker(tmp_path) as broker:
        decide = broker.authorizer.authorize
        question = (Principal("User", "alice"), "10.0.0.1", Operation.READ, ResourceType.TOPIC, "orders")
        assert not decide(*question)
        await create(broker, creation())
        assert decide(*question)
        await create(broker, creation(permission_type=Permission.DENY))
        assert not decide(*question)
