"""Faults of requests and of the disk, and their handles."""

from pathlib import Path

import pytest

from kpybroker.testing import Broker, UnusedFault, UnusedFaultWarning


def produced(broker: Broker, value: bytes = b"x", **settings: object) -> None:
    producer = broker.producer(library="confluent-kafka", **settings)
    producer.produce("orders", value)
    producer.flush()


def test_errors(broker: Broker) -> None:
    # Faults
    # Brokers.faults
    # Faults.error
    with broker.faults.error("Produce", "NOT_LEADER_OR_FOLLOWER", topic="orders", times=2) as fault:
        produced(broker)  # the client tries three times
        assert fault.hits == 2

    # Faults.observe
    # Fault.hits
    with broker.faults.observe("Produce", client_id="shop") as fault:
        produced(broker, client_id="shop")
        assert fault.hits == 1


def test_times(broker: Broker) -> None:
    # Faults.delay
    with broker.faults.delay("Produce", 50, jitter_ms=20):
        produced(broker)

    # Faults.throttle
    with broker.faults.throttle("Produce", 100):
        produced(broker)

    # Faults.slice
    with broker.faults.slice("Metadata", 10, every_ms=1):
        produced(broker)


def test_connections(broker: Broker) -> None:
    # Faults.disconnect
    with broker.faults.disconnect("Produce", "after", once=True):  # it is written, and the response is lost
        produced(broker)

    # Faults.reset
    with broker.faults.reset("Produce", once=True):
        produced(broker)

    # Faults.truncate
    with broker.faults.truncate("Produce", 10, once=True):
        produced(broker)

    # Faults.never_answer
    with broker.faults.never_answer("Produce", once=True):
        produced(broker, socket_timeout_ms=1000)

    # Faults.blackhole
    with broker.faults.blackhole("Produce", client_id="shop") as fault:
        producer = broker.producer(library="confluent-kafka", client_id="shop")
        producer.produce("orders", b"ignored")
        producer.poll(0)
        fault.wait()
        producer.purge()


def test_damage(broker: Broker) -> None:
    # Faults.corrupt
    broker.produce("orders", ["first"])
    with broker.faults.corrupt("crc", topic="orders", once=True) as fault:
        consumer = broker.consumer("billing", "orders", library="confluent-kafka", check_crcs=True)
        consumer.consume(1, 60)
        assert fault.hits == 1
        consumer.close()


def test_handles(broker: Broker) -> None:
    # Faults.hold
    # Fault
    # Fault.wait
    # Fault.release
    fault = broker.faults.hold("Produce", topic="orders")
    producer = broker.producer(library="confluent-kafka")
    producer.produce("orders", b"first")
    producer.poll(0)
    fault.wait(hits=1)
    assert broker.records("orders") == []
    fault.release()
    producer.flush()

    # Fault.status
    # Fault.channel
    assert fault.status()["hits"] == 1
    assert fault.channel is broker.channel

    # Fault.remove
    fault.remove()

    # Faults.all
    # Faults.clear
    broker.faults.error("Heartbeat", "NOT_COORDINATOR", group="billing", nth=3, expect_unused=True)
    assert len(broker.faults.all()) == 1
    broker.faults.clear()

    # Brokers.reset
    broker.reset()


def test_rules(broker: Broker, tmp_path: Path) -> None:
    # Faults.add
    rule = {"match": {"api": "Produce"}, "act": {"error": "REQUEST_TIMED_OUT"}, "trigger": {"times": 1}}
    with broker.faults.add(**rule, expect_unused=True) as fault:
        assert fault.hits == 0

    # Faults.load
    file = tmp_path / "faults.json"
    file.write_text('[{"match": {"api": "Produce"}, "act": {"delay_ms": 10}}]')
    [fault] = broker.faults.load(file, expect_unused=True)
    fault.remove()

    # UnusedFault
    with pytest.raises(UnusedFault, match="did you mean 'orders'"), broker.faults.observe("Produce", topic="order"):
        produced(broker)

    # UnusedFaultWarning
    assert issubclass(UnusedFaultWarning, UserWarning)  # with `kafka_unused_faults = warn`


def test_the_disk(broker: Broker) -> None:
    # Faults.io_error
    with broker.faults.io_error("*orders*", operations=["sync"], expect_unused=True):
        produced(broker)

    # Faults.slow_fsync
    with broker.faults.slow_fsync(50, path="*orders*", expect_unused=True):
        produced(broker)

    # Faults.disk_full
    with broker.faults.disk_full(path="*payments*", after=1000, expect_unused=True):
        produced(broker)  # to another topic

    # Faults.torn_write
    with broker.faults.torn_write(path="*orders*.log", expect_unused=True):
        produced(broker)

    # Faults.crash_before_fsync
    with broker.faults.crash_before_fsync(expect_unused=True):
        produced(broker)
