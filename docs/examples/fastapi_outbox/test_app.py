"""Each order has its event, whatever Kafka does at the same time. The service runs in the test's event loop."""

import asyncio
from contextlib import asynccontextmanager

import app as service
import httpx
import pytest


@pytest.fixture
def start(kafka_broker, kafka_topic, tmp_path, monkeypatch):
    """Start the service on the same database; a client of it."""
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", kafka_broker.bootstrap_servers)
    monkeypatch.setenv("ORDERS_DATABASE", str(tmp_path / "orders.sqlite"))
    monkeypatch.setattr(service, "TOPIC", kafka_topic)

    @asynccontextmanager
    async def started():
        transport = httpx.ASGITransport(service.app)
        async with (
            service.lifespan(service.app),
            httpx.AsyncClient(transport=transport, base_url="http://it") as client,
        ):
            yield client

    return started


async def events(broker, topic, count):
    """The first events, once there are as many."""
    await asyncio.to_thread(broker.wait_for, lambda: len(broker.records(topic)) >= count)
    return [record.json() for record in broker.records(topic)]


async def test_an_order_has_its_event(start, kafka_broker, kafka_topic):
    async with start() as client:
        response = await client.post("/orders", json={"customer": "ann", "amount": 5})
        assert response.status_code == 201
        number = response.json()["id"]
        assert await events(kafka_broker, kafka_topic, 1) == [{"order": number, "customer": "ann", "amount": 5}]


async def test_an_order_that_is_refused_has_none(start, kafka_broker, kafka_topic):
    async with start() as client:
        assert (await client.post("/orders", json={"customer": "ann", "amount": 0})).status_code == 422
        assert (await client.post("/orders", json={"customer": "bob", "amount": 1})).status_code == 201
        (event,) = await events(kafka_broker, kafka_topic, 1)
        assert event["customer"] == "bob"


async def test_orders_are_taken_while_kafka_refuses_and_their_events_follow_in_order(
    start, kafka_broker, kafka_topic, kafka_faults, kafka_requests
):
    async with start() as client:
        with kafka_faults.error("Produce", "TOPIC_AUTHORIZATION_FAILED", topic=kafka_topic):
            for amount in (1, 2, 3):
                assert (await client.post("/orders", json={"customer": "ann", "amount": amount})).status_code == 201
            await asyncio.to_thread(kafka_broker.wait_for, lambda: kafka_requests("Produce"))
            assert kafka_broker.records(kafka_topic) == []
        assert [event["amount"] for event in await events(kafka_broker, kafka_topic, 3)] == [1, 2, 3]


async def test_the_next_start_sends_what_the_last_one_could_not(
    start, kafka_broker, kafka_topic, kafka_faults, kafka_requests
):
    with kafka_faults.error("Produce", "TOPIC_AUTHORIZATION_FAILED", topic=kafka_topic):
        async with start() as client:
            await client.post("/orders", json={"customer": "ann", "amount": 7})
            await asyncio.to_thread(kafka_broker.wait_for, lambda: kafka_requests("Produce"))
    async with start():
        assert [event["amount"] for event in await events(kafka_broker, kafka_topic, 1)] == [7]
