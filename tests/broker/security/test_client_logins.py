"""This broker's logins at another broker: with the real gate of one, and with peers that lie."""

from __future__ import annotations

import base64
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any

import pytest
import trio

from kpybroker.broker.app import Broker
from kpybroker.broker.network.transport import Stream
from kpybroker.broker.security.client_logins import ITERATIONS_MAX, PeerLogin, PeerLoginFailed, peer_login
from kpybroker.broker.security.logins import LoginConfigError
from kpybroker.config.broker import BrokerConfig
from kpybroker.wire.errors import ProtocolError
from kpybroker.wire.messages.metadata import MetadataRequest
from tests.support.brokers.sasl_broker import SCRAM_MODULE, SETTINGS, sasl_broker
from tests.support.network.echo_server import Client, framed
from tests.support.network.memory_transport import MemoryTransport
from tests.support.network.raw_client import RawClient

MECHANISMS = ["PLAIN", "SCRAM-SHA-256"]


def login(mechanism: str, **keys: str) -> PeerLogin:
    return peer_login(BrokerConfig({**SETTINGS, "sasl.mechanism.inter.broker.protocol": mechanism, **keys}), "SASL")


async def connect(broker: Broker, transport: MemoryTransport) -> Stream:
    return await transport.connect(*broker.bound[0].listener.address, timeout_s=60)


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_a_broker_logs_in_at_another_one(tmp_path: Path, mechanism: str) -> None:
    transport = MemoryTransport()
    async with sasl_broker(tmp_path, transport) as broker:
        stream = await connect(broker, transport)
        assert await login(mechanism).log_in(stream, "1", timeout_s=60) == inf
        client = RawClient(Client(stream), "1")
        assert (await client.ask(MetadataRequest(topics=[]), 9)).brokers


async def test_a_session_is_renewed_before_its_end(tmp_path: Path) -> None:
    transport = MemoryTransport()
    async with sasl_broker(tmp_path, transport, **{"connections.max.reauth.ms": "100000"}) as broker:
        stream = await connect(broker, transport)
        renew_at = await login("PLAIN").log_in(stream, "1", timeout_s=60)
        assert trio.current_time() + 80 < renew_at < trio.current_time() + 86
        assert await login("PLAIN").log_in(stream, "1", timeout_s=60) > renew_at - 1


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_a_refused_login_says_why_and_shows_no_password(tmp_path: Path, mechanism: str) -> None:
    transport = MemoryTransport()
    async with sasl_broker(tmp_path, transport) as broker:
        stream = await connect(broker, transport)
        config = {k: v.replace('"broker-secret"', '"geheim"') for k, v in SETTINGS.items() if "jaas" in k}
        with pytest.raises(PeerLoginFailed, match="SASL_AUTHENTICATION_FAILED: Authentication failed") as caught:
            await login(mechanism, **config).log_in(stream, "1", timeout_s=60)
        assert "geheim" not in repr(caught.value)


async def test_a_mechanism_that_the_other_broker_lacks(tmp_path: Path) -> None:
    transport = MemoryTransport()
    key = "listener.name.sasl.sasl.enabled.mechanisms"
    async with sasl_broker(tmp_path, transport, **{key: "PLAIN"}) as broker:
        stream = await connect(broker, transport)
        with pytest.raises(PeerLoginFailed, match="UNSUPPORTED_SASL_MECHANISM; the other broker has PLAIN"):
            await login("SCRAM-SHA-256").log_in(stream, "1", timeout_s=60)


# --- peers that lie

HANDSHAKE = b"\0\0\0\1" + b"\0\0" + bytes(4)


def authenticated(correlation_id: int, token: bytes) -> bytes:
    return correlation_id.to_bytes(4, "big") + b"\0\0\xff\xff" + len(token).to_bytes(4, "big") + token + bytes(8)


async def at_a_liar(mechanism: str, second: Callable[[str], bytes], third: bytes = b"v=AAAA") -> float:
    """Log in where the second response is made from the client's nonce."""
    transport = MemoryTransport()
    listener = transport.listen("127.0.0.1", 0, 5)

    async def lie() -> None:
        client = Client(await listener.accept())
        await client.receive()
        await client.stream.send_parts([framed(HANDSHAKE)])
        first = (await client.receive() or b"").decode("utf-8", "replace")
        await client.stream.send_parts([second(first.rpartition("r=")[2])])
        if await client.receive() is not None:
            await client.stream.send_parts([framed(authenticated(3, third))])

    outcome: list[float | Exception] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lie)
        stream = await transport.connect(*listener.address, timeout_s=60)
        try:
            outcome.append(await login(mechanism).log_in(stream, "1", timeout_s=60))
        except (OSError, ProtocolError) as error:
            outcome.append(error)
        nursery.cancel_scope.cancel()
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    return outcome[0]


def challenge(nonce: str, iterations: int, salt: str = "YQ==") -> bytes:
    return framed(authenticated(2, f"r={nonce},s={salt},i={iterations}".encode()))


@pytest.mark.parametrize(
    ("second", "text"),
    [
        (lambda nonce: challenge(nonce + "x", 4095), "asks for 4095 iterations"),
        (lambda nonce: challenge(nonce + "x", ITERATIONS_MAX + 1), "asks for 1000001 iterations"),
        (lambda nonce: challenge("other", 4096), "challenge is not valid"),
        (lambda nonce: challenge(nonce, 4096), "challenge is not valid"),
        (lambda nonce: challenge(nonce + "x", 4096, "Y"), "challenge is not valid"),
        (lambda nonce: framed(authenticated(2, b"\xff")), "challenge is not valid"),
        (lambda nonce: challenge(nonce + "x", 4096), "does not know this user's credential"),
    ],
)
async def test_scram_does_not_believe_a_liar(second: Callable[[str], bytes], text: str) -> None:
    with pytest.raises(PeerLoginFailed, match=text):
        await at_a_liar("SCRAM-SHA-256", second)


@pytest.mark.parametrize(
    "second",
    [
        lambda _: b"\x7f\xff\xff\xff",
        lambda _: framed(authenticated(9, b"")),
        lambda _: framed(b"\0\0\0\2"),
    ],
)
async def test_a_response_that_is_none_is_a_protocol_error(second: Callable[[str], bytes]) -> None:
    with pytest.raises(ProtocolError):
        await at_a_liar("PLAIN", second)


async def test_a_peer_that_says_nothing_is_given_up(autojump_clock: Any) -> None:
    transport = MemoryTransport()
    listener = transport.listen("127.0.0.1", 0, 5)
    stream = await transport.connect(*listener.address, timeout_s=60)
    with pytest.raises(TimeoutError, match="no login within 5 s"):
        await login("PLAIN").log_in(stream, "1", timeout_s=5)


@pytest.mark.parametrize(
    ("keys", "cause"),
    [
        ({"listener.name.sasl.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE};"}, "has no username and password"),
        ({"listener.name.sasl.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} username=a"}, "malformed JAAS"),
    ],
)
def test_settings_that_cannot_be_used_have_a_cause_and_a_fix(keys: dict[str, str], cause: str) -> None:
    with pytest.raises(LoginConfigError) as caught:
        login("SCRAM-SHA-256", **keys)
    assert cause in caught.value.cause
    assert "username=" in caught.value.fix


def test_the_signature_check_is_not_by_chance() -> None:
    """The liar of above sends a signature of another length; one of the right length is refused as well."""
    made = login("SCRAM-SHA-256").begin("localhost")
    nonce = made.first().decode().rpartition("r=")[2]
    made.next(f"r={nonce}x,s=YQ==,i=4096".encode())
    with pytest.raises(PeerLoginFailed):
        made.next(b"v=" + base64.b64encode(bytes(32)))
