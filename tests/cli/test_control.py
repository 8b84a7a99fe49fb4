"""`kpybroker dev --control PORT`: the channel from outside, and what a start without it does without."""

from __future__ import annotations

import http.client
import json
import re
import socket
import subprocess
import sys
from typing import Any

import pytest

from tests.cli.test_main import SECONDS_MAX, finish, first_line, last_two_lines, start

READY = re.compile(
    r"kpybroker ready at 127\.0\.0\.1:\d+( bootstrap\.servers=\S+)? control=http://(127\.0\.0\.1):(\d+)\n"
)


def call(host: str, port: int, method: str, **arguments: Any) -> Any:
    connection = http.client.HTTPConnection(host, port, timeout=SECONDS_MAX)
    try:
        connection.request("POST", f"/v1/{method}", json.dumps(arguments))
        response = connection.getresponse()
        assert response.status == 200
        return json.loads(response.read())
    finally:
        connection.close()


@pytest.mark.parametrize("brokers", [1, 2])
def test_a_program_finds_it_in_the_ready_line_and_ends_the_brokers_by_it(brokers: int) -> None:
    process = start("dev", "--port", "0", "--ephemeral", "--control", "0", "--brokers", str(brokers))
    try:
        found = READY.fullmatch(first_line(process))
        assert found is not None
        host, port = found[2], int(found[3])
        assert [one["id"] for one in call(host, port, "status")["brokers"]] == list(range(brokers))
        call(host, port, "advance", ms=86_400_000)
        call(host, port, "stop")
        assert process.wait(SECONDS_MAX) == 0
    finally:
        process.kill()
        process.communicate()


def test_the_ready_line_as_json_has_it_too() -> None:
    process = start("dev", "--port", "0", "--ephemeral", "--control", "0", "--log-format", "json")
    try:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", json.loads(first_line(process))["control"])
    finally:
        process.kill()
        process.communicate()


def test_a_port_that_is_taken_ends_the_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, out, err = finish("dev", "--port", "0", "--ephemeral", "--control", str(port))
    assert (code, out) == (5, "")
    cause, fix = last_two_lines(err)
    assert cause.startswith(f"kpybroker: the control channel cannot be opened at 127.0.0.1:{port}: ")
    assert "--control PORT" in fix


def test_a_start_without_it_imports_nothing_of_it() -> None:
    program = (
        "import sys; from kpybroker.cli.run import announce; import kpybroker.cli.run as run;"
        "run.announce = lambda *_, **__: print(*sys.modules, flush=True);"
        "from kpybroker.cli.main import main; sys.argv = ['kpybroker', 'dev', '--port', '0', '--ephemeral']; main()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        modules = set(first_line(process).split())
        process.terminate()
    assert "kpybroker.control.hosted" in modules
    unwanted = (
        "h11",
        "kpybroker.control.server",
        "kpybroker.control.methods",
        "kpybroker.control.requests",
        "kpybroker.control.levers",
        "kpybroker.control.rules",
        "kpybroker.testing",
        "difflib",
    )
    assert [name for name in modules if name.startswith(unwanted)] == []
