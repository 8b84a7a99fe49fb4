"""`kpybroker console` as a process: the ready line, and two lines for what prevents it."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
from confluent_kafka.admin import NewTopic

from kpybroker.client.connect.errors import CommandError
from kpybroker.console import serve
from kpybroker.console.options import ConsoleOptions
from kpybroker.testing import Broker
from tests.console.conftest import settings_for
from tests.support.programs.command_line import invoke

COMMAND = [sys.executable, "-m", "kpybroker", "console", "--port", "0"]


def test_it_serves_until_it_is_stopped(broker: Broker) -> None:
    with subprocess.Popen([*COMMAND, "-b", broker.bootstrap_servers], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert ready.startswith("kpybroker console ready at http://127.0.0.1:")
        with urllib.request.urlopen(ready.split()[-1] + "topics") as page:
            assert b"/topics/orders" in page.read()
        process.send_signal(signal.SIGTERM)
    assert process.returncode in (0, -signal.SIGTERM)


def test_what_strangers_send_is_one_line_of_the_log(broker: Broker) -> None:
    command = [*COMMAND, "-b", broker.bootstrap_servers]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = urlsplit(process.stdout.readline().split()[-1])
        for _ in range(5):
            with socket.create_connection((address.hostname, address.port)) as client:
                client.sendall(b"\x16\x03\x01 no request\r\n\r\n")
                assert client.recv(100).startswith(b"HTTP/1.1 400")
        process.terminate()
        _, errors = process.communicate()
    (line,) = errors.splitlines()
    assert line.startswith("[")
    assert "WARN Invalid HTTP request received" in line


def test_a_taken_port_is_two_lines(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = invoke(monkeypatch, "console", "--port", str(port), "-b", broker.bootstrap_servers)
    assert result.code == 5
    cause, fix = result.err.splitlines()
    assert cause.startswith(f"kpybroker: cannot listen on 127.0.0.1:{port}: ")
    assert fix == "fix: choose another port: --port"


def test_a_wrong_bootstrap_server_is_two_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    result = invoke(monkeypatch, "console", "--port", "0", "-b", "127.0.0.1:1")
    assert result.code == 1
    cause, fix = result.err.splitlines()
    assert cause.startswith("kpybroker: no broker can be reached")
    assert fix.startswith("fix: start the broker")


def test_no_other_host_is_bound_without_a_login() -> None:
    options = ConsoleOptions(settings_for("127.0.0.1:1"), host="0.0.0.0")
    with pytest.raises(CommandError) as caught:
        serve.check(options)
    assert caught.value.exit_code == 2
    serve.check(options._replace(password="secret"))
    serve.check(options._replace(user_header="X-User"))


@pytest.mark.parametrize("content", [None, b"", b"\xff", b"\n"])
def test_a_password_file_must_hold_a_password(
    content: bytes | None, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path_factory.mktemp("password") / "file"
    if content is not None:
        file.write_bytes(content)
    result = invoke(monkeypatch, "console", "--password-file", str(file))
    assert result.code == 2
    assert len(result.err.splitlines()) == 2


def test_a_message_of_50_megabytes_is_cut_in_pages_and_whole_as_a_download(broker: Broker, served: str) -> None:
    admin = broker.admin()
    admin.create_topics([NewTopic("large", 1, config={"max.message.bytes": "60000000"})])["large"].result()
    size = 50_000_000
    producer = broker.producer(message_max_bytes=60_000_000)
    producer.produce("large", b"x" * size)
    producer.flush()
    with urllib.request.urlopen(f"{served}/topics/large/messages") as page:
        listed = page.read()
    assert b"47.7 MiB" in listed
    with urllib.request.urlopen(f"{served}/topics/large/messages/0/0") as page:
        whole = page.read()
    assert b"Only the beginning is shown." in whole
    assert len(listed) < 20_000
    assert len(whole) < 400_000
    read = 0
    with urllib.request.urlopen(f"{served}/topics/large/messages/0/0/raw") as page:
        while chunk := page.read(1 << 20):
            read += len(chunk)
    assert read == size
    (console,) = (child for child in psutil.Process().children() if "console" in child.cmdline())
    status = Path(f"/proc/{console.pid}/status")
    if status.exists():
        peak_kib = int(status.read_text().split("VmHWM:")[1].split()[0])
        assert peak_kib * 1024 < 10 * size
