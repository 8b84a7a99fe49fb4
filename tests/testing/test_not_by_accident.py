"""What used to be true by accident: assertions on what is not there, not read, not compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from kpybroker.control.requests.request_log import RequestLog
from kpybroker.testing import Broker, Cluster, NotThere, Record, UsageError


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(topics={"orders": 4}, in_thread=True) as running:
        running.produce("orders", ["a", "b", "c", "d"])
        yield running


def commit(broker: Broker, group: str, **offsets: int) -> None:
    consumer = broker.consumer(group, library="confluent-kafka")
    places = [TopicPartition("orders", int(name[1:]), offset) for name, offset in offsets.items()]
    consumer.assign(places)
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def test_a_group_that_does_not_exist_has_no_lag_and_no_commits(broker: Broker) -> None:
    commit(broker, "there", p0=1)
    for ask in (broker.lag, broker.committed, lambda group: broker.assert_lag(group, 0)):
        with pytest.raises(NotThere, match="there is no group 'theer'\nfix: did you mean 'there'"):
            ask("theer")
    with pytest.raises(NotThere):
        broker.assert_committed("theer", "orders", {})


def test_waiting_for_a_group_that_is_yet_to_come_goes_on_until_it_has_come(broker: Broker) -> None:
    looks = []

    def condition() -> Any:
        looks.append(1)
        if len(looks) == 2:
            commit(broker, "later", p0=1)
        return broker.committed("later") == {"orders": {0: 1}}

    assert broker.wait_for(condition)
    assert len(looks) == 2


def test_partitions_that_were_never_read_lag_by_all_they_have(broker: Broker) -> None:
    commit(broker, "half", p0=1, p1=1)
    assert broker.lag("half") == {"orders": {0: 0, 1: 0, 2: 1, 3: 1}}
    with pytest.raises(AssertionError, match="lags 2 records behind, not 0"):
        broker.assert_lag("half", 0)
    broker.assert_lag("half", 2)
    broker.assert_lag("half", 2, "orders")
    broker.assert_lag("half", 0, "orders", partition=1)
    broker.assert_lag("half", 1, "orders", partition=2)


def test_a_group_lags_in_the_topics_that_it_subscribes_to_before_it_commits(broker: Broker) -> None:
    consumer = broker.consumer("fresh", "orders", library="confluent-kafka", enable_auto_commit=False)
    try:
        consumer.poll(0)
        broker.wait_assigned("fresh", "orders")
        broker.assert_lag("fresh", 4)
    finally:
        consumer.close()


def test_a_topic_of_which_nothing_was_committed_is_not_one_without_lag(broker: Broker) -> None:
    commit(broker, "elsewhere", p0=1)
    broker.create_topic("other")
    with pytest.raises(AssertionError, match="has committed no offset of other, and reads none"):
        broker.assert_lag("elsewhere", 0, "other")
    broker.assert_committed("elsewhere", "other", {})
    with pytest.raises(UsageError, match="there is no topic `othr`"):
        broker.assert_committed("elsewhere", "othr", {})


def test_the_offsets_of_a_partition_without_a_leader_are_not_left_out() -> None:
    with Cluster(2, in_thread=True) as cluster:
        cluster.create_topic("t", 2, replication_factor=1)
        cluster.move_leader("t", 0, to=None)
        with pytest.raises(NotThere, match="t-0 has no leader"):
            cluster.end_offsets("t")


def test_records_and_assert_records_have_the_same_isolation(broker: Broker) -> None:
    broker.create_topic("moved")
    producer = broker.producer(library="confluent-kafka", transactional_id="mover")
    producer.init_transactions()
    for value, ends in ((b"kept", producer.commit_transaction), (b"dropped", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce("moved", value)
        producer.flush()
        ends()
    assert [record.value for record in broker.records("moved")] == [b"kept"]
    broker.assert_records("moved", ["kept"])
    everything = [record.value for record in broker.records("moved", isolation="read_uncommitted")]
    assert everything == [b"kept", b"dropped"]
    broker.assert_records("moved", ["kept", "dropped"], isolation="read_uncommitted")
    with pytest.warns(DeprecationWarning, match="use isolation="):
        broker.assert_records("moved", ["kept", "dropped"], committed=False)


def test_all_records_are_read_unless_a_limit_says_how_many(broker: Broker) -> None:
    broker.create_topic("many")
    broker.produce("many", ["x"] * 1_234)
    assert len(broker.records("many")) == 1_234
    assert len(broker.records("many", limit=1_000)) == 1_000


def test_more_records_than_are_read_at_once_are_an_error(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kpybroker.testing.looking.RECORDS_MAX", 3)
    with pytest.raises(UsageError, match=r"orders has 3 records or more\nfix: read them in parts"):
        broker.records("orders")


def test_in_any_order_keys_and_values_are_compared_as_pairs(broker: Broker) -> None:
    broker.create_topic("pairs")
    broker.produce("pairs", [("k1", "v1"), ("k2", "v2")])
    broker.assert_records("pairs", ["v2", "v1"], keys=["k2", "k1"], in_any_order=True)
    with pytest.raises(AssertionError, match="pairs differ"):
        broker.assert_records("pairs", ["v1", "v2"], keys=["k2", "k1"], in_any_order=True)


@pytest.mark.parametrize(
    ("stored", "wanted", "is_same"),
    [
        ({"paid": 1}, {"paid": True}, False),
        ({"paid": [True, 0]}, {"paid": [1, False]}, False),
        ({"paid": [True, 0]}, {"paid": (True, 0.0)}, True),
        (1, True, False),
        (1, 1.0, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ("1", 1, True),
        ("text", ["text"], False),
    ],
)
def test_values_are_the_same_as_json_has_them(broker: Broker, stored: Any, wanted: Any, is_same: bool) -> None:
    topic = f"json-{abs(hash(repr((stored, wanted))))}"
    broker.create_topic(topic)
    broker.produce(topic, [stored])
    if is_same:
        broker.assert_records(topic, [wanted])
    else:
        with pytest.raises(AssertionError):
            broker.assert_records(topic, [wanted])


def test_what_was_meant_is_done(broker: Broker) -> None:
    """Calls that look alike and are right."""
    broker.create_topic("meant", 2)
    broker.produce("meant", (("k", "v"), Record("x", 1, 0, 5, None, b"w")))
    broker.produce("meant", iter([bytearray(b"x"), memoryview(b"y")]))
    broker.produce("meant", [])
    assert sorted(record.value or b"" for record in broker.records("meant")) == [b"v", b"w", b"x", b"y"]
    broker.assert_records("meant", {"v", "w", "x", "y"}, in_any_order=True)
    broker.assert_records("meant", (value for value in ("v", "w", "x", "y")), in_any_order=True)
    with broker.faults.observe("DeleteAcls", once=False, expect_unused=True) as fault:
        assert fault.status()["trigger"] == {}


def test_no_requests_are_not_those_that_were_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RequestLog.__init__, "__defaults__", (2, 1 << 20))
    with Broker(in_thread=True) as broker:
        broker.assert_no_requests()
        admin = broker.admin(library="confluent-kafka")
        for _ in range(3):
            admin.list_topics(timeout=60)
        with pytest.raises(AssertionError, match="requests have arrived: Metadata"):
            broker.assert_no_requests("Metadata")
        with pytest.raises(UsageError, match=r"has forgotten \d+ requests .*\nfix: call clear_requests"):
            broker.assert_no_requests("DeleteAcls")
        broker.clear_requests()
        broker.assert_no_requests("DeleteAcls")


def test_num_brokers_is_brokers_with_a_warning() -> None:
    old_name: Any = {"num_brokers": 2}
    with pytest.warns(DeprecationWarning, match="num_brokers= is called brokers= now") as warned:
        cluster = Cluster(**old_name, in_thread=True)
    assert warned[0].filename == __file__
    with cluster:
        assert cluster.ids == [0, 1]
