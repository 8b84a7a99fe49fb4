"""sd_notify: what the service manager receives, and when."""

from __future__ import annotations

import logging
import os
import socket
from pathlib import Path

import pytest

from kpybroker.cli.health import notify
from tests.cli.test_main import SECONDS_MAX, ready


def service_manager(address: str) -> socket.socket:
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.settimeout(SECONDS_MAX)
    manager.bind(address)
    return manager


@pytest.mark.not_quick
@pytest.mark.parametrize("brokers", [1, 2])
def test_a_broker_says_when_it_is_ready_and_when_it_stops(tmp_path: Path, brokers: int) -> None:
    path = str(tmp_path / "notify")
    arguments = ("dev", "--port", "0", "--data-dir", str(tmp_path / "data"), "--brokers", str(brokers))
    with service_manager(path) as manager, ready(*arguments, NOTIFY_SOCKET=path) as (process, host, port):
        assert manager.recv(1000) == f"READY=1\nSTATUS=Serving at {host}:{port}".encode()
        process.terminate()
        assert manager.recv(1000) == b"STOPPING=1\nSTATUS=Shutting down"
        process.communicate(timeout=SECONDS_MAX)
        manager.settimeout(0)
        with pytest.raises(BlockingIOError):
            manager.recv(1000)
    assert process.returncode == 0


@pytest.mark.skipif(not hasattr(socket, "SO_PEERCRED"), reason="abstract sockets are Linux's")
def test_an_abstract_socket_is_reached_too() -> None:
    name = f"kpybroker-test-{os.getpid()}"
    with service_manager(f"\0{name}") as manager:
        notify.notify(notify.STOPPING, {"NOTIFY_SOCKET": f"@{name}"})
        assert manager.recv(1000) == notify.STOPPING.encode()


def test_without_a_service_manager_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_socket(*arguments: object) -> None:
        raise AssertionError(f"a socket: {arguments}")

    monkeypatch.setattr(socket, "socket", no_socket)
    notify.notify(notify.STOPPING, {})
    notify.notify(notify.STOPPING, {"NOTIFY_SOCKET": ""})


def test_a_socket_that_is_not_there_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        notify.notify(notify.STOPPING, {"NOTIFY_SOCKET": str(tmp_path / "nowhere")})
    assert "could not be notified: [Errno 2] No such file or directory" in caplog.text
