"""The four APIs of delegation tokens: every refusal, and what is in the responses of each version."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kpybroker.broker.app import Broker
from kpybroker.broker.requests.context import PlainConnectionInfo
from kpybroker.control.requests.request_json import message_json
from kpybroker.core.authorizer import AllowAll, Operation, Principal, ResourceType
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from kpybroker.wire.messages.describe_delegation_token import DescribeDelegationTokenRequest
from kpybroker.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from kpybroker.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from tests.support.brokers.running_broker import ask, running_broker

Renewer = CreateDelegationTokenRequest.CreatableRenewers
Owner = DescribeDelegationTokenRequest.DescribeDelegationTokenOwner

DAY_MS = 24 * 3_600_000
LATER_MS = 7 * DAY_MS
EVERY_REQUEST = [
    (CreateDelegationTokenRequest(), 3),
    (RenewDelegationTokenRequest(hmac=b"?"), 2),
    (ExpireDelegationTokenRequest(hmac=b"?"), 2),
    (DescribeDelegationTokenRequest(owners=None), 3),
]


def of(name: str, *, token: bool = False) -> PlainConnectionInfo:
    """A connection of this user."""
    principal = Principal("User", name, token_authenticated=token)
    return PlainConnectionInfo(connection_id="test", security_protocol="SASL_PLAINTEXT", principal=principal)


@asynccontextmanager
async def token_broker(directory: Path) -> AsyncIterator[Broker]:
    async with running_broker(directory, delegation_token_secret_key="key") as broker:
        yield broker


async def create(broker: Broker, name: str, version: int = 3, **fields: Any) -> Any:
    return await ask(broker, CreateDelegationTokenRequest(**fields), version, connection=of(name))


async def described(broker: Broker, name: str, *owners: str, version: int = 3) -> set[str]:
    """The ids of the tokens that a user sees; of all owners where none is named."""
    asked = [Owner(principal_type="User", principal_name=owner) for owner in owners] if owners else None
    response = await ask(broker, DescribeDelegationTokenRequest(owners=asked), version, connection=of(name))
    assert response.error_code == ErrorCode.NONE
    return {token.token_id for token in response.tokens}


class Permits(AllowAll):
    """An authorizer that allows exactly these."""

    def __init__(self, *allowed: tuple[Operation, ResourceType, str]) -> None:
        self.allowed = allowed

    def authorize(
        self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        return (operation, resource_type, name) in self.allowed


@pytest.mark.parametrize(("request_", "version"), EVERY_REQUEST)
@pytest.mark.parametrize(
    "connection",
    [PlainConnectionInfo(), PlainConnectionInfo(security_protocol="SSL"), of("alice", token=True)],
    ids=["plain", "one-way SSL", "token"],
)
async def test_not_on_this_connection(
    tmp_path: Path, request_: Any, version: int, connection: PlainConnectionInfo
) -> None:
    async with token_broker(tmp_path) as broker:
        response = await ask(broker, request_, version, connection=connection)
        assert response.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


@pytest.mark.parametrize(("request_", "version"), EVERY_REQUEST)
async def test_without_a_key_tokens_are_disabled(tmp_path: Path, request_: Any, version: int) -> None:
    async with running_broker(tmp_path) as broker:
        response = await ask(broker, request_, version, connection=of("alice"))
        assert response.error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


@pytest.mark.parametrize("version", [0, 1, 2, 3])
async def test_create(tmp_path: Path, version: int) -> None:
    async with token_broker(tmp_path) as broker:
        response = await create(broker, "alice", version, max_lifetime_ms=-1)
        assert response.error_code == ErrorCode.NONE
        assert (response.principal_type, response.principal_name) == ("User", "alice")
        assert response.token_requester_principal_name == ("alice" if version >= 3 else "")
        assert response.expiry_timestamp_ms - response.issue_timestamp_ms == DAY_MS
        assert response.max_timestamp_ms - response.issue_timestamp_ms == LATER_MS
        assert len(response.token_id) == 22
        assert len(response.hmac) == 64


async def test_create_for_another_needs_create_tokens(tmp_path: Path) -> None:
    async with token_broker(tmp_path) as broker:
        owner: dict[str, Any] = {"owner_principal_type": "User", "owner_principal_name": "bob"}
        broker.authorizer = Permits()
        response = await create(broker, "alice", **owner)
        assert response.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        assert (response.principal_name, response.token_requester_principal_name) == ("bob", "alice")
        assert (response.issue_timestamp_ms, response.token_id, response.hmac) == (-1, "", b"")
        broker.authorizer = Permits((Operation.CREATE_TOKENS, ResourceType.USER, "User:bob"))
        response = await create(broker, "alice", **owner)
        assert response.error_code == ErrorCode.NONE
        assert (response.principal_name, response.token_requester_principal_name) == ("bob", "alice")
        broker.authorizer = Permits()
        own: dict[str, Any] = {"owner_principal_type": "User", "owner_principal_name": "alice"}
        assert (await create(broker, "alice", **own)).error_code == ErrorCode.NONE


async def test_renewers_must_be_users(tmp_path: Path) -> None:
    async with token_broker(tmp_path) as broker:
        response = await create(broker, "alice", renewers=[Renewer(principal_type="Group", principal_name="staff")])
        assert response.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE


async def test_renew_and_expire(tmp_path: Path) -> None:
    async with token_broker(tmp_path) as broker:
        renewers = [Renewer(principal_type="User", principal_name="bob")]
        token = await create(broker, "alice", renewers=renewers, max_lifetime_ms=LATER_MS)

        async def renew(name: str, hmac: bytes, period_ms: int) -> tuple[int, int]:
            response = await ask(
                broker, RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms), 2, connection=of(name)
            )
            return response.error_code, response.expiry_timestamp_ms

        async def expire(name: str, hmac: bytes, period_ms: int) -> tuple[int, int]:
            response = await ask(
                broker, ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms), 2, connection=of(name)
            )
            return response.error_code, response.expiry_timestamp_ms

        assert await renew("carol", token.hmac, -1) == (ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, -1)
        assert await renew("bob", b"unknown", -1) == (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, -1)
        assert await renew("bob", token.hmac, 100 * DAY_MS) == (ErrorCode.NONE, token.max_timestamp_ms)
        assert await expire("carol", token.hmac, -1) == (ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, -1)
        code, expiry_ms = await expire("bob", token.hmac, DAY_MS)
        assert code == ErrorCode.NONE
        assert token.issue_timestamp_ms + DAY_MS <= expiry_ms < token.max_timestamp_ms
        code, expiry_ms = await expire("alice", token.hmac, -1)
        assert code == ErrorCode.NONE
        assert token.issue_timestamp_ms <= expiry_ms < token.issue_timestamp_ms + DAY_MS
        assert await expire("alice", token.hmac, -1) == (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, -1)


async def test_describe_shows_what_concerns_the_user_or_is_allowed(tmp_path: Path) -> None:
    async with token_broker(tmp_path) as broker:
        renewers = [Renewer(principal_type="User", principal_name="bob")]
        of_alice = (await create(broker, "alice", renewers=renewers)).token_id
        of_carol = (await create(broker, "carol")).token_id
        assert await described(broker, "dave") == {of_alice, of_carol}
        broker.authorizer = Permits()
        assert await described(broker, "alice") == {of_alice}
        assert await described(broker, "bob") == {of_alice}
        assert await described(broker, "dave") == set()
        assert await described(broker, "alice", "carol") == set()
        broker.authorizer = Permits((Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, of_carol))
        assert await described(broker, "alice") == {of_alice, of_carol}
        assert await described(broker, "alice", "bob") == {of_alice}
        broker.authorizer = Permits((Operation.DESCRIBE_TOKENS, ResourceType.USER, "User:carol"))
        assert await described(broker, "dave", "carol", "alice") == {of_carol}


@pytest.mark.parametrize("version", [0, 1, 2, 3])
async def test_described_fields(tmp_path: Path, version: int) -> None:
    async with token_broker(tmp_path) as broker:
        created = await create(broker, "alice", renewers=[Renewer(principal_type="User", principal_name="bob")])
        request = DescribeDelegationTokenRequest(owners=None)
        (token,) = (await ask(broker, request, version, connection=of("alice"))).tokens
        assert (token.token_id, token.hmac) == (created.token_id, created.hmac)
        assert (token.issue_timestamp, token.expiry_timestamp) == (
            created.issue_timestamp_ms,
            created.expiry_timestamp_ms,
        )
        assert token.token_requester_principal_name == ("alice" if version >= 3 else "")
        assert [one.principal_name for one in token.renewers] == ["bob"]


async def test_an_empty_list_of_owners_describes_nothing(tmp_path: Path) -> None:
    async with token_broker(tmp_path) as broker:
        await create(broker, "alice")
        response = await ask(broker, DescribeDelegationTokenRequest(owners=[]), 3, connection=of("alice"))
        assert (response.error_code, response.tokens) == (ErrorCode.NONE, [])


async def test_no_repr_and_no_json_shows_a_secret(tmp_path: Path) -> None:
    async with token_broker(tmp_path) as broker:
        created = await create(broker, "alice")
        shown = repr(created) + str(message_json(created, 3))
        assert repr(created.hmac) not in shown
        assert shown.count("[hidden]") == 2
