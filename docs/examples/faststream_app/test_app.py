"""The app on a real broker: not a test client of the framework, so topics, groups and commits are tested too."""

import asyncio

import pytest


@pytest.fixture
async def running(kafka_broker):
    """The app, connected to the broker of the tests: it reads the address when it is imported."""
    import app

    for topic in ("payments", "receipts"):
        kafka_broker.create_topic(topic)
    async with app.broker:
        await app.broker.start()
        yield app
    for topic in ("payments", "receipts"):
        kafka_broker.delete_topic(topic)


async def receipts(broker, count):
    await asyncio.to_thread(broker.wait_for, lambda: len(broker.records("receipts")) >= count)
    return [record.json() for record in broker.records("receipts")]


async def test_a_payment_has_a_receipt(running, kafka_broker):
    kafka_broker.produce("payments", [{"account": "ann", "amount": 5}])
    assert await receipts(kafka_broker, 1) == [{"account": "ann", "paid": 5}]


async def test_what_is_no_payment_has_none_and_does_not_stop_the_others(running, kafka_broker):
    kafka_broker.produce("payments", [{"account": "ann", "amount": -1}, "no JSON", {"account": "bob", "amount": 7}])
    assert await receipts(kafka_broker, 1) == [{"account": "bob", "paid": 7}]
