"""The bytes of a login, byte for byte as Apache Kafka 3.9.1's: right and wrong logins, and requests in the wrong order.

Each script is played against both brokers; the decoded responses, and where the connection ends, must be equal. One
difference is meant: `UNKNOWN_USER`.
"""

from __future__ import annotations

import base64
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from compat_tests.conftest import Launcher
from compat_tests.security.logins.sasl_sides import PASSWORD, USER, Sided
from compat_tests.support.services import Broker
from kpybroker.core.security.scram import BY_NAME, client_proof, salted_password
from kpybroker.wire.api import API_INFO, ApiKey
from kpybroker.wire.codec import decode, encode
from kpybroker.wire.headers import RequestHeader, encode_request_header, parse_response_header
from kpybroker.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from kpybroker.wire.messages.api_versions import ApiVersionsRequest
from kpybroker.wire.messages.create_topics import CreateTopicsRequest
from kpybroker.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from kpybroker.wire.messages.metadata import MetadataRequest
from kpybroker.wire.messages.produce import ProduceRequest
from kpybroker.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from kpybroker.wire.messages.sasl_handshake import SaslHandshakeRequest
from kpybroker.wire.schema import HIDDEN, Message

SESSION_MS = 3_600_000
KEYS = {api.name: key for key, api in API_INFO.items()}
CLOSED = "closed"


class Raw(NamedTuple):
    """A bare token; or, without a size in front, bytes as they are."""

    token: bytes
    has_size: bool = True


class Scram(NamedTuple):
    """Make the final token of SCRAM from the last response."""

    password: str
    version: int | None  # of SaslAuthenticate; None: a bare token


Step = tuple[Message, int] | Raw | Scram


class Connection:
    """Plays steps one after the other, until the broker closes the connection."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self.correlation_id = 0
        self.last_token = b""

    def play(self, steps: list[Step]) -> list[Any]:
        heard: list[Any] = []
        with self.socket:
            for step in steps:
                heard.append(self._step(step))
                if heard[-1] == CLOSED:
                    break
        return heard

    def _step(self, step: Step) -> Any:
        try:
            if isinstance(step, Raw):
                size = len(step.token).to_bytes(4, "big") if step.has_size else b""
                self.socket.sendall(size + step.token)
                return self._token(self._frame())
            if isinstance(step, Scram):
                if not self.last_token:
                    return CLOSED  # the first step was refused
                token = scram_final(self.last_token, step.password)
                if step.version is None:
                    return self._step(Raw(token))
                return self._ask(SaslAuthenticateRequest(auth_bytes=token), step.version)
            return self._ask(*step)
        except (EOFError, ConnectionError):
            return CLOSED

    def _ask(self, request: Message, version: int) -> Any:
        self.correlation_id += 1
        key = KEYS[type(request).__name__.removesuffix("Request")]
        body = encode_request_header(RequestHeader(key, version, self.correlation_id, "wire")) + encode(
            request, version
        )
        self.socket.sendall(len(body).to_bytes(4, "big") + body)
        frame = self._frame()
        correlation_id, position = parse_response_header(frame, key, version)
        assert correlation_id == self.correlation_id
        shown = 0 if key is ApiKey.API_VERSIONS and version > 4 else version
        response: Any = decode(API_INFO[key].response_class(), frame[position:], shown)
        if isinstance(request, SaslAuthenticateRequest):
            response.auth_bytes = self._token(bytes(response.auth_bytes))
        return _shown(key, response)

    def _token(self, token: bytes) -> bytes:
        self.last_token = token
        return re.sub(rb"(?<=[rsv]=)[^,]+", b"...", token)

    def _frame(self) -> bytes:
        return self._exactly(int.from_bytes(self._exactly(4), "big"))

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            received = self.socket.recv(count - len(data))
            if not received:
                raise EOFError
            data += received
        return data


def _shown(key: ApiKey, response: Any) -> str:
    if key is ApiKey.API_VERSIONS:
        return f"versions {response.error_code}"
    if key is ApiKey.METADATA and not response.topics:
        return "metadata"  # of a client that has logged in
    shown = str(response)
    token = getattr(response, "auth_bytes", None)  # which no repr shows
    return shown if token is None else shown.replace(f"auth_bytes={HIDDEN}", f"auth_bytes={token!r}")


NONCE = "wire-nonce"
BARE = f"n={USER},r={NONCE}"


def scram_final(challenge: bytes, password: str) -> bytes:
    text = challenge.decode()
    match = re.fullmatch("r=(.*),s=(.*),i=(.*)", text)
    assert match is not None, text
    mechanism = BY_NAME["SCRAM-SHA-256"]
    salted = salted_password(mechanism, password, base64.b64decode(match[2]), int(match[3]))
    without_proof = f"c=biws,r={match[1]}"
    proof = client_proof(mechanism, salted, f"{BARE},{text},{without_proof}".encode())
    return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()


def versions(version: int = 3, name: str = "wire") -> Step:
    return ApiVersionsRequest(client_software_name=name, client_software_version="1"), version


def handshake(mechanism: str = "PLAIN", version: int = 1) -> Step:
    return SaslHandshakeRequest(mechanism=mechanism), version


def authenticate(token: bytes, version: int = 2) -> Step:
    return SaslAuthenticateRequest(auth_bytes=token), version


METADATA: Step = (MetadataRequest(topics=[]), 9)
TOKEN = f"\0{USER}\0{PASSWORD}".encode()
SCRAM_FIRST = f"n,,{BARE}".encode()
TOPIC = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t")])
CREATE = CreateTopicsRequest(topics=[CreateTopicsRequest.CreatableTopic(name="t")], timeout_ms=1000)

SCRIPTS: dict[str, list[Step]] = {
    **{f"plain-v{v}": [versions(), handshake(), authenticate(TOKEN, v), METADATA] for v in range(3)},
    "plain-bare": [handshake(version=0), Raw(TOKEN), METADATA],
    "plain-without-versions": [handshake(), authenticate(TOKEN), METADATA],
    "scram": [handshake("SCRAM-SHA-256"), authenticate(SCRAM_FIRST), Scram(PASSWORD, 2), METADATA],
    "scram-bare": [handshake("SCRAM-SHA-256", 0), Raw(SCRAM_FIRST), Scram(PASSWORD, None), METADATA],
    "plain-wrong-password": [handshake(), authenticate(b"\0alice\0wrong"), METADATA],
    "plain-wrong-password-v0": [handshake(), authenticate(b"\0alice\0wrong", 0), METADATA],
    "plain-unknown-user": [handshake(), authenticate(b"\0mallory\0wrong"), METADATA],
    "plain-other-id": [handshake(), authenticate(b"bob" + TOKEN), METADATA],
    "plain-own-id": [handshake(), authenticate(USER.encode() + TOKEN), METADATA],
    "plain-no-user": [handshake(), authenticate(b"\0\0x"), METADATA],
    "plain-no-password": [handshake(), authenticate(b"\0alice\0"), METADATA],
    "plain-two-parts": [handshake(), authenticate(b"alice\0x"), METADATA],
    "plain-empty": [handshake(), authenticate(b""), METADATA],
    "plain-trailing": [handshake(), authenticate(TOKEN + b"\0more"), METADATA],
    "plain-not-utf8": [handshake(), authenticate(b"\0alice\0\xff"), METADATA],
    "plain-bare-wrong": [handshake(version=0), Raw(b"\0alice\0wrong"), METADATA],
    "scram-wrong-password": [handshake("SCRAM-SHA-256"), authenticate(SCRAM_FIRST), Scram("wrong", 2), METADATA],
    "scram-bare-wrong": [handshake("SCRAM-SHA-256", 0), Raw(SCRAM_FIRST), Scram("wrong", None), METADATA],
    "scram-malformed": [handshake("SCRAM-SHA-256"), authenticate(b"hello"), METADATA],
    "scram-channel-binding": [handshake("SCRAM-SHA-256"), authenticate(b"p=tls-unique,,n=alice,r=x"), METADATA],
    "scram-other-id": [handshake("SCRAM-SHA-256"), authenticate(b"n,a=bob," + BARE.encode()), METADATA],
    "scram-twice-first": [handshake("SCRAM-SHA-256"), authenticate(SCRAM_FIRST), authenticate(SCRAM_FIRST), METADATA],
    "unknown-mechanism": [versions(), handshake("GSSAPI"), METADATA],
    "unknown-mechanism-v0": [handshake("nonsense", 0), METADATA],
    "lower-case-mechanism": [handshake("plain"), METADATA],
    "metadata-first": [METADATA],
    "versions-then-metadata": [versions(), METADATA],
    "authenticate-first": [authenticate(TOKEN)],
    "versions-twice": [versions(), versions(), METADATA],
    "versions-too-new-then-again": [versions(3, "-"), versions(), versions()],
    "handshake-twice": [handshake(), handshake()],
    "handshake-then-versions": [handshake(), versions()],
    "handshake-then-metadata": [handshake(), METADATA],
    "handshake-then-metadata-of-a-topic": [handshake(), (TOPIC, 9)],
    "handshake-then-create": [handshake(), (CREATE, 5)],
    "handshake-then-produce-acks-0": [handshake(), (ProduceRequest(acks=0), 9)],
    "handshake-v0-then-authenticate": [handshake(version=0), authenticate(TOKEN)],
    "login-then-handshake": [handshake(), authenticate(TOKEN), handshake(), METADATA],
    "login-then-authenticate": [handshake(), authenticate(TOKEN), authenticate(TOKEN), METADATA],
    "login-then-versions": [handshake(), authenticate(TOKEN), versions(), versions(), METADATA],
    "gssapi-token-first": [Raw(b"\x60\x82\x01\x02")],
    "http": [Raw(b"GET / HTTP/1.1\r\n\r\n")],
}
UNKNOWN_USER: list[Step] = [
    handshake("SCRAM-SHA-256"),
    authenticate(f"n,,n=mallory,r={NONCE}".encode()),
    Scram("wrong", 2),
]
IN_SESSION: dict[str, list[Step]] = {
    "lifetime": [handshake(), authenticate(TOKEN), METADATA],
    "again": [handshake(), authenticate(TOKEN), handshake(), authenticate(TOKEN), METADATA],
    "again-v0-token": [handshake(), authenticate(TOKEN), handshake(), authenticate(TOKEN, 0), METADATA],
    "again-within-a-second": [*[handshake(), authenticate(TOKEN)] * 2, handshake(), METADATA],
    "again-as-another": [handshake(), authenticate(TOKEN), handshake(), authenticate(b"\0admin\0admin-secret")],
    "again-with-another-mechanism": [
        handshake(),
        authenticate(TOKEN),
        handshake("SCRAM-SHA-256"),
        authenticate(SCRAM_FIRST),
    ],
    "again-wrong": [handshake(), authenticate(TOKEN), handshake(), authenticate(b"\0alice\0wrong")],
    "again-with-an-unknown-mechanism": [handshake(), authenticate(TOKEN), handshake("GSSAPI")],
    "again-with-metadata-between": [handshake(), authenticate(TOKEN), handshake(), (TOPIC, 9)],
    "token-without-handshake": [handshake(), authenticate(TOKEN), authenticate(TOKEN), METADATA],
}

Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion
Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion


def alter(*changes: Upsertion | Deletion) -> Step:
    return (
        AlterUserScramCredentialsRequest(
            deletions=[one for one in changes if isinstance(one, Deletion)],
            upsertions=[one for one in changes if isinstance(one, Upsertion)],
        ),
        0,
    )


def describe(*names: str) -> Step:
    users = [DescribeUserScramCredentialsRequest.UserName(name=name) for name in names]
    return DescribeUserScramCredentialsRequest(users=users), 0


def user(name: str, mechanism: int = 1, iterations: int = 4096) -> Upsertion:
    return Upsertion(name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=b"s" * 32)


CREDENTIALS: dict[str, list[Step]] = {
    "set-and-describe": [alter(user("u1")), alter(user("u1", 2, 8192)), describe("u1"), describe("u1", "none")],
    "delete": [alter(user("u2")), alter(Deletion(name="u2", mechanism=1)), describe("u2")],
    "delete-none": [alter(Deletion(name="u3", mechanism=1))],
    "empty-name": [alter(user(""))],
    "unknown-mechanism": [alter(user("u4", 3)), alter(Deletion(name="u4", mechanism=3))],
    "iterations": [alter(user("u5", 1, 4095)), alter(user("u5", 1, 16385)), alter(user("u5", 1, 16384))],
    "twice": [alter(user("u6"), user("u6"))],
    "set-and-delete": [alter(user("u7"), Deletion(name="u7", mechanism=1))],
    "several-errors": [alter(user("u8", 3), user("u8", 1, 1), user("u8", 1, 99999))],
    "describe-empty": [describe("")],
    "describe-twice": [describe(USER, USER)],
    "describe-strange": [alter(user("a b,=~@")), describe("a b,=~@")],
    "describe-all": [describe()],
}


class Pair(NamedTuple):
    ours: Sided
    kafkas: Sided

    def play(self, steps: list[Step], port: Callable[[Sided], int]) -> tuple[list[Any], list[Any]]:
        ours, kafkas = (Connection(port(side)).play(steps) for side in self)
        return ours, kafkas


@contextmanager
def started_pair(launcher: Launcher, directory: Path, **keys: str) -> Iterator[Pair]:
    """kpybroker and Kafka with these keys. Their refusals are not delayed."""
    if launcher.kind != "kpybroker":
        pytest.skip("compares kpybroker with Kafka")
    ours = Sided(launcher.unstarted())
    kafkas = Sided(Broker("kafka", directory / "kafka", launcher.zookeeper(directory.name), {}))
    for side in (ours, kafkas):
        side.start(**{"connection.failed.authentication.delay.ms": "0"}, **keys)
    yield Pair(ours, kafkas)
    for side in (ours, kafkas):
        side.broker.service.kill()


@pytest.fixture(scope="module")
def pair(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Both with sessions without an end."""
    with started_pair(launcher, tmp_path_factory.mktemp("sasl-pair")) as started:
        yield started


@pytest.fixture(scope="module")
def sessions(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Both with short sessions."""
    keys = {"connections.max.reauth.ms": str(SESSION_MS)}
    with started_pair(launcher, tmp_path_factory.mktemp("sasl-sessions"), **keys) as started:
        yield started


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_login_is_as_kafkas(pair: Pair, name: str) -> None:
    ours, kafkas = pair.play(SCRIPTS[name], lambda side: side.sasl_port)
    assert ours == kafkas


@pytest.mark.parametrize("name", ["unknown-mechanism", "login-then-handshake", "authenticate-first", "plain-v1"])
def test_sasl_on_a_plain_listener_is_as_kafkas(pair: Pair, name: str) -> None:
    ours, kafkas = pair.play(SCRIPTS[name], lambda side: side.broker.port)
    assert ours == kafkas


def test_an_unknown_user_of_scram_is_refused_one_step_later_than_by_kafka(pair: Pair) -> None:
    """So that no one learns who exists. The text is the same."""
    ours, kafkas = pair.play(UNKNOWN_USER, lambda side: side.sasl_port)
    assert ours[0] == kafkas[0]
    assert "auth_bytes=b'r=...,s=...,i=4096'" in ours[1]
    assert ours[2] == kafkas[1]


@pytest.mark.parametrize("name", IN_SESSION)
def test_a_session_is_as_kafkas(sessions: Pair, name: str) -> None:
    ours, kafkas = sessions.play(IN_SESSION[name], lambda side: side.sasl_port)
    assert ours == kafkas


@pytest.mark.parametrize("name", CREDENTIALS)
def test_scram_credentials_are_as_kafkas(pair: Pair, name: str) -> None:
    ours, kafkas = pair.play(CREDENTIALS[name], lambda side: side.broker.port)
    assert ours == kafkas
