"""The same conversation on every broker that can keep the topic, and what is left of it after compaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition
from starlette.testclient import TestClient

import kpybroker.testing
from compat_tests.registry.conftest import Instance
from compat_tests.registry.conversation import PICTURE, STEPS, Response, Step, ask, responses
from compat_tests.support.kafkas import kafka_3, kafka_4
from compat_tests.support.quick import DEADLINE_S, QUIET, create_topic
from compat_tests.support.waiting import eventually
from tests.registry.conftest import Registry

SEGMENT_BYTES = 1 << 20
"""The least that Kafka 4 allows."""


@contextmanager
def ours(_: Path) -> Iterator[str]:
    with kpybroker.testing.Broker(start_timeout=DEADLINE_S, config={"log.cleaner.backoff.ms": 100}) as broker:
        yield broker.bootstrap_servers


@contextmanager
def kafka_that_compacts(directory: Path) -> Iterator[str]:
    with kafka_3(directory, {"log.cleaner.backoff.ms": "100", "group.initial.rebalance.delay.ms": "0"}) as bootstrap:
        yield bootstrap


CLUSTERS = {"ours": ours, "3.9": kafka_that_compacts, "4.3": kafka_4}
WIDE = [pytest.param(name, marks=pytest.mark.wide) for name in ("3.9", "4.3")]


@pytest.fixture(scope="module", params=["ours", *WIDE])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the brokers are."""
    with CLUSTERS[request.param](tmp_path_factory.mktemp("cluster")) as bootstrap:
        yield bootstrap


Start = Callable[[], Instance]


@pytest.fixture
def start(store: str, name: str, tmp_path: Path) -> Iterator[Start]:
    """Starts instances of one registry, whose topic is there already, in small segments."""
    small: dict[str, Any] = {"segment_bytes": SEGMENT_BYTES, "min_cleanable_dirty_ratio": 0.01}
    create_topic(store, f"_schemas-{name}", cleanup_policy="compact", delete_retention_ms=0, **small)
    arguments = ("-b", store, "--topic", f"_schemas-{name}", "--group", f"registry-{name}", "--timeout", "120")
    with ExitStack() as stack:

        def make() -> Instance:
            instance = Instance(*arguments, log=tmp_path / "registry.log")
            stack.callback(instance.close)
            return instance

        yield make


def expected(steps: tuple[Step, ...]) -> list[tuple[Step, Response]]:
    """What an instance says whose topic is a list in memory."""
    http: TestClient = Registry().http
    return [(step, ask(http, step)) for step in steps]


def test_the_conversation_is_the_same_and_another_instance_goes_on(start: Start) -> None:
    wanted = expected((*STEPS, *PICTURE))
    first = start()
    assert responses(first.url, (*STEPS, *PICTURE)) == wanted
    assert first.stop() == 0
    assert responses(start().url, PICTURE) == wanted[len(STEPS) :]


def test_an_instance_reads_the_same_from_a_compacted_topic(start: Start, store: str, name: str) -> None:
    first = start()
    responses(first.url, STEPS)
    wanted = responses(first.url, PICTURE)
    before = keys(store, f"_schemas-{name}")
    assert len(set(before)) < len(before) / 2, "there is something to compact"
    roll = Step("PUT", "/config/rolled", {"compatibilityGroup": "x" * (SEGMENT_BYTES // 10)})
    responses(first.url, (roll,) * 12)

    def is_compacted() -> bool:
        """Of what was there before the roll, each key is there once: the last segment is never compacted."""
        left = keys(store, f"_schemas-{name}", len(before))
        return len(set(left)) == len(left)

    eventually(is_compacted, "the topic is compacted")
    assert first.stop() == 0
    fresh = start()
    assert responses(fresh.url, PICTURE) == wanted
    again = responses(fresh.url, (Step("POST", "/subjects/late/versions", {"schema": '"double"'}),))
    assert again[0][1].status == 200


def keys(bootstrap: str, topic: str, end: int | None = None) -> list[bytes]:
    """Of the records before an offset, in order."""
    settings = {"group.id": "none", "enable.partition.eof": True, "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings, **QUIET})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes] = []
    try:
        while True:
            message = consumer.poll(DEADLINE_S)
            assert message is not None
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                return found
            if end is None or message.offset() < end:
                found.append(message.key())
    finally:
        consumer.close()
