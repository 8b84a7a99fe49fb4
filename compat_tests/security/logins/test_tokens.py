"""Delegation tokens of real Kafka 3.9.1 and of kpybroker in one cluster: the same responses, the same nodes, and each
broker accepts and changes the other's tokens.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_tests.conftest import Launcher
from compat_tests.overload.raw import Raw
from compat_tests.security.logins.token_clients import (
    create,
    describe,
    expire,
    logged_in,
    renew,
    token_login,
)
from compat_tests.security.pairs import KINDS, Address, Pair, running_pair
from compat_tests.support.tools import VERSIONS, Tools
from compat_tests.support.waiting import eventually
from kpybroker.wire.errors import ErrorCode

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
MAX_LIFETIME_MS = 3_600_000
EXPIRY_MS = 600_000
SLACK_MS = 60_000
"""A renewal counts from the broker's clock at the request."""
PROPERTIES = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl.plain.sasl.jaas.config": f'{PLAIN} user_alice="alice-secret" user_bob="bob-secret" '
    'user_carol="carol-secret";',
    "listener.name.sasl.scram-sha-256.sasl.jaas.config": f"{SCRAM};",
    "listener.name.sasl.scram-sha-512.sasl.jaas.config": f"{SCRAM};",
    "delegation.token.secret.key": "the key of the cluster",
    "delegation.token.max.lifetime.ms": str(MAX_LIFETIME_MS),
    "delegation.token.expiry.time.ms": str(EXPIRY_MS),
    "delegation.token.expiry.check.interval.ms": "500",
}


@pytest.fixture(scope="module")
def pair(launcher: Launcher) -> Iterator[Pair]:
    with running_pair(launcher, "tokens", PROPERTIES) as both:
        yield both


def offsets(token: Any, issued_ms: int) -> tuple[int, int]:
    """(expiry, maximum) after the issue, in milliseconds."""
    return token.expiry_timestamp_ms - issued_ms, token.max_timestamp_ms - issued_ms


def created(response: Any) -> tuple[Any, ...]:
    """A response without what differs between two tokens."""
    people = (response.principal_type, response.principal_name)
    requester = (response.token_requester_principal_type, response.token_requester_principal_name)
    times = offsets(response, response.issue_timestamp_ms)
    return (
        response.error_code,
        people,
        requester,
        times,
        len(response.token_id),
        len(response.hmac),
        response.throttle_time_ms,
    )


def described(response: Any, token_ids: set[str]) -> tuple[Any, ...]:
    tokens = sorted(
        (
            (token.principal_type, token.principal_name),
            (token.token_requester_principal_type, token.token_requester_principal_name),
            token.expiry_timestamp - token.issue_timestamp,
            token.max_timestamp - token.issue_timestamp,
            sorted((renewer.principal_type, renewer.principal_name) for renewer in token.renewers),
            len(token.hmac),
        )
        for token in response.tokens
        if token.token_id in token_ids
    )
    return response.error_code, tokens


def refusals(pair: Pair, number: int) -> list[tuple[str, Any]]:
    """What each kind of broker says where it does nothing."""
    seen: list[tuple[str, Any]] = []
    with logged_in(pair.sasl[number], "alice") as alice, Raw(pair.plain(number)) as anonymous:
        for version in (0, 3):
            seen.append((f"create {version}, plain", created(create(anonymous, version=version))))
            response = create(alice, [("User", "bob"), ("Group", "x")], version)
            seen.append((f"create {version}, group renews", created(response)))
        for version in (0, 2):
            for what, client in (("plain", anonymous), ("unknown", alice)):
                for act in (renew, expire):
                    response = act(client, b"unknown", 5, version)
                    seen.append(
                        (f"{act.__name__} {version}, {what}", (response.error_code, response.expiry_timestamp_ms))
                    )
        for version in (0, 3):
            seen.append((f"describe {version}, plain", described(describe(anonymous, None, version), set())))
        seen.append(("describe no owner", described(describe(alice, []), set())))
    return seen


def lives(pair: Pair, number: int) -> list[tuple[str, Any]]:
    """Tokens from their creation to their end, on one broker."""
    seen: list[tuple[str, Any]] = []
    address = pair.sasl[number]
    with logged_in(address, "alice") as alice, logged_in(address, "bob") as bob, logged_in(address, "carol") as carol:
        own = create(alice, [("User", "bob")], max_lifetime_ms=-1)
        short = create(alice, max_lifetime_ms=1000 * 120)
        long = create(alice, max_lifetime_ms=10**12)
        given = create(bob, owner_principal_type="User", owner_principal_name="carol")
        oldest = create(alice, version=0)
        tokens = [own, short, long, given, oldest]
        seen += [(f"token {index}", created(token)) for index, token in enumerate(tokens)]
        token_ids = {token.token_id for token in tokens}
        for version in (0, 1, 2, 3):
            for owners in (None, ["alice"], ["bob", "carol"], ["dave"]):
                response = described(describe(alice, owners, version), token_ids)
                seen.append((f"describe {version} {owners}", response))
        seen.append(("renewed by a stranger", renew(carol, own.hmac).error_code))
        seen.append(("renewed by the requester", renew(bob, given.hmac).error_code))
        seen.append(("renewed without end", renew(bob, own.hmac, 10**12).expiry_timestamp_ms == own.max_timestamp_ms))
        by_default = renew(alice, own.hmac).expiry_timestamp_ms - own.issue_timestamp_ms
        seen.append(("renewed by default", EXPIRY_MS <= by_default < EXPIRY_MS + SLACK_MS))
        seen.append(("expired by a stranger", expire(carol, own.hmac).error_code))
        later = expire(alice, own.hmac, 1000).expiry_timestamp_ms - own.issue_timestamp_ms
        seen.append(("expires later", 1000 <= later < 1000 + SLACK_MS))
        seen.append(("expired now", expire(alice, short.hmac).error_code))
        seen.append(("expired twice", expire(alice, short.hmac).error_code))
        seen.append(("renewed after", renew(alice, short.hmac).error_code))
        with_token(seen, address, long)
    return seen


def with_token(seen: list[tuple[str, Any]], address: Address, token: Any) -> None:
    """A login with a token, and what it may not do."""
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        client, response = token_login(address, mechanism, token.token_id, bytes(token.hmac))
        left_ms = response.session_lifetime_ms
        seen.append((f"login {mechanism}", (response.error_code, 0 < EXPIRY_MS - left_ms < SLACK_MS)))
        seen.append(("create with a token", create(client).error_code))
        seen.append(("renew with a token", renew(client, token.hmac).error_code))
        seen.append(("expire with a token", expire(client, token.hmac).error_code))
        seen.append(("describe with a token", describe(client).error_code))
        client.socket.close()
    client, response = token_login(address, "SCRAM-SHA-256", token.token_id, b"wrong")
    seen.append(("wrong hmac", (response.error_code, response.error_message)))
    client.socket.close()
    client, response = token_login(address, "SCRAM-SHA-256", "unknown", b"wrong")
    seen.append(("unknown token", (response.error_code, response.error_message)))
    client.socket.close()


@pytest.mark.parametrize("play", [refusals, lives])
def test_both_brokers_respond_alike(pair: Pair, play: Any) -> None:
    kafka, ours = play(pair, 1), play(pair, 2)
    assert len(kafka) > 10
    for theirs, our in zip(kafka, ours, strict=True):
        assert our == theirs


def test_both_write_the_same_node(pair: Pair) -> None:
    texts = []
    for number in KINDS:
        with logged_in(pair.sasl[number], "alice") as alice:
            token = create(
                alice, [("User", "bob"), ("User", "CN=x,O=y")], owner_principal_type="User", owner_principal_name="ca:r"
            )
        data, _ = pair.cluster.tree.get(f"/delegation_token/tokens/{token.token_id}")
        node = json.loads(data)
        assert node["issueTimestamp"] == token.issue_timestamp_ms
        text = data.decode().replace(token.token_id, "ID")
        for name in ("issueTimestamp", "maxTimestamp", "expiryTimestamp"):
            text = text.replace(str(node[name]), name)
        texts.append(text)
    assert texts[0] == texts[1]


@pytest.mark.parametrize("number", list(KINDS), ids=list(KINDS.values()))
def test_a_token_of_one_broker_is_known_to_the_other(pair: Pair, number: int) -> None:
    here, there = pair.sasl[number], pair.other(number)
    with logged_in(here, "alice") as alice, logged_in(there, "alice") as away:
        token = create(alice)
        hmac = bytes(token.hmac)

        def usable() -> bool:
            client, response = token_login(there, "SCRAM-SHA-256", token.token_id, hmac)
            client.socket.close()
            return bool(response.error_code == ErrorCode.NONE)

        eventually(usable, "a login at the other broker")
        renewed_ms = renew(away, hmac, MAX_LIFETIME_MS * 2).expiry_timestamp_ms
        assert renewed_ms == token.max_timestamp_ms

        def expiries() -> set[int]:
            found = describe(alice).tokens
            return {one.expiry_timestamp for one in found if one.token_id == token.token_id}

        eventually(lambda: expiries() == {renewed_ms}, "the renewal is known where the token was made")
        assert expire(alice, hmac).error_code == ErrorCode.NONE
        eventually(lambda: not usable(), "no login at the other broker")


@pytest.mark.parametrize("number", list(KINDS), ids=list(KINDS.values()))
def test_expired_tokens_are_removed_by_the_controller(pair: Pair, number: int) -> None:
    with logged_in(pair.sasl[number], "alice") as alice:
        token = create(alice)
        assert expire(alice, bytes(token.hmac), 1).error_code == ErrorCode.NONE
        path = f"/delegation_token/tokens/{token.token_id}"
        eventually(lambda: pair.cluster.tree.exists(path) is None, "the node is gone")


@pytest.mark.parametrize(
    ("number", "version"), [pytest.param(1, "3.9.1", marks=pytest.mark.wide), *((2, version) for version in VERSIONS)]
)
def test_kafkas_tool_and_a_java_client_with_the_token(pair: Pair, number: int, version: str, tmp_path: Path) -> None:
    host, port = pair.sasl[number]
    tools = Tools(version, f"{host}:{port}")
    settings = tmp_path / "alice.properties"
    base = "security.protocol=SASL_PLAINTEXT\n"
    settings.write_text(
        base + f'sasl.mechanism=PLAIN\nsasl.jaas.config={PLAIN} username="alice" password="alice-secret";\n'
    )
    login = ["--command-config", str(settings)]

    def run(*arguments: str) -> str:
        return tools.run("delegation-tokens", *login, *arguments).out

    row = run("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob").splitlines()[-1].split()
    token_id, hmac = row[0], row[1]
    listing = ("--describe", "--owner-principal", "User:alice")
    eventually(lambda: token_id in run(*listing), "the broker has heard of the token, which another may have made")
    assert "Completed" in run("--renew", "--renew-time-period", "-1", "--hmac", hmac)
    topic = f"tokens-{number}-{version}"
    pair.cluster.create(topic, "1:2")
    with_token_file = tmp_path / "token.properties"
    module = f'{SCRAM} username="{token_id}" password="{hmac}" tokenauth="true";'
    with_token_file.write_text(base + f"sasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config={module}\n")
    producer = ["--topic", topic, "--producer.config", str(with_token_file)]
    tools.run("console-producer", *producer, stdin="one\ntwo\n")
    consumer = ["--topic", topic, "--from-beginning", "--max-messages", "2", "--consumer.config", str(with_token_file)]
    assert sorted(tools.run("console-consumer", *consumer).lines) == ["one", "two"]
    assert "Completed" in run("--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    output = "".join(broker.service.log_file.read_text() for broker in pair.cluster.brokers.values())
    assert hmac not in output
