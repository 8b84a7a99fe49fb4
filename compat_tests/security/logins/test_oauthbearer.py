"""OAUTHBEARER: the responses of real Kafka 3.9.1 and of kpybroker to the same tokens, and stock clients with tokens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from confluent_kafka import Producer
from joserfc import jwk
from kafka import KafkaProducer
from kafka.net.sasl.oauth import AbstractTokenProvider as KafkaPythonTokenProvider

from compat_tests.conftest import Launcher
from compat_tests.overload.raw import Raw
from compat_tests.security.pairs import Address, Pair, running_pair
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from kpybroker.wire.messages.sasl_handshake import SaslHandshakeRequest
from tests.support.network.bearer import document, encoded, message, rsa_key, signed, unsecured

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
MECHANISM = "listener.name.sasl.oauthbearer"
VALIDATOR = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
KEY = rsa_key("one")
EC = jwk.ECKey.generate_key("P-256", {"kid": "two"})
NAMELESS = rsa_key(None)
STRANGER = rsa_key("one")
HOUR_S = 3600
DEADLINE_S = 60.0


def claims(**more: Any) -> dict[str, Any]:
    """Of a good token; None removes a claim."""
    now = int(time.time())
    values = {"sub": "alice", "iat": now, "exp": now + HOUR_S, "aud": "kafka", "iss": "https://issuer"} | more
    return {name: value for name, value in values.items() if value is not None}


@pytest.fixture(scope="module")
def signed_pair(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    file: Path = tmp_path_factory.mktemp("jwks") / "keys.json"
    file.write_bytes(document(KEY, EC, NAMELESS))
    properties = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{MECHANISM}.sasl.jaas.config": f"{MODULE};",
        f"{MECHANISM}.sasl.server.callback.handler.class": VALIDATOR,
        "sasl.oauthbearer.jwks.endpoint.url": file.as_uri(),
        "sasl.oauthbearer.expected.audience": "kafka,other",
        "sasl.oauthbearer.expected.issuer": "https://issuer",
    }
    with running_pair(launcher, "bearer-signed", properties) as pair:
        yield pair


@pytest.fixture(scope="module")
def unsecured_pair(launcher: Launcher) -> Iterator[Pair]:
    jaas = f'{MODULE} unsecuredLoginStringClaim_sub="broker" unsecuredValidatorRequiredScope="a b";'
    properties = {"sasl.enabled.mechanisms": "OAUTHBEARER", f"{MECHANISM}.sasl.jaas.config": jaas}
    with running_pair(launcher, "bearer-unsecured", properties) as pair:
        yield pair


def outcome(address: Address, first: bytes) -> tuple[Any, ...]:
    """What a client that sends this message gets, up to the end of the connection."""
    seen: list[Any] = []
    with Raw(address) as client:
        assert client.ask(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1).error_code == 0
        try:
            response = client.ask(SaslAuthenticateRequest(auth_bytes=first), 2)
            seen += [response.error_code, response.error_message, bytes(response.auth_bytes)]
            if response.auth_bytes:
                response = client.ask(SaslAuthenticateRequest(auth_bytes=b"\x01"), 2)
                seen += [response.error_code, response.error_message, bytes(response.auth_bytes)]
            seen.append(round(response.session_lifetime_ms / 1000 / HOUR_S, 1))
        except EOFError:
            seen.append("the end")
    return tuple(seen)


def forged(alg: Any, signature: str = "c2ln") -> str:
    return f"{encoded({'alg': alg, 'kid': 'one'})}.{encoded(claims())}.{signature}"


SIGNED: dict[str, Callable[[], bytes]] = {
    "good": lambda: message(signed(KEY, claims())),
    "good EC": lambda: message(signed(EC, claims(), "ES256")),
    "good PS": lambda: message(signed(KEY, claims(), "PS256")),
    "with its own authorization id": lambda: message(signed(KEY, claims()), "alice"),
    "with another authorization id": lambda: message(signed(KEY, claims()), "bob"),
    "with extensions": lambda: message(signed(KEY, claims()), traceId="7"),
    "second audience": lambda: message(signed(KEY, claims(aud=["x", "other"]))),
    "other audience": lambda: message(signed(KEY, claims(aud="x"))),
    "no audience": lambda: message(signed(KEY, claims(aud=None))),
    "other issuer": lambda: message(signed(KEY, claims(iss="x"))),
    "expired": lambda: message(signed(KEY, claims(exp=int(time.time()) - 60, iat=int(time.time()) - 90))),
    "no expiry": lambda: message(signed(KEY, claims(exp=None))),
    "no issue": lambda: message(signed(KEY, claims(iat=None))),
    "not yet": lambda: message(signed(KEY, claims(nbf=int(time.time()) + 600))),
    "no subject": lambda: message(signed(KEY, claims(sub=None))),
    "empty subject": lambda: message(signed(KEY, claims(sub=" "))),
    "a number as subject": lambda: message(signed(KEY, claims(sub=7))),
    "scopes": lambda: message(signed(KEY, claims(scope=["a", "b"]))),
    "scope": lambda: message(signed(KEY, claims(scope="a"))),
    "empty scope": lambda: message(signed(KEY, claims(scope=["a", " "]))),
    "repeated scope": lambda: message(signed(KEY, claims(scope=["a", "a"]))),
    "stranger": lambda: message(signed(STRANGER, claims())),
    "unknown kid": lambda: message(signed(rsa_key("three"), claims())),
    "none": lambda: message(forged("none", "")),
    "none with a signature": lambda: message(forged("none")),
    "HS256": lambda: message(forged("HS256")),
    "no token": lambda: message("x"),
    "no message": lambda: b"",
    "only a confirmation": lambda: b"\x01",
    "lower case": lambda: message(signed(KEY, claims())).replace(b"Bearer", b"bearer"),
}
UNSECURED: dict[str, Callable[[], bytes]] = {
    "good": lambda: message(unsecured(**claims(scope=["a", "b"]))),
    "poor": lambda: message(unsecured(**claims(scope="a"))),
    "no scope": lambda: message(unsecured(**claims())),
    "expired": lambda: message(unsecured(**claims(exp=1000, iat=900))),
    "no expiry": lambda: message(unsecured(**claims(exp=None, scope=["a", "b"]))),
    "issued later": lambda: message(unsecured(**claims(iat=int(time.time()) + 900, scope=["a", "b"]))),
    "no issue": lambda: message(unsecured(**claims(iat=None, scope=["a", "b"]))),
    "signed": lambda: message(signed(KEY, claims(scope=["a", "b"]))),
    "two parts": lambda: message(unsecured(**claims(scope=["a", "b"])).rstrip(".")),
    "no subject": lambda: message(unsecured(**claims(sub=None, scope=["a", "b"]))),
}


@pytest.mark.parametrize("case", list(SIGNED))
def test_signed_tokens_as_kafka(signed_pair: Pair, case: str) -> None:
    first = SIGNED[case]()
    assert outcome(signed_pair.sasl[2], first) == outcome(signed_pair.sasl[1], first)


def test_a_token_without_a_key_id_may_fit_any_key(signed_pair: Pair) -> None:
    """Kafka tries the first key of the right kind alone."""
    first = message(signed(NAMELESS, claims()))
    assert outcome(signed_pair.sasl[1], first)[2] == b'{"status":"invalid_token"}'
    assert outcome(signed_pair.sasl[2], first)[0] == ErrorCode.NONE


def test_another_scheme_is_refused_politely(signed_pair: Pair) -> None:
    """Kafka closes the connection without a response, since its own error message fails."""
    first = message("x").replace(b"Bearer", b"Basic")
    assert outcome(signed_pair.sasl[1], first) == ("the end",)
    assert outcome(signed_pair.sasl[2], first)[0] == ErrorCode.SASL_AUTHENTICATION_FAILED


@pytest.mark.parametrize("case", list(UNSECURED))
def test_unsecured_tokens_as_kafka(unsecured_pair: Pair, case: str) -> None:
    first = UNSECURED[case]()
    assert outcome(unsecured_pair.sasl[2], first) == outcome(unsecured_pair.sasl[1], first)


# --- stock clients


def topic_of(pair: Pair, name: str) -> str:
    """A topic that our broker leads."""
    topic = f"bearer-{name}"
    pair.cluster.create(topic, "2")
    return topic


def bootstrap(pair: Pair) -> str:
    host, port = pair.sasl[2]
    return f"{host}:{port}"


def test_confluent(signed_pair: Pair) -> None:
    failures: list[Any] = []
    topic = topic_of(signed_pair, "confluent")
    producer = Producer(
        {
            "bootstrap.servers": bootstrap(signed_pair),
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda _: (signed(KEY, claims()), time.time() + HOUR_S),
        }
    )
    producer.produce(topic, b"one", on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(DEADLINE_S) == 0
    assert failures == [None]


def test_confluent_with_a_bad_token_says_so(signed_pair: Pair) -> None:
    errors: list[str] = []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap(signed_pair),
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda _: (signed(STRANGER, claims()), time.time() + HOUR_S),
            "error_cb": lambda error: errors.append(str(error)),
        }
    )
    end = time.monotonic() + DEADLINE_S
    while not any("invalid_token" in error for error in errors):
        assert time.monotonic() < end, errors
        producer.poll(0.1)


class Tokens(KafkaPythonTokenProvider):  # type: ignore[misc]
    def token(self) -> str:
        return signed(KEY, claims())


def test_kafka_python(signed_pair: Pair) -> None:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap(signed_pair),
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=Tokens(),
    )
    sent = producer.send(topic_of(signed_pair, "kafka-python"), b"one")
    assert sent.get(DEADLINE_S).offset == 0
    producer.close()


class AsyncTokens(AbstractTokenProvider):  # type: ignore[misc]
    async def token(self) -> str:
        return signed(KEY, claims())


def test_aiokafka(signed_pair: Pair) -> None:
    topic = topic_of(signed_pair, "aiokafka")

    async def produce() -> int:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap(signed_pair),
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=AsyncTokens(),
        )
        await producer.start()
        try:
            sent = await producer.send_and_wait(topic, b"one")
            return int(sent.offset)
        finally:
            await producer.stop()

    assert asyncio.run(produce()) == 0
