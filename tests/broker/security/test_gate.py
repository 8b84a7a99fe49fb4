"""What a connection can do on a SASL listener before, during and after a login; with Kafka's codes and texts."""

from __future__ import annotations

import gc
import logging
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from kpybroker.broker.app import Broker
from kpybroker.broker.loop.clock import Clock
from kpybroker.broker.requests.connection import Connection
from kpybroker.core.authorizer import Principal
from kpybroker.core.security.sasl.mechanism import LoggedIn
from kpybroker.wire.api import ApiKey
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.headers import RequestHeader, encode_request_header
from kpybroker.wire.messages.api_versions import ApiVersionsRequest
from kpybroker.wire.messages.metadata import MetadataRequest
from kpybroker.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from kpybroker.wire.messages.sasl_handshake import SaslHandshakeRequest
from tests.support.brokers.sasl_broker import (
    ScramClient,
    authenticate,
    handshake,
    log_in,
    plain_token,
    sasl_broker,
    scram_log_in,
)
from tests.support.network.memory_transport import MemoryTransport
from tests.support.network.raw_client import RawClient

VERSIONS = ApiVersionsRequest(client_software_name="test", client_software_version="1")
REAUTHENTICATION = {"connections.max.reauth.ms": "60000"}


class StoppedClock(Clock):
    """Stands still unless it is moved. Pauses are real."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000

    def time_ms(self) -> int:
        return self.now_ms

    def monotonic(self) -> float:
        return self.now_ms / 1000


@pytest.fixture
def transport() -> MemoryTransport:
    return MemoryTransport()


async def connect(broker: Broker, transport: MemoryTransport) -> RawClient:
    return await RawClient.to(broker, transport)


async def works(client: RawClient) -> bool:
    """Whether requests are served; False: the connection is closed."""
    response = await client.ask(MetadataRequest(topics=[]), 9)
    return response is not None and bool(response.brokers)


def principals(broker: Broker) -> set[str]:
    return {str(connection.principal) for connection in broker.server._connections.values()}


# --- logins


async def test_a_login_opens_the_connection_to_every_request(tmp_path: Path, transport: MemoryTransport) -> None:
    async with sasl_broker(tmp_path, transport) as broker:
        client = await connect(broker, transport)
        assert (await client.ask(VERSIONS, 3)).error_code == 0
        response = await log_in(client)
        assert (response.error_code, response.error_message, response.session_lifetime_ms) == (0, "", 0)
        assert await works(client)
        assert principals(broker) == {"User:alice"}


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_a_login_by_scram(tmp_path: Path, transport: MemoryTransport, mechanism: str) -> None:
    async with sasl_broker(tmp_path, transport) as broker:
        client = await connect(broker, transport)
        response = await scram_log_in(client, mechanism, "alice", "alice-secret")
        assert response.error_code == 0
        assert response.auth_bytes.startswith(b"v=")
        assert await works(client)


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_every_version_of_sasl_authenticate(tmp_path: Path, transport: MemoryTransport, version: int) -> None:
    async with sasl_broker(tmp_path, transport) as broker:
        client = await connect(broker, transport)
        assert (await log_in(client, version=version)).error_code == 0
        assert await works(client)


async def test_an_old_client_sends_bare_tokens(tmp_path: Path, transport: MemoryTransport) -> None:
    async with sasl_broker(tmp_path, transport) as broker:
        client = await connect(broker, transport)
        assert (await handshake(client, version=0)).error_code == 0
        await client.client.send(plain_token())
        assert await client.client.receive() == b""
        assert await works(client)


async def test_an_old_client_sends_bare_tokens_of_scram(tmp_path: Path, transport: MemoryTransport) -> None:
    async with sasl_broker(tmp_path, transport) as broker:
        client = await connect(broker, transport)
        await handshake(client, "SCRAM-SHA-256", version=0)
        scram = ScramClient("SCRAM-SHA-256", "alice", "alice-secret")
        await client.client.send(scram.first())
        challenge = await client.client.receive()
        assert challenge is not None
        await client.client.send(scram.final(challenge))
        signature = await client.client.receive()
        assert signature is not None
        assert signature.startswith(b"v=")
        assert await works(client)


async def test_what_is_sent_right_after_the_login_is_served(tmp_path: Path, transport: MemoryTransport) -> None:
    """Also if it arrives in one piece with the login."""
    async with sasl_broker(tmp_path, transport) as broker:
        client = await connect(broker, transport)
        for request, version in (
            (SaslHandshakeRequest(mechanism="PLAIN"), 1),
            (SaslAuthenticateRequest(auth_bytes=plain_token()), 2),
            (MetadataRequest(topics=[]), 9),
        ):
            await client.send(request, version)
        assert [(await client.receive()).__class__.__name__ for _ in range(3)] == [
            "SaslHandshakeResponse",
            "SaslAuthenticateResponse",
            "MetadataResponse",
        ]


# --- refusals


async def test_a_wrong_password_ends_the_connection_after_kafkas_response(
    tmp_path: Path, transport: MemoryTransport, caplog: pytest.LogCaptureFixture
) -> None:
    async with sasl_broker(tmp_path, transport) as broker:
        caplog.set_level(logging.DEBUG)
        client = await connect(broker, transport)
        response = await log_in(client, password="wrong-one")
        assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert response.error_message == "Authentication failed: Invalid username or password"
        assert await client.receive() is None
        assert "Failed authentication with" in caplog.text
        assert "Authentication failed: Invalid username or password" in caplog.text
        assert "wrong-one" not in caplog.text
        assert "alice-secret" not in caplog.text


@pytest.mark.parametrize(("name", "password"), [("alice", "wrong"), ("mallory", "alice-secret")])
async def test_scram_refuses_unknown_users_and_wrong_passwords_alike(
    tmp_path: Path, transport: MemoryTransport, name: str, password: str
) -> None:
    async with sasl_broker(tmp_path, transport) as broker:
        client = await connect(broker, transport)
        response = await scram_log_in(client, "SCRAM-SHA-256", name, password)
        assert client.received == 3  # the handshake, the challenge, the refusal
        assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert response.error_message == (
            "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
        )
        assert await client.receive() is None


async def test_an_old_client_with_a_wrong_password_gets_no_response(tmp_path: Path, transport: MemoryTransport) -> None:
    async with sasl_broker(tmp_path, transport) as broker:
        client = await connect(broker, transport)
        await handshake(client, version=0)
        await client.client.send(b"\0alice\0wrong")
        assert await client.client.receive() is None


async def test_an_unknown_mechanism_is_refused_with_those_that_are_enabled(
    tmp_path: Path, transport: MemoryTransport
) -> None:
    async with sasl_broker(tmp_path, transport) as broker:
        client = await connect(broker, transport)
        response = await handshake(client, "GSSAPI")
        assert response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert sorted(response.mechanisms) == ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
        assert await client.receive() is None


async def test_a_refusal_is_held_back_and_holds_no_memory(tmp_path: Path, transport: MemoryTransport) -> None:
    keys = {"connection.failed.authentication.delay.ms": "200"}
    async with sasl_broker(tmp_path, transport, **keys) as broker:
        client = await connect(broker, transport)
        await handshake(client)
        started = trio.current_time()
        await client.send(SaslAuthenticateRequest(auth_bytes=b"\0a\0" + bytes(60_000)), 2)
        with trio.fail_after(60):
            while "ended" not in _states(broker):
                await trio.lowlevel.checkpoint()
        assert broker.server._memory.used == 0
        assert (await client.receive()).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert trio.current_time() - started >= 0.2


def _states(broker: Broker) -> list[str]:
    guards: list[Any] = [connection.respond_now for connection in broker.server._connections.values()]
    return [guard.__self__._state.value for guard in guards]


# --- the wrong order


async def test_a_request_before_the_login_ends_the_connection(
    tmp_path: Path, transport: MemoryTransport, caplog: pytest.LogCaptureFixture
) -> None:
    async with sasl_broker(tmp_path, transport) as broker:
        client = await connect(broker, transport)
        assert (await client.ask(VERSIONS, 3)).error_code == 0
        assert not await works(client)
        assert "Unexpected Kafka request of type METADATA during SASL handshake" in caplog.text
        assert "set security.protocol=SASL_PLAINTEXT" in caplog.text


async def test_api_versions_is_served_once_and_again_after_an_error(tmp_path: Path, transport: MemoryTransport) -> None:
    async with sasl_broker(tmp_path, transport) as broker:
        client = await connect(broker, transport)
        assert (
            await client.ask(ApiVersionsRequest(client_software_name="-", client_software_version="1"), 3)
        ).error_code
        assert (await client.ask(VERSIONS, 3)).error_code == 0
        assert await client.ask(VERSIONS, 3) is None


async def test_a_request_in_the_midst_of_a_login_gets_its_own_error(tmp_path: Path, transport: MemoryTransport) -> None:
    async with sasl_broker(tmp_path, transport) as broker:
        client = await connect(broker, transport)
        await handshake(client)
        response = await client.ask(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t")]), 9)
        assert [topic.error_code for topic in response.topics] == [ErrorCode.ILLEGAL_SASL_STATE]
        assert await client.receive() is None


async def test_sasl_authenticate_without_a_handshake_ends_the_connection(
    tmp_path: Path, transport: MemoryTransport
) -> None:
    async with sasl_broker(tmp_path, transport) as broker:
        client = await connect(broker, transport)
        assert await authenticate(client, plain_token()) is None


async def test_a_login_after_the_login_is_an_illegal_state(tmp_path: Path, transport: MemoryTransport) -> None:
    async with sasl_broker(tmp_path, transport) as broker:
        client = await connect(broker, transport)
        await log_in(client)
        assert (await handshake(client)).error_code == ErrorCode.ILLEGAL_SASL_STATE
        response = await authenticate(client, plain_token())
        assert response.error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert response.error_message == "SaslAuthenticate request received after successful authentication"
        assert await works(client)


@pytest.mark.parametrize("frame", [b"\x60\x82\x01", b"", b"GET / HTTP", b"\x00\x11\x00\x09\0\0\0\1\0\0"])
async def test_other_first_frames_end_the_connection(tmp_path: Path, transport: MemoryTransport, frame: bytes) -> None:
    async with sasl_broker(tmp_path, transport) as broker:
        client = await connect(broker, transport)
        await client.client.send(frame)
        assert await client.client.receive() is None
        assert broker.server.connection_count == 0


@pytest.mark.parametrize(("size", "is_accepted"), [(64 * 1024, True), (64 * 1024 + 1, False)])
async def test_frames_before_the_login_are_small(
    tmp_path: Path, transport: MemoryTransport, size: int, is_accepted: bool
) -> None:
    async with sasl_broker(tmp_path, transport) as broker:
        client = await connect(broker, transport)
        await handshake(client)
        overhead = len(encode_request_header(RequestHeader(ApiKey.SASL_AUTHENTICATE, 1, 2, "raw"))) + 4
        if is_accepted:
            response = await authenticate(client, bytes(size - overhead), version=1)
            assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        else:
            await client.client.stream.send_parts([size.to_bytes(4, "big")])
            assert await client.client.receive() is None


async def test_frames_after_the_login_may_be_large(tmp_path: Path, transport: MemoryTransport) -> None:
    async with sasl_broker(tmp_path, transport) as broker:
        client = await connect(broker, transport)
        await log_in(client)
        topics = [MetadataRequest.MetadataRequestTopic(name="t" * 200) for _ in range(1000)]
        assert len((await client.ask(MetadataRequest(topics=topics), 9)).topics) == 1


# --- sessions


async def test_a_session_lasts_as_long_as_the_response_says(tmp_path: Path, transport: MemoryTransport) -> None:
    clock = StoppedClock()
    async with sasl_broker(tmp_path, transport, clock=clock, **REAUTHENTICATION) as broker:
        client = await connect(broker, transport)
        assert (await log_in(client)).session_lifetime_ms == 60_000
        clock.now_ms += 60_000
        assert await works(client)
        clock.now_ms += 1
        assert not await works(client)


async def test_a_client_that_logs_in_again_goes_on(tmp_path: Path, transport: MemoryTransport) -> None:
    clock = StoppedClock()
    async with sasl_broker(tmp_path, transport, clock=clock, **REAUTHENTICATION) as broker:
        client = await connect(broker, transport)
        await log_in(client)
        for _ in range(3):
            clock.now_ms += 60_001
            assert (await log_in(client)).session_lifetime_ms == 60_000
            assert await works(client)


async def test_a_second_login_within_a_second_is_an_illegal_state(tmp_path: Path, transport: MemoryTransport) -> None:
    clock = StoppedClock()
    async with sasl_broker(tmp_path, transport, clock=clock, **REAUTHENTICATION) as broker:
        client = await connect(broker, transport)
        await log_in(client)
        await log_in(client)
        assert (await handshake(client)).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert await works(client)


async def test_a_client_cannot_become_another_one(tmp_path: Path, transport: MemoryTransport) -> None:
    async with sasl_broker(tmp_path, transport, **REAUTHENTICATION) as broker:
        client = await connect(broker, transport)
        await log_in(client)
        response = await log_in(client, "bob")
        assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert response.error_message == ("Cannot change principals during re-authentication from User.alice: User.bob")
        assert await client.receive() is None


async def test_a_client_cannot_change_its_mechanism(tmp_path: Path, transport: MemoryTransport) -> None:
    async with sasl_broker(tmp_path, transport, **REAUTHENTICATION) as broker:
        client = await connect(broker, transport)
        await log_in(client)
        assert (await handshake(client, "SCRAM-SHA-256")).error_code == 0
        assert await authenticate(client, b"n,,n=alice,r=x") is None


async def test_a_refused_second_login_says_so(tmp_path: Path, transport: MemoryTransport) -> None:
    async with sasl_broker(tmp_path, transport, **REAUTHENTICATION) as broker:
        client = await connect(broker, transport)
        await scram_log_in(client, "SCRAM-SHA-256", "alice", "alice-secret")
        response = await scram_log_in(client, "SCRAM-SHA-256", "alice", "wrong")
        assert response.error_message.startswith("Authentication failed during re-authentication due to")
        assert await client.receive() is None


async def test_a_mechanism_has_its_own_limit_of_sessions(tmp_path: Path, transport: MemoryTransport) -> None:
    keys = {"listener.name.sasl.plain.connections.max.reauth.ms": "5000"}
    async with sasl_broker(tmp_path, transport, **REAUTHENTICATION, **keys) as broker:
        assert (await log_in(await connect(broker, transport))).session_lifetime_ms == 5_000
        other = await connect(broker, transport)
        assert (await scram_log_in(other, "SCRAM-SHA-256", "alice", "alice-secret")).session_lifetime_ms == 60_000


@pytest.mark.parametrize(("expires_ms", "lifetime_ms"), [(1_010_000, 10_000), (900_000, 0), (2_000_000, 60_000)])
async def test_a_credential_that_expires_limits_the_session(
    tmp_path: Path, transport: MemoryTransport, expires_ms: int, lifetime_ms: int
) -> None:
    clock = StoppedClock()
    async with sasl_broker(tmp_path, transport, clock=clock, **REAUTHENTICATION) as broker:
        _replace_plain(broker, Ticket(expires_ms))
        client = await connect(broker, transport)
        assert (await log_in(client)).session_lifetime_ms == lifetime_ms
        clock.now_ms += lifetime_ms + 1
        assert not await works(client)


# --- mechanisms of any kind


class Ticket:
    """A mechanism, and its only login, whose users have a ticket until `expires_ms`."""

    name = "PLAIN"
    blocks = False

    def __init__(self, expires_ms: int = 0, error: Exception | None = None) -> None:
        self.expires_ms = expires_ms
        self.error = error

    def begin(self) -> Ticket:
        return self

    def step(self, response: bytes, now_ms: int) -> LoggedIn:
        if self.error is not None:
            raise self.error
        return LoggedIn(Principal("User", "ticket"), expires_ms=self.expires_ms)


class SlowTicket(Ticket):
    blocks = True

    def step(self, response: bytes, now_ms: int) -> LoggedIn:
        with pytest.raises(RuntimeError, match="must be called from async context"):
            trio.current_time()
        return super().step(response, now_ms)


def _replace_plain(broker: Broker, mechanism: Ticket) -> None:
    logins: Any = broker.bound[0].gate.logins  # type: ignore[union-attr]
    logins._made = {"PLAIN": mechanism}


async def test_a_mechanism_that_blocks_works_in_a_thread(tmp_path: Path, transport: MemoryTransport) -> None:
    async with sasl_broker(tmp_path, transport) as broker:
        _replace_plain(broker, SlowTicket(2**60))
        client = await connect(broker, transport)
        assert (await log_in(client)).error_code == 0
        assert await works(client)


@pytest.mark.parametrize("kind", [Ticket, SlowTicket])
async def test_a_mechanism_that_fails_refuses_and_shows_nothing(
    tmp_path: Path, transport: MemoryTransport, caplog: pytest.LogCaptureFixture, kind: type[Ticket]
) -> None:
    async with sasl_broker(tmp_path, transport) as broker:
        caplog.set_level(logging.DEBUG)
        _replace_plain(broker, kind(error=RuntimeError("alice-secret is no good")))
        client = await connect(broker, transport)
        response = await log_in(client)
        assert response.error_message == (
            "Authentication failed during authentication due to invalid credentials with SASL mechanism PLAIN"
        )
        assert "SASL mechanism PLAIN failed: RuntimeError in Ticket.step line" in caplog.text
        assert "alice-secret" not in caplog.text


# --- the end


def connections_in_memory() -> int:
    return sum(type(one) is Connection for one in gc.get_objects())


@pytest.mark.parametrize("how", ["silent", "logged in", "wrong password", "wrong password of scram"])
async def test_a_connection_that_has_ended_waits_for_no_collection(
    tmp_path: Path, transport: MemoryTransport, how: str
) -> None:
    """Attackers leave nothing that only a full collection, which is rare, would free."""
    async with sasl_broker(tmp_path, transport) as broker:
        gc.collect()
        before = connections_in_memory()
        gc.disable()
        try:
            client = await connect(broker, transport)
            await trio.testing.wait_all_tasks_blocked()  # it is accepted
            if how == "logged in":
                assert (await log_in(client)).error_code == 0
            elif how == "wrong password":
                assert (await log_in(client, password="wrong")).error_code != 0
            elif how == "wrong password of scram":
                await handshake(client, "SCRAM-SHA-256")
                assert (await authenticate(client, b"n,,n=alice,r=nonce")).error_code == 0
                assert (await authenticate(client, b"c=biws,r=nonce,p=AA==")).error_code != 0
            client.close()
            with trio.fail_after(60):
                while broker.server.connection_count:
                    await trio.lowlevel.checkpoint()
            await trio.testing.wait_all_tasks_blocked()
            assert connections_in_memory() == before
        finally:
            gc.enable()
