"""Brokers with a PLAINTEXT and a SASL_PLAINTEXT listener, and clients that log in to them."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compat_tests.support.services import Broker
from compat_tests.support.tools import MAIN_CLASSES, Result, Tools, run_process
from tests.support.network.certificates import PASSWORD as STORE_PASSWORD
from tests.support.network.certificates import Authority
from tests.support.network.ports import free_port

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
USER, PASSWORD = "alice", "alice-secret, =\"'"
"""The password has what has to be escaped somewhere."""
DEADLINE_S, LOOK_S = 60.0, 0.3


def jaas(mechanism: str, user: str = USER, password: str = PASSWORD, more: str = "") -> str:
    escaped = password.replace("\\", "\\\\").replace('"', '\\"')
    return f'{MODULES[mechanism]} required username="{user}" password="{escaped}"{more};'


def broker_keys(broker: Broker, sasl_port: int, **keys: str) -> dict[str, str]:
    """Of a broker that clients reach in plain text, to set it up, and by SASL."""
    escaped = PASSWORD.replace('"', '\\"')
    users = f' user_{USER}="{escaped}" user_admin="admin-secret"'
    logins = {
        f"listener.name.sasl_plaintext.{mechanism.lower()}.sasl.jaas.config": jaas(
            mechanism, "admin", "admin-secret", users if mechanism == "PLAIN" else ""
        ).replace("\\", "\\\\")
        for mechanism in MECHANISMS
    }
    return {
        "listeners": f"PLAINTEXT://127.0.0.1:{broker.port},SASL_PLAINTEXT://127.0.0.1:{sasl_port}",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        **logins,
        **keys,
    }


@dataclass
class Sided:
    """One broker and its two ports."""

    broker: Broker
    sasl_port: int = field(default_factory=free_port)

    @property
    def plain(self) -> str:
        return self.broker.bootstrap

    @property
    def sasl(self) -> str:
        return f"127.0.0.1:{self.sasl_port}"

    def start(self, **keys: str) -> None:
        """And create the user of SCRAM, as an administrator does."""
        self.broker.configure(broker_keys(self.broker, self.sasl_port, **keys))
        self.broker.start()
        set_scram(Tools("3.9.1", self.plain), USER, PASSWORD)


def stores(authority: Authority) -> dict[str, str]:
    """A broker's TLS settings, with a certificate of its own."""
    _, store = authority.issue("broker")
    return {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.key.password": STORE_PASSWORD,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
    }


def set_scram(tools: Tools, user: str, password: str, mechanisms: tuple[str, ...] = MECHANISMS[1:]) -> Result:
    """By kafka-configs. Its value must not hold a comma or brackets, so such passwords are set by the admin client."""
    from confluent_kafka.admin import (
        AdminClient,
        ScramCredentialInfo,
        ScramMechanism,
        UserScramCredentialUpsertion,
    )

    if not set(password) & set(",[]"):
        wanted = ",".join(f"{mechanism}=[password={password}]" for mechanism in mechanisms)
        return tools.run("configs", "--alter", "--entity-type", "users", "--entity-name", user, "--add-config", wanted)
    admin = AdminClient({"bootstrap.servers": tools.bootstrap})
    for mechanism in mechanisms:
        info = ScramCredentialInfo(getattr(ScramMechanism, mechanism.replace("-", "_")), 4096)
        done = admin.alter_user_scram_credentials([UserScramCredentialUpsertion(user, info, password.encode())])
        done[user].result(DEADLINE_S)
    return Result([], 0, "", "")


def make_chroot(zookeeper: str) -> None:
    """Where users are to be before any broker has started; kafka-configs does not make it."""
    from kazoo.client import KazooClient

    address, _, chroot = zookeeper.partition("/")
    client = KazooClient(address)
    client.start(timeout=DEADLINE_S)
    client.ensure_path(f"/{chroot}")
    client.stop()
    client.close()


def configs_on_zookeeper(zookeeper: str, *arguments: str) -> Result:
    """`kafka-configs --zookeeper` of Kafka 3.9, the last that has it, for users alone."""
    return Tools("3.9.1", "nowhere").run_main(MAIN_CLASSES["configs"], "--zookeeper", zookeeper, *arguments)


def java_file(
    directory: Path, mechanism: str, user: str = USER, password: str = PASSWORD, ca: str | None = None
) -> str:
    """The client configuration of the Java tools."""
    path = directory / f"{mechanism}-{user}.properties"
    value = jaas(mechanism, user, password).replace("\\", "\\\\")
    path.write_text(
        f"security.protocol={protocol(ca)}\nsasl.mechanism={mechanism}\nsasl.jaas.config={value}\n"
        "request.timeout.ms=30000\ndefault.api.timeout.ms=30000\n"
        + ("" if ca is None else f"ssl.truststore.type=PEM\nssl.truststore.location={ca}\n")
    )
    return str(path)


def may_log_in(bootstrap: str, mechanism: str, user: str, password: str, ca: str | None = None) -> bool:
    """What the first response says: librdkafka goes on and tries again."""
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import AdminClient

    refused: list[int] = []
    settings = librdkafka(bootstrap, mechanism, user, password, ca)
    admin = AdminClient({**settings, "error_cb": lambda error: refused.append(error.code())})
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            return bool(admin.list_topics(timeout=LOOK_S).brokers)
        except KafkaException:
            admin.poll(0)
            if KafkaError._AUTHENTICATION in refused:
                return False
            assert time.monotonic() < deadline, refused


def protocol(ca: str | None) -> str:
    """`ca`: the certificate of the authority, for clients on SASL_SSL."""
    return "SASL_PLAINTEXT" if ca is None else "SASL_SSL"


def librdkafka(
    bootstrap: str, mechanism: str, user: str = USER, password: str = PASSWORD, ca: str | None = None
) -> dict[str, Any]:
    tls = {} if ca is None else {"ssl.ca.location": ca}
    return tls | {
        "bootstrap.servers": bootstrap,
        "security.protocol": protocol(ca),
        "sasl.mechanisms": mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }


# --- one record through each client: (login, topic, value) -> what was read


@dataclass(frozen=True, slots=True)
class Login:
    """Where a client logs in, and as whom; on SASL_SSL with the certificate of the authority."""

    bootstrap: str
    mechanism: str
    user: str = USER
    password: str = PASSWORD
    ca: str | None = None


def confluent(login: Login, topic: str, value: str) -> str:
    from confluent_kafka import Consumer, KafkaError, Producer

    settings = librdkafka(login.bootstrap, login.mechanism, login.user, login.password, login.ca)
    errors: list[KafkaError] = []
    producer = Producer({**settings, "error_cb": errors.append})
    producer.produce(topic, value)
    deadline = time.monotonic() + DEADLINE_S
    while producer.flush(LOOK_S):
        if KafkaError._AUTHENTICATION in [error.code() for error in errors] or time.monotonic() > deadline:
            raise PermissionError("; ".join(error.str() for error in errors))
    consumer = Consumer({**settings, "group.id": f"{topic}-group", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    message = consumer.poll(DEADLINE_S)
    assert message is not None
    assert message.error() is None
    consumer.close()
    return str(message.value(), "utf-8")


def kafka_python(login: Login, topic: str, value: str) -> str:
    from kafka import KafkaConsumer, KafkaProducer

    settings: Mapping[str, Any] = {
        "bootstrap_servers": login.bootstrap,
        "security_protocol": protocol(login.ca),
        "ssl_cafile": login.ca,
        "sasl_mechanism": login.mechanism,
        "sasl_plain_username": login.user,
        "sasl_plain_password": login.password,
    }
    producer = KafkaProducer(**settings)
    producer.send(topic, value.encode()).get(DEADLINE_S)
    producer.close()
    consumer = KafkaConsumer(topic, **settings, auto_offset_reset="earliest", consumer_timeout_ms=DEADLINE_S * 1000)
    data: bytes = next(iter(consumer)).value
    consumer.close()
    return data.decode()


def aiokafka(login: Login, topic: str, value: str) -> str:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    settings: Mapping[str, Any] = {
        "bootstrap_servers": login.bootstrap,
        "security_protocol": protocol(login.ca),
        "ssl_context": None if login.ca is None else ssl.create_default_context(cafile=login.ca),
        "sasl_mechanism": login.mechanism,
        "sasl_plain_username": login.user,
        "sasl_plain_password": login.password,
    }

    async def run() -> str:
        async with AIOKafkaProducer(**settings) as producer:
            await producer.send_and_wait(topic, value.encode())
        async with AIOKafkaConsumer(topic, **settings, auto_offset_reset="earliest") as consumer:
            message = await asyncio.wait_for(consumer.getone(), DEADLINE_S)
            return str(message.value.decode())

    return asyncio.run(run())


def kcat(login: Login, topic: str, value: str) -> str:
    options = ["-b", login.bootstrap, "-X", f"security.protocol={protocol(login.ca)}", "-t", topic]
    options += [] if login.ca is None else ["-X", f"ssl.ca.location={login.ca}"]
    options += ["-X", f"sasl.mechanisms={login.mechanism}"]
    options += ["-X", f"sasl.username={login.user}", "-X", f"sasl.password={login.password}"]
    wait = [] if login.password == PASSWORD else ["-X", "message.timeout.ms=3000"]
    sent = run_process(["kcat", "-P", *options, *wait], value, check=False)
    if sent.code:
        raise PermissionError(sent.err)
    return run_process(["kcat", "-C", "-o", "beginning", "-e", "-q", *options]).out.strip()


CLIENTS = {"confluent": confluent, "kafka-python": kafka_python, "aiokafka": aiokafka, "kcat": kcat}
