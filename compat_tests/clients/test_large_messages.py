"""Messages of 1, 10 and 50 MB through every client: the topic allows them, the bytes come back unchanged."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer

from compat_tests.conftest import MakeTopic
from compat_tests.support.clients import JAVA_CLIENTS, PYTHON_CLIENTS, python_call
from compat_tests.support.records import digest
from compat_tests.support.services import Broker
from compat_tests.support.tools import Tools, run_process

MB = 1_000_000
SIZES = {"1MB": 1 * MB, "10MB": 10 * MB, "50MB": 50 * MB}
SIZES_BY_EACH = ["1MB", "10MB", pytest.param("50MB", marks=pytest.mark.wide)]
"""In `make test` Java's clients alone carry the largest."""
LIMIT = 60 * MB
PATTERN = "kpybroker carries large messages too. "


def value_of(size: int) -> bytes:
    pattern = PATTERN.encode()
    return (pattern * (size // len(pattern) + 1))[:size]


@pytest.mark.parametrize("size", SIZES_BY_EACH)
@pytest.mark.parametrize("client", PYTHON_CLIENTS)
def test_python_clients(broker: Broker, topic: MakeTopic, client: str, size: str) -> None:
    made = topic(max_message_bytes=LIMIT)
    record = {"key": "k", "value": PATTERN, "size": SIZES[size], "headers": []}
    # kafka-python 2.2.15 leaves a second large request unsent until the first one's time is up
    settings = {"max_in_flight_requests_per_connection": 1} if client == "kafka-python-2.2.15" else {}
    spec = {"bootstrap": broker.bootstrap, "topic": made, "partition": 0, "settings": settings}
    python_call(client, "produce", **spec, records=[record, record])
    response = python_call(
        client, "consume", bootstrap=broker.bootstrap, assign=[[made, 0]], count=2, fetch_bytes=LIMIT
    )
    expected = digest(value_of(SIZES[size]))
    assert [(r["offset"], r["value"]) for r in response["records"]] == [(0, expected), (1, expected)]


@pytest.mark.parametrize("size", SIZES_BY_EACH)
def test_small_fetch_limits(broker: Broker, topic: MakeTopic, size: str) -> None:
    """KIP-74: the first batch comes whole, however small the limits that the consumer named."""
    made = topic(max_message_bytes=LIMIT)
    record: dict[str, Any] = {"key": None, "value": PATTERN, "size": SIZES[size], "headers": []}
    python_call("confluent", "produce", bootstrap=broker.bootstrap, topic=made, records=[record, record], partition=0)
    response = python_call(
        "kafka-python-3.0.12", "consume", bootstrap=broker.bootstrap, assign=[[made, 0]], count=2, fetch_bytes=1000
    )
    assert [r["value"] for r in response["records"]] == [digest(value_of(SIZES[size]))] * 2


@pytest.mark.parametrize("size", SIZES_BY_EACH)
def test_kcat(broker: Broker, topic: MakeTopic, tmp_path: Path, size: str) -> None:
    """kcat -P FILE sends the file as one message."""
    made = topic(max_message_bytes=LIMIT)
    file = tmp_path / "value"
    file.write_bytes(value_of(SIZES[size]))
    limits = ["-X", f"message.max.bytes={LIMIT}", "-X", f"receive.message.max.bytes={2 * LIMIT}"]
    run_process(["kcat", "-P", "-b", broker.bootstrap, "-t", made, *limits, str(file)])
    read = ["kcat", "-C", "-b", broker.bootstrap, "-t", made, "-o", "beginning", "-e", "-q", *limits, "-f", "%o %S %s"]
    got = run_process([*read, "-X", f"fetch.message.max.bytes={LIMIT}"])
    assert got.out.startswith(f"0 {SIZES[size]} {PATTERN}")
    assert hashlib.sha256(got.out.split(" ", 2)[2].encode()).digest() == hashlib.sha256(file.read_bytes()).digest()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("client", JAVA_CLIENTS)
def test_java(broker: Broker, topic: MakeTopic, client: str, size: str) -> None:
    """The console tools: one line, one message."""
    made = topic(max_message_bytes=LIMIT)
    tools = Tools(JAVA_CLIENTS[client], broker.bootstrap)
    line = value_of(SIZES[size]) + b"\n"
    limits = [f"max.request.size={LIMIT}", f"buffer.memory={2 * LIMIT}"]
    options = [word for limit in limits for word in ("--producer-property", limit)]
    tools.run("console-producer", "--topic", made, *options, stdin=line)
    read = tools.run("console-consumer", "--topic", made, "--from-beginning", "--max-messages", "1")
    assert digest(read.out.rstrip("\n").encode()) == digest(line[:-1])


def test_too_large_for_the_topic(broker: Broker, topic: MakeTopic) -> None:
    """One byte too many is refused, and what fits still goes in afterwards."""
    made = topic(max_message_bytes=100_000)
    errors: list[KafkaError | None] = []

    def report(error: KafkaError | None, _message: object) -> None:
        errors.append(error)

    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for size in (50_000, 100_001, 50_000):
        producer.produce(made, b"x" * size, on_delivery=report)
        assert producer.flush(120) == 0
    codes = [None if error is None else error.code() for error in errors]
    assert codes == [None, KafkaError.MSG_SIZE_TOO_LARGE, None]


def test_stock_limit(made: str, broker: Broker) -> None:
    """Stock settings take a batch of up to 1 048 588 bytes (message.max.bytes)."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "message.max.bytes": 5 * MB, "log_level": 0})
    outcomes: list[KafkaError | None] = []
    for size in (1_048_588 - 200, 1_048_588):
        producer.produce(made, b"x" * size, on_delivery=lambda error, _: outcomes.append(error))
        assert producer.flush(120) == 0
    assert outcomes[0] is None
    assert outcomes[1] is not None
    assert outcomes[1].code() == KafkaError.MSG_SIZE_TOO_LARGE
