"""A broker with a listener of each kind of TLS, ours or Kafka's, and the settings of every client for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compat_tests.support.services import Broker
from compat_tests.support.tools import Tools, run_process
from tests.support.network.certificates import PASSWORD, Authority
from tests.support.network.ports import free_port

MTLS = "listener.name.mtls."


@dataclass(frozen=True, slots=True)
class Sides:
    """`ssl` asks clients for no certificate, `mtls` requires one. Brokers and admin tools use the plain listener."""

    broker: Broker
    authority: Authority
    ssl: str
    mtls: str

    def address(self, is_mutual: bool) -> str:
        return self.mtls if is_mutual else self.ssl

    def file(self, name: str) -> str:
        return str(self.authority.directory / name)


def tls_sides(start: Callable[..., Broker], directory: Path, **further: str) -> Sides:
    """Start a broker: stores are PKCS12, whose files keytool and OpenSSL write alike."""
    authority = Authority(directory)
    for name in ("server", "client"):
        authority.issue(name)
    plain, ssl, mtls = free_port(), free_port(), free_port()
    addresses = {"PLAINTEXT": plain, "SSL": ssl, "MTLS": mtls}
    keys = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in addresses.items()),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,MTLS:SSL",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(directory / "server.p12"),
        "ssl.keystore.password": PASSWORD,
        "ssl.key.password": PASSWORD,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(directory / "ca.pem"),
        f"{MTLS}ssl.client.auth": "required",
        **further,
    }
    broker = start(plain, keys)
    return Sides(broker, authority, f"127.0.0.1:{ssl}", f"127.0.0.1:{mtls}")


# --- settings of clients


def java_settings(sides: Sides, is_mutual: bool) -> dict[str, str]:
    settings = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": sides.file("ca.pem"),
    }
    keys = {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": sides.file("client.p12"),
        "ssl.keystore.password": PASSWORD,
        "ssl.key.password": PASSWORD,
    }
    return settings | (keys if is_mutual else {})


def librdkafka_settings(sides: Sides, is_mutual: bool) -> dict[str, str]:
    settings = {
        "bootstrap.servers": sides.address(is_mutual),
        "security.protocol": "SSL",
        "ssl.ca.location": sides.file("ca.pem"),
    }
    keys = {"ssl.certificate.location": sides.file("client.crt"), "ssl.key.location": sides.file("client.key")}
    return settings | (keys if is_mutual else {})


def ssl_settings(sides: Sides, is_mutual: bool) -> dict[str, Any]:
    """kafka-python's."""
    settings: dict[str, Any] = {
        "bootstrap_servers": [sides.address(is_mutual)],
        "security_protocol": "SSL",
        "ssl_cafile": sides.file("ca.pem"),
    }
    keys = {"ssl_certfile": sides.file("client.crt"), "ssl_keyfile": sides.file("client.key")}
    return settings | (keys if is_mutual else {})


# --- writing and reading


def _confluent_write(sides: Sides, is_mutual: bool, topic: str, values: Sequence[str]) -> None:
    from confluent_kafka import Producer

    failures: list[object] = []
    producer = Producer(librdkafka_settings(sides, is_mutual))
    for value in values:
        producer.produce(topic, value.encode(), on_delivery=lambda error, _: failures.append(error))
    assert producer.flush(60) == 0
    assert set(failures) == {None}


def _confluent_read(sides: Sides, is_mutual: bool, topic: str, count: int) -> list[str]:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({**librdkafka_settings(sides, is_mutual), "group.id": "g", "check.crcs": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    got: list[str] = []
    while len(got) < count:
        batch = consumer.consume(count - len(got), 60)
        assert batch
        assert not [message.error() for message in batch if message.error()]
        got += [message.value().decode() for message in batch]
    consumer.close()
    return got


def _kafka_python_write(sides: Sides, is_mutual: bool, topic: str, values: Sequence[str]) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(**ssl_settings(sides, is_mutual))
    futures = [producer.send(topic, value.encode()) for value in values]
    producer.flush(60)
    for future in futures:
        future.get(60)
    producer.close()


def _kafka_python_read(sides: Sides, is_mutual: bool, topic: str, count: int) -> list[str]:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(**ssl_settings(sides, is_mutual), group_id=None, consumer_timeout_ms=60_000)
    consumer.assign([TopicPartition(topic, 0)])
    consumer.seek_to_beginning()
    got = [record.value.decode() for _, record in zip(range(count), consumer, strict=False)]
    consumer.close()
    return got


AIOKAFKA = """
import asyncio, json, ssl, sys
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
spec = json.loads(sys.stdin.read())

def settings():
    context = ssl.create_default_context(cafile=spec["ca"])
    if spec["keys"]:
        context.load_cert_chain(*spec["keys"])
    return {"bootstrap_servers": spec["bootstrap"], "security_protocol": "SSL", "ssl_context": context}

async def main():
    if spec["values"] is not None:
        async with AIOKafkaProducer(**settings()) as producer:
            for future in [await producer.send(spec["topic"], value.encode()) for value in spec["values"]]:
                await future
        return []
    async with AIOKafkaConsumer(**settings()) as consumer:
        consumer.assign([TopicPartition(spec["topic"], 0)])
        await consumer.seek_to_beginning()
        return [(await consumer.getone()).value.decode() for _ in range(spec["count"])]

print(json.dumps(asyncio.run(main())))
"""


def _aiokafka(sides: Sides, is_mutual: bool, topic: str, values: Sequence[str] | None, count: int = 0) -> list[str]:
    import sys

    keys = [sides.file("client.crt"), sides.file("client.key")] if is_mutual else []
    spec: dict[str, Any] = {"bootstrap": sides.address(is_mutual), "ca": sides.file("ca.pem"), "keys": keys}
    spec |= {"topic": topic, "values": values, "count": count}
    out = run_process([sys.executable, "-c", AIOKAFKA], json.dumps(spec), deadline_s=120).out
    got: list[str] = json.loads(out)
    return got


def _aiokafka_write(sides: Sides, is_mutual: bool, topic: str, values: Sequence[str]) -> None:
    _aiokafka(sides, is_mutual, topic, values)


def _aiokafka_read(sides: Sides, is_mutual: bool, topic: str, count: int) -> list[str]:
    return _aiokafka(sides, is_mutual, topic, None, count)


def kcat_options(settings: Mapping[str, str]) -> list[str]:
    options = []
    for key, value in settings.items():
        options += ["-b", value] if key == "bootstrap.servers" else ["-X", f"{key}={value}"]
    return options


def _kcat_write(sides: Sides, is_mutual: bool, topic: str, values: Sequence[str]) -> None:
    options = kcat_options(librdkafka_settings(sides, is_mutual))
    run_process(["kcat", "-P", "-t", topic, *options], "".join(f"{value}\n" for value in values))


def _kcat_read(sides: Sides, is_mutual: bool, topic: str, count: int) -> list[str]:
    options = kcat_options(librdkafka_settings(sides, is_mutual))
    out = run_process(["kcat", "-C", "-q", "-e", "-t", topic, "-p", "0", "-o", "beginning", *options]).out
    return out.splitlines()


def _java_write(version: str) -> Callable[..., None]:
    def write(sides: Sides, is_mutual: bool, topic: str, values: Sequence[str]) -> None:
        file = properties_file(sides, is_mutual)
        Tools(version, sides.address(is_mutual)).run(
            *("console-producer", "--topic", topic, "--producer.config", file),
            stdin="".join(f"{value}\n" for value in values),
        )

    return write


def _java_read(version: str) -> Callable[..., list[str]]:
    def read(sides: Sides, is_mutual: bool, topic: str, count: int) -> list[str]:
        file = properties_file(sides, is_mutual)
        arguments = ["--topic", topic, "--from-beginning", "--max-messages", str(count), "--timeout-ms", "60000"]
        result = Tools(version, sides.address(is_mutual)).run("console-consumer", *arguments, "--consumer.config", file)
        return result.lines

    return read


def properties_file(sides: Sides, is_mutual: bool) -> str:
    """The settings of Kafka's own tools."""
    file = sides.authority.directory / ("mtls.properties" if is_mutual else "ssl.properties")
    file.write_text("".join(f"{key}={value}\n" for key, value in java_settings(sides, is_mutual).items()))
    return str(file)


WRITERS: dict[str, Callable[..., None]] = {
    "confluent": _confluent_write,
    "kafka-python": _kafka_python_write,
    "aiokafka": _aiokafka_write,
    "kcat": _kcat_write,
    "java-3.9.1": _java_write("3.9.1"),
    "java-4.x": _java_write("4.x"),
}
READERS: dict[str, Callable[..., list[str]]] = {
    "confluent": _confluent_read,
    "kafka-python": _kafka_python_read,
    "aiokafka": _aiokafka_read,
    "kcat": _kcat_read,
    "java-3.9.1": _java_read("3.9.1"),
    "java-4.x": _java_read("4.x"),
}
