"""Every command with wrong inputs, and with an output that is full or closed, or without a cluster.

No traceback, no hang, no silent success. `wrong.txt` has the inputs, `commands.txt` a line that works of each command.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from kpybroker.cli.main import cli
from kpybroker.client.connect import profiles
from kpybroker.client.connect.settings import ENVIRONMENT, REGISTRY_ENVIRONMENT
from tests.cli.test_odd_arguments import commands
from tests.support.network.ports import free_port
from tests.support.programs.command_line import invoke
from tests.support.programs.samples import dev_broker

HERE = Path(__file__).parent
LIMIT_S = 120
"""Of a command that hangs; none of them takes a tenth of it."""
FULL = Path("/dev/full")
RUN_UNTIL_STOPPED = {"dev", "server", "console", "registry"}
ASK_NO_CLUSTER = {"profile", "completion", "log", "metrics", "ping", "doctor", "mirror"}
"""Without the line of an unreachable cluster: they ask none, or others than that; `doctor` is for it."""


class Line(NamedTuple):
    """A line of a table."""

    text: str
    code: int
    words: str
    stdin: str
    named: str


def lines(name: str) -> list[Line]:
    found = []
    for text in (HERE / name).read_text(encoding="utf-8").splitlines():
        if not text or text.startswith("#"):
            continue
        command, _, named = text.rpartition(" | ") if " | " in text else (text, "", "")
        code, _, command = command.partition(" ") if command[0].isdigit() else ("0", "", command)
        words, _, stdin = command.partition(" < ")
        found.append(Line(text, int(code), words, stdin and shlex.split(stdin)[0], named))
    return found


WRONG, COMMANDS = lines("wrong.txt"), lines("commands.txt")


class Places(NamedTuple):
    """What stands in braces in the tables."""

    b: str
    t: str
    g: str
    d: str
    log: str
    away: str
    long: str = "x" * 250

    def words(self, text: str) -> list[str]:
        """The arguments of a line; `\\xff` as Python has that byte of an argument."""
        return [_as_argument(word) for word in shlex.split(self.filled(text).replace("\\x", "\\\\x"))]

    def filled(self, text: str) -> str:
        """With what is in braces replaced; other braces stay."""
        for name, value in self._asdict().items():
            text = text.replace(f"{{{name}}}", value)
        return text

    def stdin(self, text: str) -> bytes:
        """The bytes of a line's standard input."""
        return text.encode("latin-1", errors="replace").decode("unicode_escape").encode("latin-1")


def _as_argument(word: str) -> str:
    for byte in ("ff", "fe"):
        word = word.replace(f"\\x{byte}", chr(0xDC00 + int(byte, 16)))
    return word


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    """A broker with a topic of three records, a group, and files."""
    directory = tmp_path_factory.mktemp("walk")
    (directory / "latin.txt").write_bytes(b"bootstrap.servers=\xe9\xff\n")
    (directory / "state-change.log").write_text("")
    with dev_broker(directory / "data") as broker, pytest.MonkeyPatch.context() as patched:
        patched.setenv(ENVIRONMENT, broker.bootstrap)
        assert invoke(patched, "topic", "create", "walked").code == 0
        assert invoke(patched, "topic", "produce", "walked", stdin=b"a\nb\nc\n").code == 0
        assert invoke(patched, "topic", "consume", "walked", "-g", "walkers", "-n", "1").code == 0
        exported = invoke(patched, "offsets", "export", "walkers", "--format", "json")
        (directory / "offsets.json").write_bytes(exported.out)
        log = str(broker.data / "walked-0" / "00000000000000000000.log")
        away = f"127.0.0.1:{free_port()}"
        yield Places(broker.bootstrap, "walked", "walkers", str(directory), log, away)


@pytest.fixture
def own_settings(places: Places, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The broker is the default, and there is one profile."""
    monkeypatch.setenv(ENVIRONMENT, places.b)
    monkeypatch.setenv("APPDATA" if sys.platform == "win32" else "XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv(REGISTRY_ENVIRONMENT, raising=False)
    profiles.save("p", {"bootstrap.servers": "127.0.0.1:9092"})


def test_no_command_is_missing_and_there_are_many_inputs() -> None:
    known = {" ".join(words) for words, _ in commands(cli)} - RUN_UNTIL_STOPPED
    walked = {name for name in known for line in COMMANDS if f"{line.words} ".startswith(f"{name} ")}
    assert known - walked == set()
    assert len(WRONG) > 150


@pytest.mark.parametrize("line", WRONG, ids=lambda line: line.text[:80])
def test_a_wrong_input_is_refused_with_its_reason(
    places: Places, own_settings: None, monkeypatch: pytest.MonkeyPatch, line: Line
) -> None:
    result = invoke(monkeypatch, *places.words(line.words), stdin=places.stdin(line.stdin))
    assert result.code == line.code, result
    assert places.filled(line.named) in result.err
    assert "Traceback" not in result.err
    assert "topsecret" not in result.err
    assert "\x1b" not in result.err


@pytest.mark.parametrize(
    "line", [line for line in COMMANDS if line.words.split()[0] not in ASK_NO_CLUSTER], ids=lambda line: line.words
)
def test_a_cluster_that_is_away_is_an_error_in_two_lines(
    places: Places, own_settings: None, monkeypatch: pytest.MonkeyPatch, line: Line
) -> None:
    words = places.words(line.words)
    result = invoke(monkeypatch, *words, "-b", places.away, "--timeout", "0.5", stdin=places.stdin(line.stdin))
    assert result.code == 1, result
    assert all(row.endswith("failed") for row in result.lines[1:]), result
    said = [one for one in result.err.splitlines() if not one.startswith(("delivered", "not delivered", "stopped"))]
    assert len(said) == 2, result.err
    assert places.away.partition(":")[0] in said[0]
    assert said[1].startswith("fix: ")


SERVER = """
import json, os, signal, sys, traceback
from kpybroker.cli import main
import confluent_kafka.admin, rich.console, rich.table
for line in sys.stdin:
    task = json.loads(line)
    child = os.fork()
    if child == 0:
        signal.alarm(task["limit_s"])
        if task["stdout"] is None:
            reading, out = os.pipe()
            os.close(reading)
        else:
            out = os.open(task["stdout"], os.O_WRONLY | os.O_CREAT)
        os.dup2(os.open(task["stdin"], os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(os.open(task["stderr"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        sys.stdin, sys.argv, code = open(0), ["kpybroker", *task["words"]], 0
        try:
            main.main()
        except SystemExit as ended:
            code = ended.code or 0
        except BaseException:
            traceback.print_exc()
            code = 99
        sys.stderr.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Runs commands in children of one process, which has imported what takes long."""


class Runner(NamedTuple):
    """Of one such process. `run` gives the exit code and standard error."""

    process: subprocess.Popen[str]
    directory: Path

    def run(self, words: list[str], stdin: bytes, stdout: Path | None) -> tuple[int, str]:
        """None is a pipe that no one reads."""
        given, said = self.directory / "stdin", self.directory / "stderr"
        given.write_bytes(stdin)
        out = None if stdout is None else str(stdout)
        task = {"words": words, "stdin": str(given), "stdout": out, "stderr": str(said), "limit_s": LIMIT_S}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{json.dumps(task)}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline()), said.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def runner(places: Places) -> Iterator[Runner]:
    environ = {**os.environ, ENVIRONMENT: places.b, "XDG_CONFIG_HOME": places.d}
    environ.pop(REGISTRY_ENVIRONMENT, None)
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ) as process:
        yield Runner(process, Path(places.d))
        assert process.stdin is not None
        process.stdin.close()


@pytest.mark.not_quick
@pytest.mark.skipif(not FULL.exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize("line", COMMANDS, ids=lambda line: line.words)
def test_an_output_that_is_full_or_closed_ends_it(places: Places, runner: Runner, line: Line) -> None:
    """What prints something fails with a reason where it cannot; where no one reads it, that is no failure."""
    words, stdin = places.words(line.words), places.stdin(line.stdin)
    code, said = runner.run(words, stdin, FULL)
    assert "Traceback" not in said
    assert code in (0, 1, 2), said
    closed, said_then = runner.run(words, stdin, None)
    assert "Traceback" not in said_then
    assert closed in (0, 1, 2, -signal.SIGPIPE), said_then
    if code == 0:
        out = Path(places.d) / "out"
        out.unlink(missing_ok=True)
        runner.run(words, stdin, out)
        assert out.read_bytes() == b"", "it could not print this, and did not say so"


def test_the_table_has_commands_only() -> None:
    context = click.Context(cli)
    for line in (*WRONG, *COMMANDS):
        assert cli.get_command(context, line.words.split()[0]) is not None, line.text
