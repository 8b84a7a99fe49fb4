"""Limits that keep clients from harming each other: connections, idle ones, queued bytes, descriptors, slow readers."""

from __future__ import annotations

import contextlib
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer

from compat_tests.conftest import StartBroker
from compat_tests.overload.raw import Raw, frame_of
from compat_tests.overload.victim import MIB, Victim
from compat_tests.support import quick
from compat_tests.support.services import INTERNAL_PARTITIONS, Broker
from compat_tests.support.waiting import eventually
from kpybroker.system import IS_PORTABLE
from kpybroker.wire.api import ApiKey
from kpybroker.wire.messages.api_versions import ApiVersionsRequest
from kpybroker.wire.messages.fetch import FetchRequest
from kpybroker.wire.messages.metadata import MetadataRequest

NOT_SERVED_S = 0.5
"""How long to look for a response that should not come: a broker that is slower than this passes all the same."""


def address(broker: Broker) -> tuple[str, int]:
    return "127.0.0.1", broker.port


@pytest.fixture
def connections() -> Iterator[contextlib.ExitStack]:
    """Connections to be closed with the test."""
    with contextlib.ExitStack() as stack:
        yield stack


def is_served(raw: Raw) -> bool:
    """Whether a request gets its response within the connection's own patience."""
    try:
        raw.ask(ApiVersionsRequest(), 0)
    except (TimeoutError, EOFError, ConnectionError):
        return False
    return True


def connections_of(broker: Broker) -> int:
    found = psutil.Process(broker.service.pid).net_connections("tcp")
    return sum(1 for one in found if one.status == psutil.CONN_ESTABLISHED)


def test_max_connections(own_broker: StartBroker, connections: contextlib.ExitStack) -> None:
    """Above the limit no client is refused: a new one waits until another leaves."""
    broker = own_broker(max_connections="10")
    eventually(lambda: connections_of(broker) == 0, "the end of the connections that came with the start")
    served = [connections.enter_context(Raw(address(broker))) for _ in range(10)]
    assert all(map(is_served, served))
    waiting = connections.enter_context(Raw(address(broker), timeout_s=NOT_SERVED_S))
    assert not is_served(waiting)
    assert all(map(is_served, served))
    served[0].socket.close()
    waiting.socket.settimeout(30)
    waiting.response(ApiKey.API_VERSIONS, 0)


@pytest.mark.parametrize(
    "limit", [{"max_connections_per_ip": "3"}, {"max_connections_per_ip_overrides": "127.0.0.1:3,10.0.0.1:100"}]
)
def test_max_connections_per_ip(
    own_broker: StartBroker, connections: contextlib.ExitStack, limit: dict[str, str]
) -> None:
    """The newcomer is closed; the others stay."""
    broker = own_broker(**limit)
    eventually(lambda: connections_of(broker) == 0, "the end of the connections that came with the start")
    served = [connections.enter_context(Raw(address(broker))) for _ in range(3)]
    assert all(map(is_served, served))
    with Raw(address(broker)) as refused:
        assert refused.is_closed()
    assert all(map(is_served, served))
    served[0].socket.close()

    def has_room() -> bool:
        with Raw(address(broker)) as newcomer:
            return is_served(newcomer)

    eventually(has_room, "room for another connection")


def test_idle_connections_are_closed(own_broker: StartBroker, connections: contextlib.ExitStack) -> None:
    """One that says nothing, and one that stops inside a frame; one that asks now and then stays.

    Where this process or the broker's gets no time for a second, the last one was idle as well, and another follows.
    """
    broker = own_broker(connections_max_idle_ms="1500")
    silent, stuck, active = (connections.enter_context(Raw(address(broker))) for _ in range(3))
    assert is_served(silent)
    stuck.send(frame_of(MetadataRequest(), 12)[:-1])
    asked = time.monotonic()
    until = asked + 4
    while asked < until:
        is_kept = is_served(active)
        took_s, asked = time.monotonic() - asked, time.monotonic()
        assert is_kept or took_s > 1
        if not is_kept:
            active, until = connections.enter_context(Raw(address(broker))), asked + 4
        time.sleep(0.1)
    assert silent.is_closed()
    assert stuck.is_closed()
    assert is_served(active) or time.monotonic() - asked > 1


def test_a_slow_reader_is_cut_off(own_broker: StartBroker) -> None:
    """50 MB are asked for and not read: that costs no memory, and the connection ends when it was idle for too long."""
    broker = own_broker(connections_max_idle_ms="2000")
    quick.create_topic(broker.bootstrap, "large")
    quick.fill(broker.bootstrap, "large", ["x" * 500_000] * 100)
    victim = Victim(broker)
    victim.reset_peak()
    before = victim.rss
    wanted = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=50 * MIB)
    topic = FetchRequest.FetchTopic(topic="large", partitions=[wanted])
    with Raw(address(broker)) as reader:
        reader.send(frame_of(FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=50 * MIB, topics=[topic]), 11))
        port = reader.socket.getsockname()[1]

        def is_cut_off() -> bool:
            found = psutil.Process(broker.service.pid).net_connections("tcp")
            return not any(one.raddr and one.raddr.port == port for one in found)

        eventually(is_cut_off, "the end of the connection")
        assert victim.peak_rss - before < 16 * MIB
        with pytest.raises((EOFError, ConnectionError)):
            reader.receive_exactly(49 * MIB)


def test_slow_and_stuck_senders_share_what_is_queued(
    own_broker: StartBroker, connections: contextlib.ExitStack
) -> None:
    """Frames that never end take up queued.max.request.bytes and no more; they end as idle, and all are served."""
    limits = {"queued_max_request_bytes": str(4 * MIB), "socket_request_max_bytes": str(4 * MIB)}
    broker = own_broker(**limits, connections_max_idle_ms="1000")
    victim = Victim(broker)
    victim.reset_peak()
    before = victim.rss
    start = (3 * MIB).to_bytes(4, "big") + bytes((0, 0, 0, 9))
    for _ in range(6):
        raw = connections.enter_context(Raw(address(broker)))
        raw.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError, ConnectionError):
            raw.socket.send(start + bytes(2 * MIB))
    late = connections.enter_context(Raw(address(broker)))
    assert is_served(late)
    assert victim.peak_rss - before < 16 * MIB


def test_dribbling_senders_cost_little(own_broker: StartBroker, connections: contextlib.ExitStack) -> None:
    """Slow loris: two hundred connections that send a frame of 90 MB byte by byte, and two hundred half a header."""
    broker = own_broker()
    victim = Victim(broker)
    victim.bystander.start()
    victim.bystander.progresses()
    victim.reset_peak()
    before = victim.rss
    slow = [connections.enter_context(Raw(address(broker))) for _ in range(400)]
    for raw in slow[:200]:
        raw.send((90 * MIB).to_bytes(4, "big") + bytes((0, 0, 0, 9)))
    for raw in slow[200:]:
        raw.send(bytes((0, 0, 1)))
    for _ in range(20):
        for raw in slow[:200]:
            raw.send(b"\0")
    victim.is_unharmed()
    assert victim.peak_rss - before < 32 * MIB
    victim.close()


@pytest.mark.skipif(IS_PORTABLE, reason="a system without limits of descriptors keeps none for files")
def test_descriptors_run_out(own_broker: StartBroker, connections: contextlib.ExitStack) -> None:
    """The broker lives, keeps some for its files, serves those whom it has, and everybody again when there is room."""
    broker = own_broker()
    victim = Victim(broker)
    quick.create_topic(broker.bootstrap, "before", segment_bytes=1500)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "batch.num.messages": 1, **quick.QUIET})
    assert write(producer, 1) == 1
    # The bystander's group asks for its coordinator: what that opens is not to come when there is no room left.
    eventually(lambda: logs_of(victim, "__consumer_offsets") == INTERNAL_PARTITIONS, "all of __consumer_offsets")
    psutil.Process(victim.pid).rlimit(psutil.RLIMIT_NOFILE, (victim.open_files + 100,) * 2)
    clients = [connections.enter_context(Raw(address(broker), timeout_s=0.05)) for _ in range(120)]
    assert 10 < sum(map(is_served, clients)) < 100
    # It has a connection already; each of its records rolls a segment, which takes new files: some are kept for that.
    assert write(producer, 8) == 8
    assert "Cannot accept" in broker.service.output()
    connections.close()
    quick.create_topic(broker.bootstrap, "after")
    quick.fill(broker.bootstrap, "after", ["still there"])
    assert "Traceback" not in broker.service.output()


def logs_of(victim: Victim, topic: str) -> int:
    """How many of a topic's partitions the broker has open."""
    files = [Path(one.path) for one in psutil.Process(victim.pid).open_files()]
    return len({path.parent for path in files if path.parent.name.rpartition("-")[0] == topic})


def write(producer: Producer, count: int) -> int:
    """How many of `count` records were acknowledged; the others say why not."""
    errors: list[object] = []
    for _ in range(count):
        producer.produce("before", b"x" * 1000, on_delivery=lambda error, _: errors.append(error))
        producer.poll(0)
    left = producer.flush(30)
    print(left, [str(error) for error in errors if error is not None][:3])
    return errors.count(None)


def test_a_thousand_idle_connections(own_broker: StartBroker, connections: contextlib.ExitStack) -> None:
    """They cost some kilobytes each, and are all served still."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    broker = own_broker()
    victim = Victim(broker)
    before = victim.rss
    idle = []
    for _ in range(1000):
        idle.append(connections.enter_context(Raw(address(broker))))
        assert is_served(idle[-1])
    print(f"{(victim.rss - before) / MIB:.1f} MiB more, {victim.rss / MIB:.1f} MiB in all")
    assert victim.rss - before < 32 * MIB
    assert victim.rss < 150 * MIB
    assert is_served(idle[0])
