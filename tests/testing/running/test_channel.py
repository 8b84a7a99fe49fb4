"""The channel's client: any number of threads, connections that end, errors of the right class."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from kpybroker.testing.errors import BrokerGone, TestingError, UsageError, WaitTimeout
from kpybroker.testing.running.channel import IDLE_CONNECTIONS_MAX, Channel
from tests.support.programs.leftovers import in_own_process


class Handler(BaseHTTPRequestHandler):
    """`echo` returns its arguments; `fail` responds with the given status; `close` ends the connection afterwards."""

    protocol_version = "HTTP/1.1"
    connections: list[Any]
    entered: threading.Event
    go_on: threading.Event

    def setup(self) -> None:
        super().setup()
        self.connections.append(self.client_address)

    def do_POST(self) -> None:
        arguments = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method = self.path.removeprefix("/v1/")
        if method == "wait":
            self.entered.set()
            assert self.go_on.wait(120)
        status, result = 200, arguments
        if method == "fail":
            status, result = arguments["status"], {"error": {"cause": "it is so", "fix": "change it"}}
        if method == "hang_up":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        body = json.dumps(result).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        if method == "close":
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served() -> Iterator[tuple[Channel, type[Handler]]]:
    class Own(Handler):
        connections, entered, go_on = [], threading.Event(), threading.Event()

    class Server(ThreadingHTTPServer):
        request_queue_size = 128  # connections that arrive at once

    server = Server(("127.0.0.1", 0), Own)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    channel = Channel("127.0.0.1", server.server_port, lambda: None)
    try:
        yield channel, Own
    finally:
        channel.close()
        server.shutdown()
        server.server_close()
        thread.join()


def test_calls_one_after_the_other_share_a_connection() -> None:
    with served() as (channel, handler):
        for number in range(5):
            assert channel.call("echo", number=number) == {"number": number}
        assert len(handler.connections) == 1


def test_a_call_that_waits_is_in_no_other_ones_way() -> None:
    with served() as (channel, handler):
        waiting = threading.Thread(target=channel.call, args=("wait",))
        waiting.start()
        assert handler.entered.wait(120)
        assert channel.call("echo") == {}
        handler.go_on.set()
        waiting.join()
        assert len(handler.connections) == 2


def test_many_threads_get_their_own_results_and_few_connections_are_kept() -> None:
    with served() as (channel, _):
        got: list[tuple[Any, Any]] = []

        def run(thread: int) -> None:
            for number in range(20):
                got.append((channel.call("echo", of=[thread, number]), {"of": [thread, number]}))

        threads = [threading.Thread(target=run, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(got) == 400
        assert all(result == wanted for result, wanted in got)
        assert len(channel._idle) <= IDLE_CONNECTIONS_MAX


def test_a_connection_that_has_ended_in_between_is_replaced() -> None:
    with served() as (channel, handler):
        for _ in range(3):
            assert channel.call("close") == {}
        assert len(handler.connections) == 3


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, UsageError), (404, UsageError), (409, UsageError), (408, WaitTimeout), (500, TestingError)],
)
def test_a_refusal_is_raised_with_cause_and_fix(status: int, kind: type[TestingError]) -> None:
    with served() as (channel, _):
        with pytest.raises(TestingError) as caught:
            channel.call("fail", status=status)
        assert type(caught.value) is kind
        assert str(caught.value) == "it is so\nfix: change it"


def test_a_call_that_takes_too_long_is_an_error_and_its_connection_is_not_used_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kpybroker.testing.running.channel.CALL_S_MAX", 0.05)
    with served() as (channel, handler):
        with pytest.raises(TestingError, match=r"/v1/wait has not returned after 0.05 s"):
            channel.call("wait")
        handler.go_on.set()
        assert channel.call("echo", a=1) == {"a": 1}


def test_a_broker_that_has_ended_says_why() -> None:
    with served() as (channel, _):
        address = channel.address
    with pytest.raises(BrokerGone, match="does not respond"):
        Channel(*address, lambda: None).call("echo")
    gone = BrokerGone("the process ended with exit code -9", "start it again")
    with pytest.raises(BrokerGone, match="exit code -9"):
        Channel(*address, lambda: gone).call("echo")


def test_a_broker_that_hangs_up_is_asked_once_more_and_no_more() -> None:
    with served() as (channel, handler):
        channel.call("echo")
        with pytest.raises(BrokerGone):
            channel.call("hang_up")
        assert len(handler.connections) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_does_not_use_the_connections_of_its_parent() -> None:
    """Of a process without threads of clients: the fork would have the locks that they hold."""
    in_own_process(fork_and_call)


def fork_and_call() -> None:
    with served() as (channel, handler):
        channel.call("echo")
        pid = os.fork()
        if pid == 0:  # pragma: no cover -- in the child
            try:
                os._exit(0 if channel.call("echo", a=1) == {"a": 1} else 1)
            finally:
                os._exit(2)
        assert os.waitpid(pid, 0)[1] == 0
        assert channel.call("echo", a=2) == {"a": 2}
        assert len(handler.connections) == 2


def test_nothing_is_kept_after_close() -> None:
    with served() as (channel, handler):
        waiting = threading.Thread(target=channel.call, args=("wait",))
        waiting.start()
        assert handler.entered.wait(120)
        channel.call("echo")
        channel.close()
        handler.go_on.set()
        waiting.join()
        assert channel._idle == []
