"""This broker's logins at another one by OAUTHBEARER, at the real gate, with tokens from each source."""

from __future__ import annotations

import base64
import json
import logging
import time
from pathlib import Path
from typing import Any

import pytest
import trio

from kpybroker.broker.security.bearer_logins import CALLBACK, CREDENTIALS, ENDPOINT_CALLBACKS, URL, KeptToken
from kpybroker.broker.security.client_logins import PeerLogin, PeerLoginFailed, peer_login
from kpybroker.broker.security.logins import LoginConfigError
from kpybroker.broker.security.oauthbearer import MODULE
from kpybroker.config.broker import BrokerConfig
from kpybroker.core.authorizer import Principal
from tests.support.brokers.sasl_broker import SETTINGS, sasl_broker
from tests.support.network.bearer import JwksServer, document, jwks_server, signed, the_key, unsecured
from tests.support.network.memory_transport import MemoryTransport

PREFIX = "listener.name.sasl.oauthbearer"
JWKS = "sasl.oauthbearer.jwks.endpoint.url"
OURS = f'{MODULE} required unsecuredLoginStringClaim_sub="broker" unsecuredLoginListClaim_scope=",a,b"'


def settings(jaas: str, **keys: str) -> dict[str, Any]:
    mechanisms = {
        "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        f"{PREFIX}.sasl.jaas.config": jaas,
    }
    return {**SETTINGS, **mechanisms, **keys}


def login(keys: dict[str, Any]) -> PeerLogin:
    return peer_login(BrokerConfig(keys), "SASL")


async def log_in(directory: Path, ours: dict[str, Any], theirs: dict[str, Any]) -> tuple[float, set[Principal]]:
    """In how many seconds to log in again, and who the other broker believes we are."""
    transport = MemoryTransport()
    async with sasl_broker(directory, transport, **theirs) as broker:
        stream = await transport.connect(*broker.bound[0].listener.address, timeout_s=60)
        again_at = await login(ours).log_in(stream, "1", timeout_s=60)
        return again_at - trio.current_time(), {one.principal for one in broker.server._connections.values()}


async def test_an_unsecured_token_of_ones_own(tmp_path: Path) -> None:
    keys = settings(f'{OURS} unsecuredValidatorRequiredScope="b" unsecuredLoginExtension_traceId="7";')
    seconds, principals = await log_in(tmp_path, keys, keys)
    assert 3000 < seconds < 3060, "85 % of the hour that a token lives"
    assert principals == {Principal("User", "broker")}


async def test_a_refused_token_says_so_and_is_not_shown(tmp_path: Path) -> None:
    theirs = settings(f'{OURS} unsecuredValidatorRequiredScope="c";')
    transport = MemoryTransport()
    async with sasl_broker(tmp_path, transport, **theirs) as broker:
        stream = await transport.connect(*broker.bound[0].listener.address, timeout_s=60)
        with pytest.raises(PeerLoginFailed) as caught:
            await login(settings(f"{OURS};")).log_in(stream, "1", timeout_s=60)
    refusal = '{"status":"insufficient_scope", "scope":"[c]"}'
    assert str(caught.value) == f"SASL_AUTHENTICATION_FAILED: {refusal}"


def token(lifetime_s: int = 3600) -> str:
    now = int(time.time())
    return signed(the_key(), {"sub": "broker", "iat": now, "exp": now + lifetime_s})


@pytest.fixture
def signed_only(tmp_path: Path) -> dict[str, Any]:
    """The settings of a broker that accepts tokens which the key has signed."""
    (tmp_path / "keys.json").write_bytes(document(the_key()))
    file = tmp_path / "own"
    file.write_text(token())
    return settings(f"{MODULE} required;", **{JWKS: (tmp_path / "keys.json").as_uri(), URL: file.as_uri()})


@pytest.mark.parametrize("callback", [None, *sorted(ENDPOINT_CALLBACKS)])
async def test_a_token_in_a_file_is_read_at_each_login(
    tmp_path: Path, signed_only: dict[str, Any], callback: str | None
) -> None:
    file = tmp_path / "token"
    file.write_text(f"{token(60)}\n")
    chosen = {} if callback is None else {f"{PREFIX}.{CALLBACK}": callback}
    ours = settings(f"{MODULE} required;", **{URL: file.as_uri()}, **chosen)
    made = login(ours).begin("localhost")
    first = made.first()
    file.write_text(token())
    assert made.first() != first
    seconds, principals = await log_in(tmp_path / "data", ours, signed_only)
    assert 2900 < seconds < 3061, "85 % of the hour"
    assert principals == {Principal("User", "broker")}


def of_endpoint(server: JwksServer, options: str = "") -> dict[str, Any]:
    """With its credentials in the JAAS module."""
    jaas = (
        f'{MODULE} required clientId="us" clientSecret="geheim" scope="a b" extension_traceId="7" '
        f'ssl.truststore.type="PEM" ssl.truststore.location="{server.ca_file}"{options};'
    )
    return settings(jaas, **{URL: server.url})


async def test_client_credentials_buy_a_token_that_is_used_again(tmp_path: Path, signed_only: dict[str, Any]) -> None:
    with jwks_server(tmp_path / "ca", json.dumps({"access_token": token(), "token_type": "bearer"}).encode()) as server:
        for attempt in ("first", "second"):
            _, principals = await log_in(tmp_path / attempt, of_endpoint(server), signed_only)
            assert principals == {Principal("User", "broker")}
        credentials = base64.b64encode(b"us:geheim").decode()
        assert server.asked == (f"Basic {credentials}", "grant_type=client_credentials&scope=a+b")
        assert server.requests == 1


async def test_keys_of_their_own_take_the_place_of_options(tmp_path: Path, signed_only: dict[str, Any]) -> None:
    with jwks_server(tmp_path / "ca", json.dumps({"access_token": token(), "token_type": "bearer"}).encode()) as server:
        ours = of_endpoint(server) | {
            CREDENTIALS["clientId"]: "them",
            f"{PREFIX}.{CREDENTIALS['clientSecret']}": "other",
            CREDENTIALS["scope"]: "c",
        }
        await log_in(tmp_path / "data", ours, signed_only)
        credentials = base64.b64encode(b"them:other").decode()
        assert server.asked == (f"Basic {credentials}", "grant_type=client_credentials&scope=c")


@pytest.mark.parametrize(
    ("document_", "status", "text"),
    [
        (b"{}", 401, "localhost responded to the request for a token with status 401"),
        (b"{}", 302, "localhost responded to the request for a token with status 302"),
        (b"{}", 200, "localhost has no valid token"),
        (b"[]", 200, "localhost has no valid token"),
        (b'{"access_token": "a b"}', 200, "localhost has no valid token"),
        (b"<html>", 200, "localhost responded to the request for a token with no JSON"),
        (b"[" * 100_000, 200, "localhost responded to the request for a token with no JSON"),
    ],
)
def test_an_endpoint_without_a_token(tmp_path: Path, document_: bytes, status: int, text: str) -> None:
    with jwks_server(tmp_path, document_) as server:
        server.status, server.location = status, "https://localhost:1/" if status == 302 else None
        with pytest.raises(PeerLoginFailed) as caught:
            login(of_endpoint(server)).begin("localhost").first()
    assert str(caught.value) == text


def test_an_endpoint_that_is_not_there_or_not_the_right_one(tmp_path: Path) -> None:
    with jwks_server(tmp_path, b"{}") as server:
        keys = of_endpoint(server)
        other = settings(
            f'{MODULE} required clientId="us" clientSecret="geheim";', **{URL: server.url}
        )  # without our authority
        with pytest.raises(
            PeerLoginFailed, match=r"localhost cannot be asked for a token: .*CERTIFICATE_VERIFY_FAILED"
        ):
            login(other).begin("localhost").first()
    with pytest.raises(PeerLoginFailed, match="localhost cannot be asked for a token: "):
        login(keys).begin("localhost").first()


class Clock:
    """Milliseconds, set by the test."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000

    def __call__(self) -> int:
        return self.now_ms


def test_a_kept_token_is_renewed_in_time_and_outlives_an_endpoint_that_fails(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, given = Clock(), [unsecured(iat=1000, exp=1100), unsecured(iat=1090, exp=1190)]
    failures: list[PeerLoginFailed] = []

    def fetch() -> str:
        if failures:
            raise failures[0]
        return given.pop(0)

    kept = KeptToken(fetch, clock)
    first = kept.get()
    clock.now_ms += 79_999
    assert kept.get() == first
    failures.append(PeerLoginFailed("no endpoint"))
    clock.now_ms += 1
    caplog.set_level(logging.WARNING)
    assert kept.get() == first
    assert "The token of OAUTHBEARER cannot be renewed yet: no endpoint" in caplog.text
    clock.now_ms += 20_000
    with pytest.raises(PeerLoginFailed):
        kept.get()
    failures.clear()
    assert kept.get() != first
    assert not given


def test_an_opaque_token_is_fetched_each_time() -> None:
    given = ["one", "two"]
    kept = KeptToken(lambda: given.pop(0), Clock())
    assert [kept.get(), kept.get()] == ["one", "two"]


@pytest.mark.parametrize(
    ("keys", "cause", "fix"),
    [
        (settings(f"{MODULE} required;"), "but there is no token for that", "unsecuredLoginStringClaim_sub="),
        (
            settings(f'{MODULE} required unsecuredLoginListClaim_a=",b";'),
            "unsecuredLoginStringClaim_sub is missing",
            "",
        ),
        (settings(f"{MODULE} required", **{URL: "file:///no"}), "malformed JAAS", "sasl.jaas.config"),
        (settings(f"{MODULE} required;", **{URL: "file:///no"}), "/no: No such file or directory", URL),
        (settings(f"{MODULE} required;", **{URL: "http://localhost/"}), "is no file: or https: URL", "https://"),
        (settings(f"{MODULE} required;", **{URL: "https://localhost/"}), "clientId and clientSecret", "jaas"),
        (settings(f'{OURS} unsecuredLoginExtension_auth="x";'), "unsecuredLoginExtension_auth is no valid", "jaas"),
        (settings(f"{OURS};", **{f"{PREFIX}.{CALLBACK}": "com.example.Get"}), "Get is a Java class", URL),
        (settings(f"{OURS};", **{f"{PREFIX}.{CALLBACK}": min(ENDPOINT_CALLBACKS)}), "is no file: or https: URL", URL),
        (
            settings(
                f'{MODULE} required clientId="us" clientSecret="geheim" ssl.truststore.type="PEM" '
                'ssl.truststore.location="/no.pem";',
                **{URL: "https://localhost/"},
            ),
            "the certificates in /no.pem cannot be read: No such file or directory",
            "jaas",
        ),
    ],
)
def test_settings_that_cannot_be_used(keys: dict[str, Any], cause: str, fix: str) -> None:
    with pytest.raises(LoginConfigError) as caught:
        login(keys)
    assert cause in caught.value.cause
    assert fix in caught.value.fix
    assert "geheim" not in f"{caught.value.cause}{caught.value.fix}"
