"""A suite with planted failures, for runs on our broker, and by `--kafka-bootstrap` on others: how each test ends."""

from __future__ import annotations

import re

PLANTED = """
import pytest
from kpybroker.testing import Record, UsageError, WaitTimeout

# --- what passes everywhere

def test_records(kafka_broker, kafka_topic):
    assert kafka_broker.produce(kafka_topic, ["one", ("key", {"two": 2}), b"\\xff"]) == [(0, 0), (0, 1), (0, 2)]
    found = kafka_broker.assert_records(kafka_topic, ["one", {"two": 2}, b"\\xff"], keys=[None, "key", None])
    assert [one.offset for one in found] == [0, 1, 2]
    assert kafka_broker.end_offsets(kafka_topic) == {0: 3}

@pytest.mark.kafka(partitions=3, config={"retention.ms": 86_400_000})
def test_topics(kafka_broker, kafka_topic, kafka_admin):
    topic = kafka_broker.topics()[kafka_topic]
    assert (len(topic.partitions), topic.config["retention.ms"]) == (3, "86400000")
    placed = kafka_broker.produce(kafka_topic, [(f"key-{number}", "v") for number in range(9)] + ["a", "b", "c"])
    assert [partition for partition, _ in placed] == [1, 0, 2, 2, 0, 2, 2, 1, 1, 0, 1, 2]
    headers = (("trace", b"1"), ("none", None))
    kafka_broker.produce(kafka_topic, [Record(kafka_topic, 1, 0, 1234, b"k", b"v", headers)])
    last = kafka_broker.records(kafka_topic, 1)[-1]
    assert (last.timestamp_ms, last.headers, last.key_text, last.text) == (1234, headers, "k", "v")

def test_clients(kafka_broker, kafka_producer, kafka_consumer, kafka_topic, group_id):
    kafka_producer.produce(kafka_topic, b"value", b"key")
    assert kafka_producer.flush(60) == 0
    message = kafka_consumer.poll(60)
    assert (message.key(), message.value()) == (b"key", b"value")
    kafka_consumer.commit(message, asynchronous=False)
    kafka_broker.wait_group(group_id, members=1)
    kafka_broker.wait_assigned(group_id, kafka_topic)
    kafka_broker.assert_committed(group_id, kafka_topic, {0: 1})
    kafka_broker.assert_lag(group_id, 0)

def test_transactions(kafka_broker, kafka_topic):
    producer = kafka_broker.producer(library="confluent-kafka", transactional_id=kafka_topic)
    producer.init_transactions(60)
    for value, ends in ((b"kept", producer.commit_transaction), (b"dropped", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(kafka_topic, value)
        producer.flush(60)
        ends(60)
    kafka_broker.assert_records(kafka_topic, ["kept"])
    kafka_broker.assert_records(kafka_topic, ["kept", "dropped"], isolation="read_uncommitted")

def test_deleted_records(kafka_broker, kafka_topic):
    kafka_broker.produce(kafka_topic, ["a", "b", "c"])
    kafka_broker.delete_records(kafka_topic, 2)
    kafka_broker.wait_for(lambda: kafka_broker.records(kafka_topic)[0].offset == 2)
    kafka_broker.assert_records(kafka_topic, ["c"])

async def _coroutine(broker):
    return await broker.aio.wait_for(lambda: 1, 5)

def test_waiting(kafka_broker):
    import asyncio
    assert asyncio.run(_coroutine(kafka_broker)) == 1

# --- what fails everywhere

def test_fails_plainly(kafka_broker, kafka_topic):
    kafka_broker.produce(kafka_topic, ["x"])
    assert kafka_broker.end_offsets(kafka_topic) == {0: 7}

def test_fails_by_values(kafka_broker, kafka_topic):
    kafka_broker.produce(kafka_topic, ["x"])
    kafka_broker.assert_records(kafka_topic, ["y"])

def test_fails_by_count(kafka_broker, kafka_topic):
    kafka_broker.assert_records(kafka_topic, count=1)

def test_fails_by_a_typo_of_a_group(kafka_broker, kafka_topic):
    kafka_broker.assert_lag("no-such-group", 0)

def test_fails_by_a_typo_of_a_topic(kafka_broker):
    kafka_broker.records("no-such-topic")

def test_fails_by_lag(kafka_broker, kafka_consumer, kafka_topic, group_id):
    kafka_broker.produce(kafka_topic, ["a", "b"])
    kafka_consumer.commit(kafka_consumer.poll(60), asynchronous=False)
    kafka_broker.assert_lag(group_id, 0)

def test_fails_by_waiting(kafka_broker):
    kafka_broker.wait_for(lambda: [], 0.01)

def test_fails_by_a_wrong_call(kafka_broker, kafka_topic):
    kafka_broker.produce(kafka_topic, "abc")

def test_fails_by_a_name_that_does_not_exist(kafka_broker):
    kafka_broker.transactionz()

def test_fails_by_a_topic_that_exists(kafka_broker, kafka_topic):
    kafka_broker.create_topic(kafka_topic)

@pytest.mark.kafka(config={"no.such.key": 1})
def test_fails_in_its_setup(kafka_topic):
    pass

@pytest.mark.kafka(partitions="3")
def test_fails_by_its_marker(kafka_topic):
    pass

# --- what needs our broker

def test_ours_faults(kafka_faults, kafka_broker):
    kafka_faults.observe("DeleteAcls", expect_unused=True)

def test_ours_faults_of_the_broker(kafka_broker):
    kafka_broker.faults.observe("DeleteAcls", expect_unused=True)

def test_ours_time(kafka_clock):
    kafka_clock.advance(seconds=1)

def test_ours_requests(kafka_requests):
    kafka_requests("Produce")

def test_ours_cluster(kafka_cluster):
    assert kafka_cluster.ids == [0, 1, 2]

def test_ours_factory(kafka_broker_factory):
    kafka_broker_factory(in_thread=True)

def test_ours_registry(kafka_schema_registry):
    assert kafka_schema_registry.url

def test_ours_looking(kafka_broker):
    kafka_broker.transactions()

def test_ours_snapshot(kafka_broker):
    kafka_broker.snapshot().drop()

def test_ours_log(kafka_broker):
    kafka_broker.log()
"""
_NAMES = re.findall(r"^def (test_\w+)", PLANTED, re.M)
OURS = [name for name in _NAMES if name.startswith("test_ours_")]
"""Tests that only our broker can run."""
FAILING = {
    name: "ERROR" if name in ("test_fails_in_its_setup", "test_fails_by_its_marker") else "FAILED"
    for name in _NAMES
    if name.startswith("test_fails_")
}
"""Tests that fail wherever they run, and how."""
PASSING = {name: "PASSED" for name in _NAMES if name not in OURS and name not in FAILING}
"""Tests that pass wherever they run."""


def outcomes(output: str) -> dict[str, str]:
    """The name of each test -> how it ended, of the output of a run with `-rA`."""
    found = {name: what for what, name in re.findall(r"^(PASSED|FAILED|ERROR) \S+?\.py::(\w+)", output, re.M)}
    skipped = re.findall(r"^test_it\.py::(\w+): .*stock clients|^test_it\.py::(\w+): ", output, re.M)
    return {**found, **{one or other: "SKIPPED" for one, other in skipped if (one or other) not in found}}
