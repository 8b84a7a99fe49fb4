"""A broker with one SASL listener, SASL, whose users are alice and bob, and raw clients that log in."""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from kpybroker.broker.app import Broker
from kpybroker.broker.network.transport import Transport
from kpybroker.core.security.scram import BY_NAME, client_proof, escape_name, salted_password
from kpybroker.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from kpybroker.wire.messages.sasl_handshake import SaslHandshakeRequest
from tests.support.brokers.running_broker import running_broker
from tests.support.network.raw_client import RawClient

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required"
BROKERS = 'username="broker" password="broker-secret"'

SETTINGS = {
    "listeners": "SASL://127.0.0.1:9092",
    "listener.security.protocol.map": "SASL:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "inter.broker.listener.name": "SASL",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl.plain.sasl.jaas.config": f'{PLAIN_MODULE} {BROKERS} user_broker="broker-secret" '
    'user_alice="alice-secret" user_bob="bob-secret";',
    "listener.name.sasl.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} {BROKERS};",
    "listener.name.sasl.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} {BROKERS};",
    "kpybroker.scram.initial.users": "SCRAM-SHA-256=[name=alice,password=alice-secret],"
    "SCRAM-SHA-512=[name=alice,password=alice-secret],SCRAM-SHA-256=[name=broker,password=broker-secret]",
    "connection.failed.authentication.delay.ms": "0",
}


@asynccontextmanager
async def sasl_broker(directory: Path, transport: Transport, **keys: Any) -> AsyncIterator[Broker]:
    """Settings as above; `keys` are further ones, as `running_broker` takes them."""
    async with running_broker(directory, transport=transport, **{**SETTINGS, **keys}) as broker:
        yield broker


async def handshake(client: RawClient, mechanism: str = "PLAIN", version: int = 1) -> Any:
    return await client.ask(SaslHandshakeRequest(mechanism=mechanism), version)


async def authenticate(client: RawClient, token: bytes, version: int = 2) -> Any:
    return await client.ask(SaslAuthenticateRequest(auth_bytes=token), version)


async def log_in(client: RawClient, name: str = "alice", password: str | None = None, version: int = 2) -> Any:
    """The response of a login by PLAIN."""
    assert (await handshake(client)).error_code == 0
    return await authenticate(client, plain_token(name, password), version)


def plain_token(name: str = "alice", password: str | None = None) -> bytes:
    return f"\0{name}\0{password or name + '-secret'}".encode()


class ScramClient:
    """The tokens of a SCRAM client."""

    def __init__(self, mechanism: str, name: str, password: str) -> None:
        self.mechanism = BY_NAME[mechanism]
        self.password = password
        self.bare = f"n={escape_name(name)},r=nonce"

    def first(self) -> bytes:
        return f"n,,{self.bare}".encode()

    def final(self, challenge: bytes) -> bytes:
        text = challenge.decode()
        match = re.fullmatch("r=(.*),s=(.*),i=(.*)", text)
        assert match is not None, text
        salted = salted_password(self.mechanism, self.password, base64.b64decode(match[2]), int(match[3]))
        without_proof = f"c=biws,r={match[1]}"
        proof = client_proof(self.mechanism, salted, f"{self.bare},{text},{without_proof}".encode())
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()


async def scram_log_in(client: RawClient, mechanism: str, name: str, password: str) -> Any:
    """The response that ends a login by SCRAM."""
    assert (await handshake(client, mechanism)).error_code == 0
    scram = ScramClient(mechanism, name, password)
    challenge = await authenticate(client, scram.first())
    if challenge.error_code:
        return challenge
    return await authenticate(client, scram.final(challenge.auth_bytes))
