"""The service in the test's event loop, with requests that do not leave the process."""

import httpx
import pytest
from app import TOPIC, app, lifespan


@pytest.fixture
async def client(kafka_broker, monkeypatch):
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", kafka_broker.bootstrap_servers)
    async with (
        lifespan(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://service") as client,
    ):
        yield client


async def test_a_click_is_written(client, kafka_broker):
    response = await client.post("/clicks", json={"user": "ann", "page": "/start"})
    assert response.status_code == 202
    (record,) = kafka_broker.records(TOPIC, start=response.json()["offset"])
    assert (record.key, record.json()) == (b"ann", {"user": "ann", "page": "/start"})


async def test_a_click_that_kafka_refuses_gets_503(client, kafka_broker, kafka_faults):
    with kafka_faults.error("Produce", "MESSAGE_TOO_LARGE", topic=TOPIC):
        response = await client.post("/clicks", json={"user": "bob", "page": "/start"})
    assert response.status_code == 503
    assert not [record for record in kafka_broker.records(TOPIC) if record.key == b"bob"]
