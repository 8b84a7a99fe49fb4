"""`kpybroker dev --console`: the console next to the broker, which ends with it in every case."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import psutil
import pytest
import trio
from trio.testing import MockClock

from kpybroker.broker.lifecycle.errors import EXIT_PORT
from kpybroker.cli.children.wishes import CONSOLE
from kpybroker.control.development.security import USERS
from kpybroker.system.sockets import PASSES_SOCKETS
from tests.console.conftest import START_S

DEV = [sys.executable, "-m", "kpybroker", "dev", "--port", "0", "--ephemeral"]


@pytest.mark.skipif(not PASSES_SOCKETS, reason="the console binds its port itself, some time later")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_it_is_there_with_the_broker_and_ends_with_it(number: signal.Signals) -> None:
    command = [*DEV, "--console", "0", "--log-format", "json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        for page, part in (("topics", b"Topics"), ("requests", b"Metadata"), ("faults", b"Add a fault")):
            with urllib.request.urlopen(ready["console"] + page, timeout=START_S) as response:
                assert part in response.read()
        (console,) = psutil.Process(process.pid).children()
        process.send_signal(number)
        assert process.stdout.read() == ""
        assert process.wait(START_S) in (0, -signal.SIGKILL)
        assert psutil.wait_procs([console], START_S)[1] == []
    finally:
        process.kill()
        process.communicate()


def test_a_taken_port_is_two_lines_before_the_broker_starts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run([*DEV, "--console", str(port)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (EXIT_PORT, "")
    cause, fix = done.stderr.splitlines()[-2:]
    assert cause.startswith(f"kpybroker: the console cannot listen on 127.0.0.1:{port}: ")
    assert fix == "fix: choose another port: --console PORT, 0 for a free one"


def test_a_missing_extra_is_two_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(CONSOLE, "packages", ("no_such_package",))
    with pytest.raises(SystemExit) as ended:
        CONSOLE.prepare(0, {})
    assert ended.value.code == 2
    assert "pip install 'kpybroker[console]'" in capsys.readouterr().err


@pytest.mark.skipif(not PASSES_SOCKETS, reason="the console binds its port itself, some time later")
def test_it_logs_in_and_its_arguments_show_no_password() -> None:
    command = [*DEV, "--console", "0", "--log-format", "json", "--sasl", "scram", "--acl"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        with urllib.request.urlopen(ready["console"] + "topics", timeout=START_S) as response:
            assert b"Topics" in response.read()
        (console,) = psutil.Process(process.pid).children()
        arguments = " ".join(console.cmdline())
        assert "--options-from-stdin" in arguments
        assert not [password for password in USERS.values() if password in arguments]
        console.kill()  # it is started again at the same address, and what connects in between waits
        with urllib.request.urlopen(ready["console"] + "topics", timeout=START_S) as response:
            assert b"Topics" in response.read()
        (again,) = psutil.Process(process.pid).children()
        assert again.pid != console.pid
    finally:
        process.terminate()
        process.communicate()


@pytest.mark.skipif(not PASSES_SOCKETS, reason="the console binds its port itself, some time later")
@pytest.mark.parametrize(("command", "runs"), [("raise SystemExit(2)", 1), ("raise SystemExit(1)", 4)])
def test_a_console_that_cannot_begin_does_not_hold_its_port(
    command: str, runs: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = CONSOLE.prepare(0, {})
    port = int(made.url.rstrip("/").rpartition(":")[2])
    log = tmp_path / "runs"
    line = f"open({str(log)!r}, 'a').write('x'); {command}"
    monkeypatch.setattr(made, "command", lambda *_: [sys.executable, "-S", "-c", line])
    trio.run(made.run, "127.0.0.1:1", clock=MockClock(autojump_threshold=0.5))
    assert log.read_text() == "x" * runs
    assert "its port is closed" in caplog.text
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=START_S)
