"""The socket of a command that serves: two lines and exit code 5 for what prevents it."""

from __future__ import annotations

import socket

import pytest

from kpybroker.client.connect.errors import CommandError
from kpybroker.client.connect.listening import EXIT_BIND, bound


def test_a_free_port_is_listened_on() -> None:
    with bound("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()[:2]):
        connection, _ = listener.accept()
        connection.close()


def test_a_port_that_is_taken_is_said_with_what_to_do() -> None:
    with bound("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CommandError, match=f"cannot listen on 127.0.0.1:{port}: ") as caught:
            bound("127.0.0.1", port)
    assert (caught.value.fix, caught.value.exit_code) == ("choose another port: --port", EXIT_BIND)


def test_a_host_that_is_not_here_is_said() -> None:
    with pytest.raises(CommandError, match=r"cannot listen on 192\.0\.2\.1:9: ") as caught:
        bound("192.0.2.1", 9)
    assert (caught.value.fix, caught.value.exit_code) == ("check --host", EXIT_BIND)
