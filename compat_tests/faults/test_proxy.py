"""The proxies forward whole frames, recognize who is connected, and cut or lose exactly what they are asked to."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from compat_tests.faults.proxy import CLIENTS, UNKNOWN, Cut, Network
from compat_tests.overload.raw import framed
from compat_tests.support.waiting import eventually
from kpybroker.wire.api import ApiKey
from kpybroker.wire.headers import RequestHeader, encode_request_header

PRODUCE, METADATA = 0, 3
DEADLINE_S = 60.0
SILENCE_S = 0.1


class Echo:
    """Responds to every request with its correlation id and remembers their keys."""

    def __init__(self, port: int = 0) -> None:
        self.got: list[int] = []
        self.served = threading.Semaphore(0)
        self.is_silent = False
        self._connections: list[socket.socket] = []
        self._socket = socket.create_server(("127.0.0.1", port))
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rwb") as stream:
            while size := stream.read(4):
                frame = stream.read(int.from_bytes(size, "big"))
                self.got.append(int.from_bytes(frame[:2], "big"))
                if self.is_silent:
                    continue
                stream.write(framed(frame[4:8]))
                stream.flush()
                self.served.release()

    def wait(self, count: int) -> None:
        for _ in range(count):
            assert self.served.acquire(timeout=DEADLINE_S)

    def close(self) -> None:
        """As a process does that dies."""
        for one in (self._socket, *self._connections):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


class Asking:
    def __init__(self, port: int, name: str | None = "2") -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), DEADLINE_S)
        self._name = name
        self.number = 0

    def send(self, key: int = METADATA) -> None:
        self.number += 1
        self._socket.sendall(framed(encode_request_header(RequestHeader(key, 1, self.number, self._name))))

    def response(self, timeout_s: float = DEADLINE_S) -> int | None:
        """The next response's number; None when the connection has ended."""
        self._socket.settimeout(timeout_s)
        try:
            data = self._socket.recv(8)
        except ConnectionError:
            return None
        return int.from_bytes(data[4:], "big") if data else None

    def is_silent(self) -> bool:
        try:
            self.response(SILENCE_S)
        except TimeoutError:
            return True
        return False


@pytest.fixture
def echo() -> Iterator[Echo]:
    server = Echo()
    yield server
    server.close()


@pytest.fixture
def network() -> Iterator[Network]:
    made = Network()
    yield made
    made.close()


def test_a_controllers_orders_are_kept_for_who_wants_to_repeat_them(network: Network, echo: Echo) -> None:
    asking = Asking(network.proxy(1, echo.port))
    for key in (METADATA, ApiKey.UPDATE_METADATA, ApiKey.LEADER_AND_ISR):
        asking.send(key)
        asking.response()
    frames = network.orders(2, 1)
    assert [frame[4:6] for frame in frames] == [
        key.to_bytes(2, "big") for key in (ApiKey.UPDATE_METADATA, ApiKey.LEADER_AND_ISR)
    ]
    assert all(frame == framed(frame[4:]) for frame in frames)
    assert network.orders(3, 1) == []


def test_what_clients_ask_is_kept_for_who_listens(network: Network, echo: Echo) -> None:
    network.listening = frozenset((int(ApiKey.HEARTBEAT),))
    asking, peer = Asking(network.proxy(1, echo.port, CLIENTS)), Asking(network.proxy(2, echo.port))
    network.lose_responses(CLIENTS, 1, {ApiKey.HEARTBEAT}, count=1)
    peer.send(ApiKey.HEARTBEAT)
    assert peer.response() == 1
    asking.send(METADATA)
    assert asking.response() == 1
    asking.send(ApiKey.HEARTBEAT)
    assert asking.response() is None, "it is lost, and was carried out"
    (exchange,) = network.exchanges
    assert (exchange.broker, exchange.request[4:6], exchange.response) == (
        1,
        ApiKey.HEARTBEAT.to_bytes(2, "big"),
        framed((2).to_bytes(4, "big")),
    )
    assert exchange.sent_ns < exchange.reported_ns


def test_what_was_listened_to_and_got_no_response_is_kept_without_it(network: Network, echo: Echo) -> None:
    network.listening = frozenset((ApiKey.HEARTBEAT,))
    asking = Asking(network.proxy(1, echo.port, CLIENTS))
    echo.is_silent = True
    asking.send(ApiKey.HEARTBEAT)
    eventually(lambda: echo.got, "the request")
    network.cut(CLIENTS, 1, Cut.RESET)
    eventually(lambda: network.exchanges, "its end")
    (exchange,) = network.exchanges
    assert (exchange.broker, exchange.request[4:6], exchange.response) == (1, ApiKey.HEARTBEAT.to_bytes(2, "big"), None)
    assert exchange.sent_ns < exchange.reported_ns


def test_requests_and_responses_pass(network: Network, echo: Echo) -> None:
    asking = Asking(network.proxy(1, echo.port, CLIENTS))
    for number in (1, 2, 3):
        asking.send()
        assert asking.response() == number


@pytest.mark.parametrize(
    ("name", "source"), [("2", 2), ("broker-3-fetcher-0", 3), ("console", UNKNOWN), (None, UNKNOWN)]
)
def test_a_peer_is_known_by_its_client_id(network: Network, echo: Echo, name: str | None, source: int | str) -> None:
    port = network.proxy(1, echo.port)
    network.cut(source, 1, Cut.RESET)
    asking = Asking(port, name)
    asking.send()
    assert asking.response() is None
    assert network.names == {source: {name or ""}}


def test_what_is_sent_into_a_stalled_way_arrives_when_it_is_healed(network: Network, echo: Echo) -> None:
    port = network.proxy(1, echo.port)
    cut, other = Asking(port, "2"), Asking(port, "3")
    cut.send()
    assert cut.response() == 1
    echo.wait(1)
    network.cut(2, 1, Cut.STALL)
    cut.send(PRODUCE)
    assert cut.is_silent()
    other.send()
    assert other.response() == 1
    assert PRODUCE not in echo.got
    network.heal()
    assert cut.response() == 2
    assert PRODUCE in echo.got


def test_requests_arrive_where_only_responses_are_stalled(network: Network, echo: Echo) -> None:
    network.cut(CLIENTS, 1, Cut.STALL_RESPONSES)
    asking = Asking(network.proxy(1, echo.port, CLIENTS))
    asking.send()
    echo.wait(1)
    assert asking.is_silent()
    network.heal()
    assert asking.response() == 1


def test_no_one_hears_of_a_death_through_a_cut(network: Network, echo: Echo) -> None:
    asking = Asking(network.proxy(1, echo.port, CLIENTS))
    asking.send()
    assert asking.response() == 1
    network.cut(CLIENTS, 1, Cut.STALL)
    echo.close()
    assert asking.is_silent()


def test_no_connection_is_accepted_while_nothing_listens_behind(network: Network, echo: Echo) -> None:
    port = network.proxy(1, echo.port, CLIENTS)
    asking = Asking(port)
    asking.send()
    assert asking.response() == 1
    echo.close()
    assert asking.response() is None
    with pytest.raises(ConnectionRefusedError):
        Asking(port)
    another = Echo(echo.port)
    eventually(lambda: can_connect(port), "the door is open")
    again = Asking(port)
    again.send()
    assert again.response() == 1
    another.close()


def can_connect(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_connections_of_a_reset_way_end_and_new_ones_too_until_it_is_healed(network: Network, echo: Echo) -> None:
    port = network.proxy(1, echo.port, CLIENTS)
    before = Asking(port)
    before.send()
    assert before.response() == 1
    network.cut(CLIENTS, 1, Cut.RESET)
    assert before.response() is None
    during = Asking(port)
    during.send()
    assert during.response() is None
    network.heal()
    after = Asking(port)
    after.send()
    assert after.response() == 1


def test_a_response_is_lost_after_its_request_was_carried_out(network: Network, echo: Echo) -> None:
    port = network.proxy(1, echo.port, CLIENTS)
    network.lose_responses(CLIENTS, 1, {PRODUCE}, count=1)
    asking = Asking(port)
    asking.send(METADATA)
    assert asking.response() == 1
    asking.send(PRODUCE)
    assert asking.response() is None
    assert echo.got == [METADATA, PRODUCE]
    assert network.lost_responses == {PRODUCE: 1}
    again = Asking(port)
    again.send(PRODUCE)
    assert again.response() == 1
