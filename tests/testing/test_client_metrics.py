"""Client metrics in the test kit: asked for, waited for, and looked up."""

from __future__ import annotations

import math

import pytest

from kpybroker.testing import Broker
from kpybroker.testing.errors import UsageError, WaitTimeout
from kpybroker.testing.look import ClientMetric, ClientMetrics, client_metrics_of

LATENCY = "org.apache.kafka.producer.node.request.latency.max"
QUEUE_TIME = "org.apache.kafka.producer.record.queue.time.max"


def test_what_a_client_pushes_is_found() -> None:
    with Broker(topics=["t"], in_thread=True) as broker:
        broker.subscribe_client_metrics(interval_ms=100, match={"client_id": "orders-.*"})
        watched = broker.producer(client_id="orders-1", enable_metrics_push=True)
        other = broker.producer(client_id="payments-1", enable_metrics_push=True)
        for producer in (watched, other):
            producer.produce("t", "one")
            producer.flush()
        found = broker.wait_client_metrics("orders-1", name=LATENCY, pushes=2)
        assert found.value(LATENCY, **{"node.id": "0"}) >= 0
        (found,) = broker.client_metrics("orders-1")
        assert (found.broker, found.address, found.is_terminated) == (0, "127.0.0.1", False)
        assert found.software_name.startswith("confluent-kafka-python")
        assert {one.kind for one in found.find(QUEUE_TIME)} == {"gauge"}
        (only,) = broker.client_metrics("orders-1", name=QUEUE_TIME)
        assert {one.name for one in only.series} == {QUEUE_TIME}
        assert broker.client_metrics("payments-1") == []
        broker.unsubscribe_client_metrics()


async def test_a_push_is_awaited() -> None:
    async with Broker(topics=["t"], in_thread=True) as broker:
        broker.subscribe_client_metrics(interval_ms=100)
        producer = broker.producer(client_id="orders-1", enable_metrics_push=True)
        producer.produce("t", "one")
        found = await broker.aio.wait_client_metrics("orders-1", name=QUEUE_TIME)
        assert (found.client_id, {one.name for one in found.series}) == ("orders-1", {QUEUE_TIME})


def test_a_client_that_pushes_nothing_is_waited_for_in_vain() -> None:
    with Broker(in_thread=True) as broker:
        assert broker.client_metrics() == []
        with pytest.raises(WaitTimeout, match="no such client has pushed its metrics 1 times") as caught:
            broker.wait_client_metrics("stranger", timeout=0.01)
        assert "subscribe_client_metrics" in caught.value.fix


def test_a_subscription_that_cannot_be_is_a_mistake_of_the_call() -> None:
    with Broker(in_thread=True) as broker, pytest.raises(UsageError, match="changing the subscription test"):
        broker.subscribe_client_metrics(match={"no_such_attribute": ".*"})


def client(*series: dict[str, object]) -> ClientMetrics:
    known = {"instance_id": "i", "client_id": "c", "software_name": "s", "software_version": "v", "address": "a"}
    times = {"since_ms": 1, "pushed_ms": 2, "pushes": 1, "is_terminated": False, "left_out": 0}
    return client_metrics_of({**known, **times, "broker": 0, "resource": {}, "series": series})


def series(name: str, value: object, **more: object) -> dict[str, object]:
    return {"name": name, "labels": {}, "kind": "gauge", "value": value, "unit": "", "description": "", **more}


def test_numbers_that_json_has_not_are_numbers_again() -> None:
    found = client(series("a", "NaN"), series("b", "-Inf"), series("c", 3))
    assert [str(one.value) for one in found.series] == ["nan", "-inf", "3.0"]
    summary = series("s", 2, kind="summary", sum="+Inf", at=[0.5], values=["NaN"])
    (one,) = client(summary).series
    assert (one.sum, one.at, math.isnan(one.values[0])) == (math.inf, (0.5,), True)


def test_a_value_is_that_of_the_one_series_with_the_labels() -> None:
    found = client(series("a", 1, labels={"n": "1"}), series("a", 2, labels={"n": "2", "m": "x"}), series("b", 3))
    assert found.value("a", n="2") == 2
    assert client(series("a", 1, labels={"n": "1"}), series("a", 2)).value("a") == 2
    assert [one.value for one in found.find("a")] == [1, 2]
    assert found.find("a", n="3") == []
    with pytest.raises(AssertionError, match=r"c has pushed 2 series a, not one; there are: \[\{'n': '1'\}"):
        found.value("a")
    with pytest.raises(AssertionError, match=r"c has pushed 0 series x {'n': '1'}, not one; there are: \['a', 'b'\]"):
        found.value("x", n="1")
    assert found.find("b") == [ClientMetric("b", {}, "gauge", 3.0)]
