"""`kpybroker dev --registry`: a registry next to the broker, which ends with it in every case."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import psutil
import pytest

from kpybroker.broker.lifecycle.errors import EXIT_PORT
from kpybroker.control.development.security import USERS
from kpybroker.system.sockets import PASSES_SOCKETS

START_S = 120.0
DEV = [sys.executable, "-m", "kpybroker", "dev", "--port", "0", "--ephemeral"]

pytestmark = pytest.mark.skipif(not PASSES_SOCKETS, reason="the registry binds its port itself, some time later")


@contextmanager
def dev(*options: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """A broker, and its ready line."""
    command = [*DEV, "--registry", "0", "--log-format", "json", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate()


def registered(address: str, subject: str) -> int:
    """The id of a schema, from a registry that may still be about to start: its port is bound."""
    body = {"schema": '"int"'}
    return int(httpx.post(f"{address}subjects/{subject}/versions", json=body, timeout=START_S).json()["id"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_it_is_there_with_the_broker_and_ends_with_it(number: signal.Signals) -> None:
    with dev() as (process, ready):
        assert registered(ready["registry"], "a") == 1
        (child,) = psutil.Process(process.pid).children()
        process.send_signal(number)
        assert process.stdout is not None
        assert process.stdout.read() == "", "one ready line"
        assert process.wait(START_S) in (0, -signal.SIGKILL)
        assert psutil.wait_procs([child], START_S)[1] == []
        with pytest.raises(httpx.TransportError):
            httpx.get(ready["registry"])


def test_the_line_for_people_and_scripts_names_it() -> None:
    command = [*DEV, "--registry", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        (field,) = [part for part in process.stdout.readline().split() if part.startswith("registry=")]
        address = field.removeprefix("registry=")
        assert registered(address, "a") == 1
    finally:
        process.terminate()
        _, log = process.communicate()
    assert f"  registry {address}" in log.splitlines()
    assert "WARN" not in log, "a stop in order is quiet"


def test_it_logs_in_and_its_arguments_show_no_password() -> None:
    with dev("--sasl", "scram", "--acl") as (process, ready):
        assert registered(ready["registry"], "a") == 1
        (child,) = psutil.Process(process.pid).children()
        arguments = " ".join(child.cmdline())
        assert "--options-from-stdin" in arguments
        assert not [password for password in USERS.values() if password in arguments]


def test_it_is_there_with_brokers_in_processes_of_their_own() -> None:
    with dev("--brokers", "2", "--processes") as (process, ready):
        assert registered(ready["registry"], "a") == 1
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGTERM)
        assert process.wait(START_S) == 0
        assert psutil.wait_procs(children, START_S)[1] == []


def test_a_taken_port_is_two_lines_before_the_broker_starts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run([*DEV, "--registry", str(port)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (EXIT_PORT, "")
    cause, fix = done.stderr.splitlines()[-2:]
    assert cause.startswith(f"kpybroker: the registry cannot listen on 127.0.0.1:{port}: ")
    assert fix == "fix: choose another port: --registry PORT, 0 for a free one"
