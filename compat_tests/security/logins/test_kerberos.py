"""GSSAPI against a real KDC: the responses of Kafka 3.9.1 and of kpybroker to the same logins, and stock clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gssapi
import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer
from kafka import KafkaProducer

from compat_tests.conftest import Launcher
from compat_tests.overload.raw import Raw
from compat_tests.security.logins.kdc import REALM, Realm, realm
from compat_tests.security.pairs import Address, Pair, running_pair
from compat_tests.support.tools import Tools, run_process
from kpybroker.wire.errors import ErrorCode
from kpybroker.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from kpybroker.wire.messages.sasl_handshake import SaslHandshakeRequest

MODULE = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
HOST = "localhost"
BROKER = f"kafka/{HOST}"
CHOICE = b"\x01\0\0\0"
DEADLINE_S = 60.0
RULES = f"RULE:[1:$1@$0](svc-.*@{REALM})s/@.*//U,RULE:[2:$1-$2](app-.*)/L,RULE:[1:$1@$0](bad@.*),DEFAULT"


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    names = ["alice", "svc-mail", "app/Host", "bad", BROKER, f"other/{HOST}"]
    with realm(tmp_path_factory.mktemp("kdc"), names) as one:
        yield one


def properties_of(kdc: Realm) -> dict[str, str]:
    return {
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal.to.local.rules": RULES,
        "listener.name.sasl.gssapi.sasl.jaas.config": f'{MODULE} keyTab="{kdc.keytab(BROKER)}" '
        f'principal="{BROKER}@{REALM}";',
    }


@pytest.fixture(scope="module")
def pair(launcher: Launcher, kdc: Realm) -> Iterator[Pair]:
    with running_pair(launcher, "kerberos", properties_of(kdc), HOST) as both:
        yield both


def context(kdc: Realm, name: str, service: str = "kafka") -> gssapi.SecurityContext:
    client = gssapi.Credentials(
        name=gssapi.Name(f"{name}@{REALM}", gssapi.NameType.kerberos_principal),
        usage="initiate",
        store={"client_keytab": str(kdc.keytab(name)), "ccache": f"MEMORY:{name}"},
    )
    target = gssapi.Name(f"{service}@{HOST}", gssapi.NameType.hostbased_service)
    return gssapi.SecurityContext(name=target, creds=client, usage="initiate", mech=gssapi.MechType.kerberos)


def log_in(client: Raw, own: gssapi.SecurityContext, choice: bytes = CHOICE) -> list[Any]:
    """What the broker says at each step; wrapped messages are unwrapped."""
    seen: list[Any] = []
    token = own.step() or b""
    while True:
        response = client.ask(SaslAuthenticateRequest(auth_bytes=token), 2)
        seen.append((response.error_code, response.error_message))
        challenge = bytes(response.auth_bytes)
        if response.error_code or (own.complete and not challenge):
            return seen
        if own.complete:
            seen.append(own.unwrap(challenge).message)
            token = own.wrap(choice, False).message
        else:
            token = own.step(challenge) or b""


Case = Callable[[Raw, Realm], list[Any]]


def wrong_bytes(client: Raw, kdc: Realm) -> list[Any]:
    response = client.ask(SaslAuthenticateRequest(auth_bytes=b"no token"), 2)
    return [response.error_code, response.error_message]


CASES: dict[str, Case] = {
    "alice": lambda client, kdc: log_in(client, context(kdc, "alice")),
    "a rule in upper case": lambda client, kdc: log_in(client, context(kdc, "svc-mail")),
    "a rule for two components": lambda client, kdc: log_in(client, context(kdc, "app/Host")),
    "another authorization id": lambda client, kdc: log_in(client, context(kdc, "alice"), CHOICE + b"root"),
    "a layer that was not offered": lambda client, kdc: log_in(client, context(kdc, "alice"), b"\x02\0\0\0"),
    "a ticket for another service": lambda client, kdc: log_in(client, context(kdc, "alice", "other")),
    "wrong bytes": wrong_bytes,
}


def outcome(address: Address, case: Case, kdc: Realm) -> list[Any]:
    with Raw(address) as client:
        seen = [client.ask(SaslHandshakeRequest(mechanism="GSSAPI"), 1).error_code]
        try:
            return seen + case(client, kdc)
        except EOFError:
            return [*seen, "the end"]


@pytest.mark.parametrize("case", list(CASES))
def test_logins_as_kafka(pair: Pair, kdc: Realm, case: str) -> None:
    assert outcome(pair.sasl[2], CASES[case], kdc) == outcome(pair.sasl[1], CASES[case], kdc)


def test_what_kafka_notices_later_or_not_at_all_is_refused(pair: Pair, kdc: Realm) -> None:
    """Kafka accepts a principal that is no user, and closes the connection at its next request without a response."""

    def bad_name(client: Raw, kdc: Realm) -> list[Any]:
        return log_in(client, context(kdc, "bad"))

    def short_choice(client: Raw, kdc: Realm) -> list[Any]:
        return log_in(client, context(kdc, "alice"), b"\x01")

    assert outcome(pair.sasl[1], bad_name, kdc)[-1][0] == ErrorCode.NONE
    assert outcome(pair.sasl[1], short_choice, kdc)[-1] == "the end"
    for case in (bad_name, short_choice):
        assert outcome(pair.sasl[2], case, kdc)[-1][0] == ErrorCode.SASL_AUTHENTICATION_FAILED


# --- stock clients


def topic_of(pair: Pair, name: str) -> tuple[str, str]:
    """(a topic that our broker leads, our broker)."""
    pair.cluster.create(f"kerberos-{name}", "2")
    host, port = pair.sasl[2]
    return f"kerberos-{name}", f"{host}:{port}"


@pytest.mark.wide
def test_kcat(pair: Pair, kdc: Realm) -> None:
    topic, bootstrap = topic_of(pair, "kcat")
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.keytab": str(kdc.keytab("alice")),
        "sasl.kerberos.principal": f"alice@{REALM}",
        "broker.address.family": "v4",
    }
    options = [word for key, value in settings.items() for word in ("-X", f"{key}={value}")]
    run_process(["kcat", "-b", bootstrap, *options, "-P", "-t", topic], stdin="one\n")
    assert run_process(["kcat", "-b", bootstrap, *options, "-C", "-t", topic, "-e", "-q"]).lines == ["one"]


def test_kafka_python(pair: Pair, kdc: Realm) -> None:
    topic, bootstrap = topic_of(pair, "kafka-python")
    kdc.log_in("alice")
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="GSSAPI",
        sasl_kerberos_service_name="kafka",
        sasl_kerberos_domain_name=HOST,
    )
    assert producer.send(topic, b"one").get(DEADLINE_S).offset == 0
    producer.close()


def test_aiokafka(pair: Pair, kdc: Realm) -> None:
    topic, bootstrap = topic_of(pair, "aiokafka")
    kdc.log_in("alice")

    async def produce() -> int:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="GSSAPI",
            sasl_kerberos_service_name="kafka",
            sasl_kerberos_domain_name=HOST,
        )
        await producer.start()
        try:
            return int((await producer.send_and_wait(topic, b"one")).offset)
        finally:
            await producer.stop()

    assert asyncio.run(produce()) == 0


def test_java(pair: Pair, kdc: Realm, tmp_path: Path) -> None:
    topic, bootstrap = topic_of(pair, "java")
    settings = tmp_path / "alice.properties"
    settings.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\nsasl.kerberos.service.name=kafka\n"
        f'sasl.jaas.config={MODULE} keyTab="{kdc.keytab("alice")}" principal="alice@{REALM}";\n'
    )
    tools = Tools("3.9.1", bootstrap)
    tools.run("console-producer", "--topic", topic, "--producer.config", str(settings), stdin="one\n")
    consumer = ["--topic", topic, "--from-beginning", "--max-messages", "1", "--consumer.config", str(settings)]
    assert tools.run("console-consumer", *consumer).lines == ["one"]


# --- between brokers


@pytest.mark.wide
def test_brokers_log_in_to_each_other(launcher: Launcher, kdc: Realm) -> None:
    """Kafka and kpybroker replicate in both directions, and the controller reaches both."""
    between = {"inter.broker.listener.name": "SASL", "sasl.mechanism.inter.broker.protocol": "GSSAPI"}
    with running_pair(launcher, "kerberos-brokers", properties_of(kdc) | between, HOST) as pair:
        pair.cluster.create("replicated", "1:2,2:1", "--config", "min.insync.replicas=2")
        failures: list[Any] = []
        producer = Producer({"bootstrap.servers": pair.cluster.bootstrap, "acks": "all"})
        for partition in (0, 1):
            producer.produce(
                "replicated", b"one", partition=partition, on_delivery=lambda error, _: failures.append(error)
            )
        assert producer.flush(DEADLINE_S) == 0
        assert failures == [None, None]
