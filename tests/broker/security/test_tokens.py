"""Delegation tokens of a broker: in the tree, on other brokers, as credentials, and their end."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from kpybroker.broker.app import Broker
from kpybroker.broker.security.tokens import DelegationTokens, secret_key
from kpybroker.config.broker import BrokerConfig
from kpybroker.control.levers.movable_clock import MovableClock
from kpybroker.core.authorizer import Principal
from kpybroker.core.security.sasl.scram_login import TokenLogin
from kpybroker.core.security.secret import Secret
from kpybroker.core.security.tokens import password_of
from kpybroker.wire import znodes
from tests.support.brokers.running_broker import running_broker
from tests.support.brokers.sasl_broker import ScramClient, authenticate, handshake, sasl_broker
from tests.support.network.memory_transport import MemoryTransport
from tests.support.network.raw_client import RawClient

ALICE, BOB = Principal("User", "alice"), Principal("User", "bob")
KEY: dict[str, Any] = {"delegation_token_secret_key": "key-of-the-cluster"}
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


@asynccontextmanager
async def token_broker(directory: Path, **keys: Any) -> AsyncIterator[tuple[Broker, DelegationTokens]]:
    async with running_broker(directory, **{**KEY, **keys}) as broker:
        assert broker.tokens is not None
        yield broker, broker.tokens


async def until(condition: Callable[[], bool]) -> None:
    """Wait until it holds; other tasks of the broker make it true."""
    with trio.fail_after(60):
        while not condition():
            await trio.lowlevel.checkpoint()


async def never(_: int | None) -> int | None:
    """Of a broker that does not become the controller."""
    await trio.sleep_forever()


def ids(tokens: DelegationTokens) -> set[str]:
    return {token.token_id for token, _ in tokens.tokens(lambda _: True)}


def login(tokens: DelegationTokens, token_id: str) -> TokenLogin:
    found = tokens.token_login("SCRAM-SHA-256", token_id)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, None),
        ({"delegation.token.secret.key": ""}, None),
        ({"delegation.token.secret.key": "new"}, Secret("new")),
        ({"delegation.token.master.key": "old"}, Secret("old")),
        ({"delegation.token.master.key": "old", "delegation.token.secret.key": "new"}, Secret("new")),
    ],
)
def test_the_key_under_both_names(keys: dict[str, str], expected: Secret | None) -> None:
    assert secret_key(BrokerConfig(keys)) == expected


async def test_without_a_key_there_are_no_tokens(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        assert broker.tokens is None


async def test_a_token_is_a_node_and_its_change_is_announced(tmp_path: Path) -> None:
    async with token_broker(tmp_path) as (broker, tokens):
        token, token_hmac = await tokens.create(ALICE, BOB, (BOB,), -1)
        node = await broker.tree.get(znodes.delegation_token_path(token.token_id))
        stored = znodes.decode_delegation_token(node.data)
        assert (stored.owner, stored.requester, stored.renewers) == ("User:alice", "User:bob", ("User:bob",))
        assert stored.expiry_timestamp_ms == stored.issue_timestamp_ms + DAY_MS
        (change,) = (await broker.tree.children(znodes.DELEGATION_TOKEN_CHANGES)).names
        announced = await broker.tree.get(f"{znodes.DELEGATION_TOKEN_CHANGES}/{change}")
        assert announced.data == token.token_id.encode()
        assert await tokens.renew(BOB, token_hmac, 2 * DAY_MS) > stored.expiry_timestamp_ms
        await tokens.expire(ALICE, token_hmac, -1)
        assert await broker.tree.exists(znodes.delegation_token_path(token.token_id)) is None
        assert len((await broker.tree.children(znodes.DELEGATION_TOKEN_CHANGES)).names) == 3
        assert tokens.token_login("SCRAM-SHA-512", token.token_id) is None


async def test_changes_of_another_broker_are_seen(tmp_path: Path) -> None:
    async with token_broker(tmp_path) as (broker, tokens):
        other = DelegationTokens(broker, Secret(KEY["delegation_token_secret_key"]), never)
        await other.start()
        token, token_hmac = await other.create(ALICE, ALICE, (), -1)
        await until(lambda: token.token_id in ids(tokens))
        await other.renew(ALICE, token_hmac, 2 * DAY_MS)
        expiry_ms = login(other, token.token_id).expires_ms
        await until(lambda: login(tokens, token.token_id).expires_ms == expiry_ms)
        await tokens.expire(ALICE, token_hmac, -1)
        await until(lambda: not ids(other))


async def test_a_start_finds_what_is_in_the_tree(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with token_broker(tmp_path) as (broker, tokens):
        token, _ = await tokens.create(ALICE, ALICE, (), -1)
        await broker.tree.create(znodes.delegation_token_path("broken"), b"{}")
        other = DelegationTokens(broker, Secret("key"), never)
        await other.start()
        assert ids(other) == {token.token_id}
    assert "Error while getting Token for tokenId: 'broken'" in caplog.text


@pytest.mark.parametrize("data", [b"\xff", b"", b"../x"])
async def test_a_broken_announcement_does_not_stop_the_next(
    tmp_path: Path, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with token_broker(tmp_path) as (broker, tokens):
        await broker.tree.create(znodes.delegation_token_change_path(), data, sequential=True)
        other = DelegationTokens(broker, Secret("key"), never)
        await other.start()
        token, _ = await other.create(ALICE, ALICE, (), -1)
        await until(lambda: token.token_id in ids(tokens))
    assert "token_change_0000000000 cannot be read and is ignored" in caplog.text


async def test_the_controller_removes_expired_tokens(tmp_path: Path) -> None:
    clock = MovableClock()
    async with running_broker(tmp_path, clock=clock, **KEY) as broker:
        assert broker.tokens is not None
        token, token_hmac = await broker.tokens.create(ALICE, ALICE, (), -1)
        kept, _ = await broker.tokens.create(ALICE, ALICE, (), -1)
        await broker.tokens.expire(ALICE, token_hmac, 1000)
        await clock.advance(2 * HOUR_MS, trio.testing.wait_all_tasks_blocked)
        assert ids(broker.tokens) == {kept.token_id}
        assert await broker.tree.exists(znodes.delegation_token_path(token.token_id)) is None


async def test_a_new_controller_removes_expired_tokens_at_once(tmp_path: Path) -> None:
    """Not only at its next check, which would be an hour later."""
    send, receive = trio.open_memory_channel[int | None](0)

    async def next_term(_: int | None) -> int | None:
        return await receive.receive()

    async with token_broker(tmp_path) as (broker, tokens):
        other = DelegationTokens(broker, Secret(KEY["delegation_token_secret_key"]), next_term)
        await other.start()

        async def expired() -> str:
            token, token_hmac = await tokens.create(ALICE, ALICE, (), -1)
            expiry_ms = await tokens.expire(ALICE, token_hmac, 0)
            await until(lambda: broker.clock.time_ms() > expiry_ms and token.token_id in ids(other))
            return token.token_id

        for before, term in ((None, 1), (1, 2)):
            token_id = await expired()
            assert ids(tokens) == {token_id}, f"in term {before}"
            await send.send(term)
            await until(lambda: not ids(tokens))
        token_id = await expired()
        await send.send(None)  # another broker is the controller
        await trio.testing.wait_all_tasks_blocked()
        assert ids(tokens) == {token_id}


async def test_the_controller_says_when_its_term_begins(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker:
        with trio.fail_after(60):
            first = await broker.controller.next_term(None)
            assert first is not None
            await broker.tree.delete(znodes.CONTROLLER)
            assert await broker.controller.next_term(first) == first + 1


async def test_old_announcements_are_removed(tmp_path: Path) -> None:
    clock = MovableClock()
    async with running_broker(tmp_path, clock=clock, **KEY) as broker:
        assert broker.tokens is not None
        await broker.tokens.create(ALICE, ALICE, (), -1)
        await clock.advance(DAY_MS // 2, trio.testing.wait_all_tasks_blocked)
        # The embedded tree's own times are the machine's: the announcement is old for the moved clock.
        await broker.tokens.create(ALICE, ALICE, (), -1)
        tree = broker.tree

        async def count() -> int:
            return len((await tree.children(znodes.DELEGATION_TOKEN_CHANGES)).names)

        with trio.fail_after(60):
            while await count():
                await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_a_login_with_a_token(tmp_path: Path, mechanism: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    transport = MemoryTransport()
    async with sasl_broker(tmp_path, transport, **KEY) as broker:
        assert broker.tokens is not None
        token, token_hmac = await broker.tokens.create(ALICE, BOB, (), -1)
        client = await RawClient.to(broker, transport)
        assert (await handshake(client, mechanism)).error_code == 0
        scram = ScramClient(mechanism, token.token_id, password_of(token_hmac))
        scram.bare += ",tokenauth=true"
        challenge = await authenticate(client, scram.first())
        response = await authenticate(client, scram.final(challenge.auth_bytes))
        assert response.error_code == 0
        assert DAY_MS - 60_000 < response.session_lifetime_ms <= DAY_MS
        principals = {connection.principal for connection in broker.server._connections.values()}
        assert principals == {ALICE}
        assert [principal.token_authenticated for principal in principals] == [True]
        assert password_of(token_hmac) not in caplog.text


async def test_credentials_are_not_in_a_repr(tmp_path: Path) -> None:
    async with token_broker(tmp_path) as (_, tokens):
        token, token_hmac = await tokens.create(ALICE, BOB, (), -1)
        login(tokens, token.token_id)
        shown = repr(tokens._known)
        assert token.token_id in shown
        assert repr(token_hmac) not in shown
        assert "ScramCredential" not in shown
