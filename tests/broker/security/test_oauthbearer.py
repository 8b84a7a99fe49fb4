"""OAUTHBEARER from the settings of a listener: which tokens it accepts, and what ends the start."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import pytest

from kpybroker.broker.lifecycle.errors import StartupError
from kpybroker.broker.security.oauthbearer import MODULE, SIGNED_CALLBACKS
from kpybroker.core.authorizer import Principal
from kpybroker.wire.errors import ErrorCode
from tests.support.brokers.sasl_broker import authenticate, handshake, sasl_broker
from tests.support.network.bearer import document, jwks_server, message, rsa_key, signed, the_key, unsecured
from tests.support.network.memory_transport import MemoryTransport
from tests.support.network.raw_client import RawClient

PREFIX = "listener.name.sasl.oauthbearer"
URL = "sasl.oauthbearer.jwks.endpoint.url"
UNSECURED = f'{MODULE} required unsecuredValidatorPrincipalClaimName="name" unsecuredValidatorRequiredScope="a b";'


def settings(**keys: str) -> dict[str, Any]:
    """`jaas` is of the mechanism; others are keys."""
    jaas = keys.pop("jaas", f"{MODULE} required;")
    return {"sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER", f"{PREFIX}.sasl.jaas.config": jaas, **keys}


def claims(**more: Any) -> dict[str, Any]:
    now = int(time.time())
    return {"sub": "alice", "iat": now, "exp": now + 600, **more}


async def attempt(tmp_path: Path, keys: dict[str, Any], *tokens: bytes) -> tuple[list[Any], set[Principal]]:
    """The responses to these tokens, each on a connection of its own, and who is logged in then."""
    transport = MemoryTransport()
    async with sasl_broker(tmp_path, transport, **keys) as broker:
        responses = []
        for token in tokens:
            client = await RawClient.to(broker, transport)
            assert (await handshake(client, "OAUTHBEARER")).error_code == ErrorCode.NONE
            response = await authenticate(client, token)
            if response.auth_bytes:
                response = await authenticate(client, b"\x01")
            responses.append(response)
        return responses, {connection.principal for connection in broker.server._connections.values()}


async def test_signed_tokens_with_keys_in_a_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    (tmp_path / "keys.json").write_bytes(document(the_key()))
    keys = settings(**{URL: (tmp_path / "keys.json").as_uri(), "sasl.oauthbearer.expected.audience": "kafka"})
    good = signed(the_key(), claims(aud="kafka"))
    bad = signed(rsa_key("one"), claims(aud="kafka"))
    free = unsecured(**claims(aud="kafka"))
    responses, principals = await attempt(
        tmp_path / "data", keys, message(good), message(bad), message(free), message(good, traceId="7")
    )
    assert [response.error_code for response in responses] == [
        ErrorCode.NONE,
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        ErrorCode.NONE,
    ]
    assert responses[1].error_message == '{"status":"invalid_token"}'
    assert 590_000 < responses[0].session_lifetime_ms <= 600_000
    assert Principal("User", "alice") in principals
    assert not any(part in caplog.text for token in (good, bad) for part in token.split(".")[1:])


async def test_signed_tokens_with_keys_behind_https(tmp_path: Path) -> None:
    with jwks_server(tmp_path / "ca", document(the_key())) as server:
        jaas = f'{MODULE} required ssl.truststore.type="PEM" ssl.truststore.location="{server.ca_file}";'
        keys = settings(jaas=jaas, **{f"listener.name.sasl.{URL}": server.url})
        responses, _ = await attempt(tmp_path / "data", keys, message(signed(the_key(), claims())))
        assert responses[0].error_code == ErrorCode.NONE
        assert server.requests == 1


@pytest.mark.parametrize("callback", sorted(SIGNED_CALLBACKS))
async def test_kafkas_own_class_for_signed_tokens(tmp_path: Path, callback: str) -> None:
    (tmp_path / "keys.json").write_bytes(document(the_key()))
    uri = (tmp_path / "keys.json").as_uri()
    keys = settings(**{f"{PREFIX}.sasl.server.callback.handler.class": callback, f"{PREFIX}.{URL}": uri})
    responses, _ = await attempt(tmp_path / "data", keys, message(signed(the_key(), claims())))
    assert responses[0].error_code == ErrorCode.NONE


async def test_unsecured_tokens_where_the_settings_say_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    good = unsecured(name="bob", exp=time.time() + 60, scope=["a", "b", "c"])
    poor = unsecured(name="bob", exp=time.time() + 60, scope="a")
    responses, principals = await attempt(tmp_path, settings(jaas=UNSECURED), message(good), message(poor))
    assert [response.error_code for response in responses] == [ErrorCode.NONE, ErrorCode.SASL_AUTHENTICATION_FAILED]
    assert responses[1].error_message == '{"status":"insufficient_scope", "scope":"[a, b]"}'
    assert Principal("User", "bob") in principals
    assert "Listener SASL accepts unsecured OAUTHBEARER tokens" in caplog.text


@pytest.mark.parametrize(
    ("keys", "cause", "fix"),
    [
        (settings(), "would accept tokens that no one has signed", URL),
        (
            settings(jaas="org.apache.kafka.common.security.plain.PlainLoginModule required;"),
            "has the JAAS module org.apache.kafka.common.security.plain.PlainLoginModule, which is not for it",
            "set listener.name.sasl.oauthbearer.sasl.jaas.config",
        ),
        (
            settings(**{f"{PREFIX}.sasl.server.callback.handler.class": "com.example.Check"}),
            "com.example.Check is a Java class",
            URL,
        ),
        (
            settings(**{f"{PREFIX}.sasl.server.callback.handler.class": min(SIGNED_CALLBACKS)}),
            f"needs the keys of its tokens, but {URL} is not set",
            "https://",
        ),
        (settings(**{URL: "http://localhost/keys"}), f"{URL} is no file: or https: URL", "https://"),
        (settings(**{URL: "file:///does/not/exist"}), "No such file or directory", URL),
        (
            settings(
                jaas=f'{MODULE} required ssl.truststore.location="/no.pem" ssl.truststore.type="PEM";',
                **{URL: "https://localhost/keys"},
            ),
            "the certificates in /no.pem cannot be read: No such file or directory",
            "correct ssl.truststore.location",
        ),
        (
            settings(jaas=f'{MODULE} required ssl.truststore.location="/no.jks";', **{URL: "https://localhost/keys"}),
            "the option ssl.truststore.location of the JAAS module is not of the type PEM",
            'set ssl.truststore.type="PEM"',
        ),
        (
            settings(jaas=f'{MODULE} required unsecuredValidatorAllowableClockSkewMs="soon";'),
            "unsecuredValidatorAllowableClockSkewMs is no number of milliseconds",
            'unsecuredValidatorAllowableClockSkewMs="3000"',
        ),
        (settings(**{f"{PREFIX}.sasl.oauthbearer.clock.skew.seconds": "x", URL: "https://localhost/k"}), "x", "valid"),
    ],
)
async def test_a_start_that_is_refused(tmp_path: Path, keys: dict[str, Any], cause: str, fix: str) -> None:
    with pytest.raises(StartupError) as caught:
        async with sasl_broker(tmp_path, MemoryTransport(), **keys):
            pass
    assert cause in caught.value.cause
    assert fix in caught.value.fix
