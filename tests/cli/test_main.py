"""The command line from outside: processes, what they print, how they end."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kpybroker import __version__
from kpybroker.cli import main as command_line
from kpybroker.cli.exit_codes import EXIT_CODES

READY = re.compile(r"kpybroker ready at (\S+):(\d+)\n")
SECONDS_MAX = 60


def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("KAFKA_")}
    return subprocess.Popen(
        [sys.executable, "-m", "kpybroker", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=quiet | environment,
    )


def finish(*arguments: str, **environment: str) -> tuple[int, str, str]:
    """(exit code, standard output, standard error) of a command that ends by itself."""
    process = start(*arguments, **environment)
    out, err = process.communicate(timeout=SECONDS_MAX)
    return process.returncode, out, err


@contextmanager
def ready(*arguments: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str, int]]:
    """A broker that has printed its first banner line, with the address in it."""
    process = start(*arguments, **environment)
    assert process.stdout is not None
    try:
        for line in process.stdout:
            match = READY.fullmatch(line)
            if match:
                yield process, match[1], int(match[2])
                return
        raise AssertionError(f"not ready: {process.communicate()}")
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def two_lines(err: str) -> tuple[str, str]:
    cause, fix = err.splitlines()
    assert cause.startswith("kpybroker: ")
    assert fix.startswith("fix: ")
    return cause, fix


def test_the_version() -> None:
    assert finish("--version") == (0, f"kpybroker {__version__}\n", "")


def test_help_names_every_exit_code() -> None:
    code, out, _ = finish("dev", "--help")
    assert code == 0
    for number, meaning in EXIT_CODES:
        assert f"{number}  {meaning}" in out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_dev_starts_at_its_address_and_stops_on_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    with ready("dev", "--port", "0", "--data-dir", str(tmp_path / "data")) as (process, host, port):
        socket.create_connection((host, port), timeout=SECONDS_MAX).close()
        process.send_signal(number)
        out, err = process.communicate(timeout=SECONDS_MAX)
    assert (process.returncode, err) == (0, "")
    assert "[KafkaServer id=0] shut down completed (kafka.server.KafkaServer)" in out
    assert (tmp_path / "data" / "meta.properties").exists()


def test_a_cluster_stays_itself_when_its_directories_are_named_in_another_order(tmp_path: Path) -> None:
    for order in ("ab", "ba"):
        directories = ",".join(str(tmp_path / name) for name in order)
        with ready("dev", "--port", "0", "--override", f"log.dirs={directories}") as (process, _, _):
            process.terminate()
            process.communicate(timeout=SECONDS_MAX)
        assert process.returncode == 0
    assert [path.parent.name for path in tmp_path.glob("*/coordination.sqlite")] == ["a"]


def test_ephemeral_leaves_nothing(tmp_path: Path) -> None:
    with ready("dev", "--port", "0", "--ephemeral", TMPDIR=str(tmp_path)) as (process, _, _):
        assert len(list(tmp_path.iterdir())) == 1
        process.terminate()
        process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_server_says_started_and_names_keys_without_effect(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"broker.id=4\nlisteners=PLAINTEXT://127.0.0.1:0\nlog.dirs={tmp_path / 'data'}\nnum.io.thread=8\n")
    process = start("server", str(file), "--log-format", "json", KAFKA_OPTS="-Dx")
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if READY.fullmatch(line):
            break
    process.terminate()
    process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 0
    text = "".join(lines)
    assert '"message": "[KafkaServer id=4] started"' in text
    assert (
        "num.io.thread is not a configuration key of Kafka 3.9 and has no effect; did you mean num.io.threads?" in text
    )
    assert "KAFKA_OPTS has no effect" in text


def test_a_taken_port(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = finish("dev", "--port", str(port), "--data-dir", str(tmp_path))
    assert code == 5
    assert f"port {port} is taken" in two_lines(err)[0]


def test_a_locked_directory_and_one_of_another_broker(tmp_path: Path) -> None:
    place = ("--data-dir", str(tmp_path / "data"))
    with ready("dev", "--port", "0", *place):
        code, _, err = finish("dev", "--port", "0", *place)
        assert code == 4
        assert "is in use by another broker" in two_lines(err)[0]
    code, _, err = finish("dev", "--port", "0", *place, "--override", "broker.id=5")
    assert code == 7
    two_lines(err)


def test_an_unreachable_zookeeper(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        address = f"127.0.0.1:{deaf.getsockname()[1]}"
    zookeeper = ("--override", f"zookeeper.connect={address}", "--override", "zookeeper.connection.timeout.ms=500")
    code, _, err = finish("dev", "--port", "0", "--data-dir", str(tmp_path), *zookeeper)
    assert code == 6
    assert f"ZooKeeper at {address} cannot be reached" in two_lines(err)[0]


def test_a_directory_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, _, err = finish("dev", "--port", "0", "--data-dir", str(tmp_path / "file" / "data"))
    assert code == 3
    two_lines(err)


@pytest.mark.parametrize(
    "arguments",
    [
        ["dev", "--port", "x"],
        ["dev", "--nope"],
        ["nope"],
        ["dev", "--override", "num.partitions=x"],
        ["server", "/no/such/file"],
    ],
)
def test_a_bad_command_line(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["kpybroker", *arguments])
    monkeypatch.setattr("kpybroker.cli.dev.set_up_logging", lambda *args, **kwargs: None)
    with pytest.raises(SystemExit, check=lambda error: error.code == 2):
        command_line.main()
    two_lines(capsys.readouterr().err)
