"""A broker or a command that tests fork (`tests/support/programs/forks.py`) is what a process that was started is."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from compat_tests.support.command_line import CommandLine
from compat_tests.support.quick import create_topic
from compat_tests.support.services import Broker, kpybroker_executable
from compat_tests.support.waiting import eventually
from tests.support.programs.forks import OTHER_BUILD, QUICK_JVMS, can_fork, forks

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere brokers are started")


def test_brokers_and_commands_do_what_those_do_that_are_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[list[str]] = []
    done: list[tuple[int, str, str]] = []
    for is_forked in (True, False):
        if not is_forked:
            monkeypatch.delenv(QUICK_JVMS)
        broker = Broker("kpybroker", tmp_path / f"{is_forked}", None, {})
        broker.start()
        assert Path(f"/proc/{broker.service.pid}/status").exists()
        create_topic(broker.bootstrap, "t")
        for words in (["topic", "list"], ["topic", "produce", "t"], ["topic", "describe", "none"]):
            ran = CommandLine(broker.bootstrap).run(*words, stdin="value\n", code=None)
            done.append((ran.code, ran.out, ran.err))
        broker.stop()
        text = broker.service.output().replace(str(broker.port), "PORT").replace(str(broker.data_dir), "DATA")
        said.append([re.sub(r"\d+", "N", re.sub(r"id=\S+|[\w-]{22}", "ID", line)) for line in text.splitlines()])
    assert sorted(set(said[0])) == sorted(set(said[1]))
    assert done[:3] == done[3:]
    assert [code == 0 for code, _, _ in done[:3]] == [True, True, False]


def test_it_has_the_limits_and_the_environment_of_its_start_and_its_exit_code(tmp_path: Path) -> None:
    environment = {**os.environ, "KAFKA_BROKER_ID": "seven"}
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (512 * 1024, before[1]))
    try:
        for arguments in (["server", str(tmp_path / "none.properties")], ["--version"]):
            with (tmp_path / "log").open("wb") as log:
                forked = forks().start(arguments, tmp_path, environment, log.fileno())
            plain = subprocess.run(
                [kpybroker_executable(), *arguments], cwd=tmp_path, env=environment, capture_output=True, check=False
            )
            assert forked.wait(60) == plain.returncode
            assert (tmp_path / "log").read_bytes() == plain.stdout + plain.stderr
        with (tmp_path / "log").open("wb") as log:
            forked = forks().start(["dev", "--port", "0", "--ephemeral"], tmp_path, environment, log.fileno())
        limits = Path(f"/proc/{forked.pid}/limits")
        eventually(lambda: re.search(r"Max core file size +524288 ", limits.read_text()), "the limit of its start")
        forked.kill()
        assert (forked.wait(60), forked.poll()) == (-signal.SIGKILL, -signal.SIGKILL)
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, before)


def test_what_imports_have_read_is_not_changed_by_a_fork() -> None:
    assert can_fork({**os.environ, "KAFKA_OPTS": "-D"})
    assert not can_fork({**os.environ, "KPYBROKER_PORTABLE": "1"})
    assert not can_fork({**os.environ, OTHER_BUILD: "/other"})


def test_none_is_left_when_the_tests_end(tmp_path: Path) -> None:
    """Also when they are killed."""
    program = (
        "import os, sys, signal\n"
        "from pathlib import Path\n"
        "from tests.support.programs.forks import forks\n"
        "log = open(os.devnull, 'wb')\n"
        "one = forks().start(['dev', '--port', '0', '--ephemeral'], Path('.'), os.environ, log.fileno())\n"
        "print(one.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    eventually(lambda: not Path(f"/proc/{done.stdout.strip()}").exists(), "the end of the fork")
