"""Brokers: their life and their clients."""

import asyncio
from pathlib import Path

from kpybroker.testing import Broker


def test_one_broker(tmp_path: Path) -> None:
    # Broker
    with Broker(topics={"orders": 3}, config={"message.max.bytes": 2_000_000}) as broker:
        producer = broker.producer()
        producer.produce("orders", b"first")
        producer.flush()
        broker.assert_records("orders", ["first"])

    # Broker.host
    # Broker.port
    with Broker() as broker:
        assert broker.bootstrap_servers == f"{broker.host}:{broker.port}"

    # Brokers.start
    # Brokers.stop
    # Brokers.is_running
    # Brokers.data_dir
    broker = Broker(data_dir=tmp_path / "kept")
    broker.start()
    assert broker.is_running
    assert Path(broker.data_dir).is_dir()
    broker.stop()  # the next start with this directory has the same records

    # Brokers.kill
    broker = Broker().start()
    broker.kill()
    assert not broker.is_running


def test_clients(broker: Broker) -> None:
    # Brokers
    # Brokers.producer
    # Brokers.consumer
    producer = broker.producer(library="confluent-kafka", linger_ms=0)
    producer.produce("orders", b"first")
    producer.flush()
    consumer = broker.consumer("billing", "orders", library="confluent-kafka")
    assert consumer.consume(1, 60)[0].value() == b"first"
    consumer.close()

    # Brokers.admin
    admin = broker.admin(library="confluent-kafka")
    assert "orders" in admin.list_topics().topics

    # Brokers.config
    assert broker.config("java", acks="all") == {"bootstrap.servers": broker.bootstrap_servers, "acks": "all"}

    # Brokers.bootstrap_servers
    # Brokers.bootstrap_server
    host, port = broker.bootstrap_servers.split(":")
    assert (host, port) == (broker.host, str(broker.port))

    # Brokers.control
    assert broker.control.startswith("http://127.0.0.1:")  # for curl, or a test in another language

    # Brokers.channel
    assert broker.channel.call("clock")["ahead_ms"] == 0  # any method of the control channel

    # Brokers.log
    assert any("kpybroker" in line for line in broker.log(lines=100))

    # Brokers.status
    assert broker.status()["brokers"][0]["state"] == "up"


def test_users() -> None:
    # Brokers.users
    with Broker(sasl="scram") as broker:
        assert broker.config("confluent-kafka", user="bob")["sasl.password"] == broker.users["bob"]


def test_clients_of_asyncio(broker: Broker) -> None:
    # Brokers.aio_producer
    # Brokers.aio_consumer
    async def copy() -> bytes:
        async with broker.aio_producer() as producer, broker.aio_consumer("billing", "orders") as consumer:
            await producer.send_and_wait("orders", b"first")
            record = await consumer.getone()
        return record.value

    assert asyncio.run(copy()) == b"first"


def test_awaitable() -> None:
    # Aio
    # Aio.start
    # Aio.stop
    # Brokers.aio
    async def with_calls() -> None:
        broker = Broker(topics=["orders"])
        await broker.aio.start()
        await broker.aio.stop()

    asyncio.run(with_calls())

    # Aio.call
    # Aio.wait_for
    # Aio.wait_group
    # Aio.wait_assigned
    # Aio.wait_share_group
    # Aio.wait_acknowledged
    async def with_a_block() -> None:
        async with Broker(topics=["orders"]) as broker, broker.aio_consumer("billing", "orders"):
            group = await broker.aio.wait_group("billing", members=1)
            assert group == await broker.aio.wait_assigned("billing", "orders")
            await broker.aio.wait_for(lambda: broker.requests("Heartbeat"))
            await broker.aio.call(broker.wait_requests, "JoinGroup")
            broker.produce("orders", ["resize"])
            with broker.share_consumer("workers", "orders") as worker:
                await broker.aio.wait_share_group("workers", members=1)
                await broker.aio.call(worker.poll, 60)
                await broker.aio.call(worker.commit_sync, 60)
            await broker.aio.wait_acknowledged("workers", "orders", [0])

    asyncio.run(with_a_block())
