"""Structured streaming with a checkpoint: stopped and started again, each row comes out once.

`own_broker` comes before `stream` in a test's arguments: a query that outlives its broker takes a minute to stop.
"""

from __future__ import annotations

import json

import pytest
from confluent_kafka.admin import NewPartitions

from compat_tests.conftest import MakeTopic, StartBroker
from compat_tests.spark.support import Stream, records, write
from compat_tests.support.quick import admin_client, create_topic
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually

by_both = pytest.mark.usefixtures("readers")


@by_both
def test_a_restarted_query_goes_on_where_it_stopped(stream: Stream, broker: Broker, topic: MakeTopic) -> None:
    name = topic(partitions=2)
    options: dict[str, object] = {"subscribe": name, "startingOffsets": "earliest"}
    expected = records(name, 0, 30) + records(name, 1, 20)
    write(broker.bootstrap, expected)
    assert stream.run(broker.bootstrap, **options) == [50]
    assert stream.rows() == sorted(expected)
    more = records(name, 0, 15, first=30) + records(name, 1, 1, first=20)
    write(broker.bootstrap, more)
    assert stream.run(broker.bootstrap, **options) == [16]
    assert stream.run(broker.bootstrap, **options) == []
    assert stream.rows() == sorted(expected + more)


@by_both
def test_a_limit_on_offsets_cuts_the_backlog_into_batches(stream: Stream, broker: Broker, topic: MakeTopic) -> None:
    name = topic(partitions=2)
    options: dict[str, object] = {"subscribe": name, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "16"}
    expected = records(name, 0, 30) + records(name, 1, 10)
    write(broker.bootstrap, expected)
    taken = stream.run(broker.bootstrap, **options)
    assert sum(taken) == 40
    assert max(taken) <= 16
    write(broker.bootstrap, more := records(name, 1, 17, first=10))
    taken = stream.run(broker.bootstrap, **options)
    assert sum(taken) == 17
    assert max(taken) <= 16
    assert stream.rows() == sorted(expected + more)


def test_a_query_that_starts_at_the_latest_sees_only_what_comes_after(
    stream: Stream, broker: Broker, topic: MakeTopic
) -> None:
    name = topic()
    write(broker.bootstrap, records(name, 0, 12))
    query = stream.start(broker.bootstrap, follow=True, subscribe=name, startingOffsets="latest")
    eventually(lambda: (stream.checkpoint / "offsets" / "0").exists() or query.exception(), "the first offsets")
    write(broker.bootstrap, later := records(name, 0, 9, first=12))
    stream.has(later)


def test_a_timestamp_chooses_where_a_query_starts(stream: Stream, broker: Broker, topic: MakeTopic) -> None:
    name = topic(partitions=2)
    expected = records(name, 0, 10) + records(name, 1, 10)
    write(broker.bootstrap, expected)
    start = expected[4].timestamp_ms
    stream.run(broker.bootstrap, subscribe=name, startingTimestamp=str(start))
    assert stream.rows() == sorted(one for one in expected if one.timestamp_ms >= start)


@by_both
def test_a_running_query_lives_through_a_restart_of_the_broker(
    own_broker: StartBroker, stream: Stream, name: str
) -> None:
    broker = own_broker()
    create_topic(broker.bootstrap, name, 2)
    expected = records(name, 0, 20) + records(name, 1, 20)
    write(broker.bootstrap, expected)
    query = stream.start(broker.bootstrap, follow=True, subscribe=name, startingOffsets="earliest")
    stream.has(expected)
    broker.restart()
    more = records(name, 0, 7, first=20) + records(name, 1, 3, first=20)
    write(broker.bootstrap, more)
    stream.has(expected + more)
    assert query.isActive


def test_a_query_goes_on_after_the_broker_was_killed_and_started_again(
    own_broker: StartBroker, stream: Stream, name: str
) -> None:
    broker = own_broker()
    create_topic(broker.bootstrap, name, 1)
    options: dict[str, object] = {"subscribe": name, "startingOffsets": "earliest"}
    write(broker.bootstrap, expected := records(name, 0, 25))
    assert stream.run(broker.bootstrap, **options) == [25]
    write(broker.bootstrap, more := records(name, 0, 10, first=25))
    broker.kill()
    broker.start()
    assert stream.run(broker.bootstrap, **options) == [10]
    assert stream.rows() == expected + more


@by_both
def test_new_partitions_and_new_topics_of_a_pattern_are_read_from_their_start(
    stream: Stream, broker: Broker, topic: MakeTopic, name: str
) -> None:
    first = topic(suffix="-1")
    expected = records(first, 0, 10)
    write(broker.bootstrap, expected)
    # startingOffsets is for a query's first start: what turns up later is always read from its earliest offset
    options: dict[str, object] = {"subscribePattern": f"^{name}-[0-9]$", "startingOffsets": "latest"}
    options["kafka.metadata.max.age.ms"] = "100"
    query = stream.start(broker.bootstrap, follow=True, **options)
    eventually(lambda: (stream.checkpoint / "offsets" / "0").exists() or query.exception(), "the first offsets")
    admin = admin_client(broker.bootstrap)
    admin.create_partitions([NewPartitions(first, 3)])[first].result(120)
    second = topic(suffix="-2", partitions=2)
    topic(suffix="-other")
    new = records(first, 0, 5, first=10) + records(first, 2, 5) + records(second, 1, 4)
    write(broker.bootstrap, new)
    write(broker.bootstrap, records(f"{name}-other", 0, 3))
    stream.has(new)


def test_the_progress_of_a_query_shows_its_offsets(stream: Stream, broker: Broker, topic: MakeTopic) -> None:
    name = topic(partitions=2)
    write(broker.bootstrap, records(name, 1, 6))
    query = stream.start(broker.bootstrap, subscribe=name, startingOffsets="earliest")
    assert query.awaitTermination(60)
    assert query.lastProgress is not None
    source = query.lastProgress["sources"][0]
    assert json.loads(source["endOffset"]) == {name: {"0": 0, "1": 6}}
    assert json.loads(source["latestOffset"]) == {name: {"0": 0, "1": 6}}
