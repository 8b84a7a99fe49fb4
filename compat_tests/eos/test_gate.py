"""The gate holds back what it should, counts who lives, and lets everything else through."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from compat_tests.eos.gate import Gate
from compat_tests.overload.raw import Raw, frame_of
from compat_tests.support.waiting import eventually
from kpybroker.wire.messages.end_txn import EndTxnRequest
from kpybroker.wire.messages.produce import ProduceRequest
from tests.support.network.ports import free_port

VERSION = 4


def end_of(transactional_id: str) -> bytes:
    return frame_of(EndTxnRequest(transactional_id=transactional_id, producer_id=1, committed=True), VERSION)


class Rig:
    """Clients on one side of a gate, each with its connection at the broker's side."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._door = free_port()
        self.gate = Gate()
        self.gate.lead(self._door, listener.getsockname()[1])

    def connect(self) -> tuple[Raw, Raw]:
        client = Raw(("127.0.0.1", self._door))
        broker = Raw.__new__(Raw)
        broker.socket = self._listener.accept()[0]
        broker.socket.settimeout(30)
        return client, broker


@pytest.fixture
def rig() -> Iterator[Rig]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        made = Rig(listener)
        yield made
        made.gate.close()


def test_the_end_of_one_id_comes_late_and_all_else_at_once(rig: Rig) -> None:
    (held, at_broker), (other, others_at_broker) = rig.connect(), rig.connect()
    with rig.gate.closed("a"):
        held.send(end_of("a"))
        eventually(lambda: rig.gate.held["a"] == 1, "a request that is held")
        other.send(end_of("b"))
        assert others_at_broker.receive_exactly(len(end_of("b"))) == end_of("b")
        at_broker.socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            at_broker.socket.recv(1)
    at_broker.socket.settimeout(30)
    assert at_broker.receive_exactly(len(end_of("a"))) == end_of("a")
    at_broker.send(b"reply!")
    assert held.receive_exactly(6) == b"reply!"
    held.socket.close()
    assert at_broker.is_closed()


def test_who_has_died_is_not_counted(rig: Rig) -> None:
    client, at_broker = rig.connect()
    with rig.gate.closed("a"):
        with rig.gate.closed("b"):
            client.send(end_of("b") + end_of("a"))
            eventually(lambda: rig.gate.held["b"] == 1, "a request that is held")
            client.socket.close()
        assert at_broker.is_closed()
    assert rig.gate.held == {"b": 1}


def test_what_is_swallowed_never_arrives_and_the_next_one_does(rig: Rig) -> None:
    client, at_broker = rig.connect()
    with rig.gate.swallowing("sink-"):
        client.send(end_of("sink-1") + end_of("other"))
        assert at_broker.receive_exactly(len(end_of("other"))) == end_of("other")
    client.send(end_of("sink-2"))
    assert at_broker.receive_exactly(len(end_of("sink-2"))) == end_of("sink-2")
    assert rig.gate.held == {"sink-1": 1}


def test_a_number_of_requests_with_records_go_through_and_the_next_one_comes_late(rig: Rig) -> None:
    (client, at_broker), (other, others_at_broker) = rig.connect(), rig.connect()
    records = [frame_of(ProduceRequest(acks=1, timeout_ms=n), 9) for n in range(3)]
    with rig.gate.producing(2):
        client.send(b"".join(records))
        assert at_broker.receive_exactly(len(records[0] + records[1])) == records[0] + records[1]
        other.send(end_of("a"))
        assert others_at_broker.receive_exactly(len(end_of("a"))) == end_of("a")
        at_broker.socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            at_broker.socket.recv(1)
    at_broker.socket.settimeout(30)
    assert at_broker.receive_exactly(len(records[2])) == records[2]
