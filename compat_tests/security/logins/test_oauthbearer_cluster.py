"""Brokers that log in to each other by OAUTHBEARER, kpybroker and Apache Kafka in one cluster, with tokens that they
make themselves, that are in a file, and that an HTTPS endpoint gives.

An authorizer lets only the subject of these tokens replicate, so nothing works unless each knows who the other is.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from compat_tests.cluster.traffic import Writer, verify, wait_for_equal_logs
from compat_tests.conftest import Launcher
from compat_tests.support.cluster import Cluster
from tests.support.network.bearer import document, jwks_server, rsa_key, signed
from tests.support.network.ports import free_port

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
HANDLERS = "org.apache.kafka.common.security.oauthbearer"
MECHANISM = "listener.name.between.oauthbearer"
KEY = rsa_key("one")
LIFETIME_S = 6
"""Of unsecured tokens: sessions end with them, and have to be renewed."""
COMMON = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BETWEEN:SASL_PLAINTEXT",
    "inter.broker.listener.name": "BETWEEN",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:broker;User:ANONYMOUS",
}
Keys = dict[str, str]
Tokens = Callable[[Path], AbstractContextManager[Keys]]


@contextmanager
def unsecured(_: Path) -> Iterator[Keys]:
    options = f'unsecuredLoginStringClaim_sub="broker" unsecuredLoginLifetimeSeconds="{LIFETIME_S}"'
    yield {f"{MECHANISM}.sasl.jaas.config": f"{MODULE} {options};"}


def checked(directory: Path) -> Keys:
    """The settings that have to do with the signature."""
    keys = directory / "keys.json"
    keys.write_bytes(document(KEY))
    return {
        f"{MECHANISM}.sasl.jaas.config": f"{MODULE};",
        f"{MECHANISM}.sasl.server.callback.handler.class": f"{HANDLERS}.OAuthBearerValidatorCallbackHandler",
        f"{MECHANISM}.sasl.login.callback.handler.class": f"{HANDLERS}.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.audience": "kafka",
    }


def token() -> str:
    now = int(time.time())
    return signed(KEY, {"sub": "broker", "iat": now, "exp": now + 3600, "aud": "kafka"})


@contextmanager
def from_a_file(directory: Path) -> Iterator[Keys]:
    file = directory / "token"
    file.write_text(token())
    yield {**checked(directory), "sasl.oauthbearer.token.endpoint.url": file.as_uri()}


@contextmanager
def from_an_endpoint(directory: Path) -> Iterator[Keys]:
    with jwks_server(directory / "ca", json.dumps({"access_token": token()}).encode()) as server:
        trust = f'ssl.truststore.type="PEM" ssl.truststore.location="{server.ca_file}"'
        jaas = f'{MODULE} clientId="us" clientSecret="secret" {trust};'
        yield {
            **checked(directory),
            f"{MECHANISM}.sasl.jaas.config": jaas,
            "sasl.oauthbearer.token.endpoint.url": server.url,
        }
        assert server.requests >= 3, "each broker has asked"


@pytest.mark.wide
@pytest.mark.parametrize("tokens", [unsecured, from_a_file, from_an_endpoint])
def test_brokers_replicate_with_tokens(launcher: Launcher, tmp_path: Path, name: str, tokens: Tokens) -> None:
    with tokens(tmp_path) as keys:
        kinds = [launcher.kind, "kafka", launcher.kind]
        zookeeper = launcher.zookeeper(f"bearer-{tmp_path.name}")
        cluster = Cluster(tmp_path / "brokers", zookeeper, kinds, {**COMMON, **keys})
        for broker in cluster.brokers.values():
            listeners = f"PLAINTEXT://127.0.0.1:{broker.port},BETWEEN://127.0.0.1:{free_port()}"
            broker.configure({"listeners": listeners})
        try:
            cluster.start()
            cluster.create(name, "1:2:3,2:3:1,3:1:2", "--config", "min.insync.replicas=3")
            writer = Writer(cluster.bootstrap, name, 3)
            writer.start()
            ends = time.monotonic() + 2.5 * LIFETIME_S
            while time.monotonic() < ends:
                writer.wait_for_more(100)
            writer.stop()
            verify(cluster.bootstrap, writer)
            for partition in range(3):
                wait_for_equal_logs(list(cluster.brokers.values()), name, partition)
        finally:
            cluster.close()
