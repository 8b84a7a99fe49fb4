"""A broker that stops and starts again: topics, records, offsets, configurations and ids are all still there."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import Producer
from confluent_kafka.admin import ConfigResource, ResourceType

from compat_tests.support import quick
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually

StartBroker = Callable[..., Broker]


def test_clean_restart(own_broker: StartBroker) -> None:
    broker = own_broker()
    quick.create_topic(broker.bootstrap, "kept", 3, segment_ms=4242000)
    for partition in range(3):
        quick.fill(broker.bootstrap, "kept", [f"{partition} {n}" for n in range(50)], partition)
    read = quick.read(broker.bootstrap, [("kept", 0)], 50, group="readers")
    assert len(read) == 50
    admin = quick.admin_client(broker.bootstrap)
    before = admin.describe_cluster().result(timeout=120)
    broker.restart()
    assert admin.describe_cluster().result(timeout=120).cluster_id == before.cluster_id
    eventually(lambda: len(admin.list_topics("kept", timeout=120).topics["kept"].partitions) == 3, "three partitions")
    resource = ConfigResource(ResourceType.TOPIC, "kept")
    assert admin.describe_configs([resource])[resource].result(timeout=120)["segment.ms"].value == "4242000"
    for partition in range(3):
        messages = quick.read(broker.bootstrap, [("kept", partition)], 50)
        assert [m.value().decode() for m in messages] == [f"{partition} {n}" for n in range(50)]
    assert quick.committed(broker.bootstrap, "readers", [("kept", 0)]) == [50]
    quick.fill(broker.bootstrap, "kept", ["after"])
    assert quick.read(broker.bootstrap, [("kept", 0)], 51)[50].value() == b"after"


def test_killed_broker_keeps_what_it_acknowledged(own_broker: StartBroker) -> None:
    """SIGKILL under load: what was acknowledged is there, once and in order, after the producer has retried."""
    broker = own_broker()
    quick.create_topic(broker.bootstrap, "loaded")
    acknowledged: list[int] = []
    settings = {"bootstrap.servers": broker.bootstrap, "linger.ms": 1, "log_level": 0, "message.timeout.ms": 60_000}
    producer = Producer({**settings, "enable.idempotence": True})

    def report_of(number: int) -> Callable[[object, object], None]:
        return lambda error, _: acknowledged.append(number) if error is None else None

    for number in range(30_000):
        producer.produce("loaded", str(number).encode(), on_delivery=report_of(number))
        producer.poll(0)
        if number == 15_000:
            broker.kill()
            broker.start()
    assert producer.flush(60) == 0
    assert acknowledged == list(range(30_000))
    read = quick.read(broker.bootstrap, [("loaded", 0)], 30_000)
    assert [int(m.value()) for m in read] == list(range(30_000))


def test_producer_rides_over_a_restart(own_broker: StartBroker) -> None:
    """An idempotent producer that was there before goes on afterwards: its sequence numbers are remembered."""
    broker = own_broker()
    quick.create_topic(broker.bootstrap, "ridden")
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "log_level": 0})
    for n in range(100):
        producer.produce("ridden", str(n).encode())
    assert producer.flush(120) == 0
    broker.restart()
    for n in range(100, 200):
        producer.produce("ridden", str(n).encode())
    assert producer.flush(120) == 0
    assert [int(m.value()) for m in quick.read(broker.bootstrap, [("ridden", 0)], 200)] == list(range(200))
