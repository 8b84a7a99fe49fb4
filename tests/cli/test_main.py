"""The command line from outside: processes, what they print, how they end."""

from __future__ import annotations

import json
import os
import re
import shlex
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
from tests.support.network.ports import free_port

READY = re.compile(r"kpybroker ready at (\S+):(\d+)\s")
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


def first_line(process: subprocess.Popen[str]) -> str:
    """The ready line; empty if the process ends before it."""
    assert process.stdout is not None
    return process.stdout.readline()


@contextmanager
def ready(*arguments: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str, int]]:
    """A broker that has printed its ready line, the first on standard output, with the address in it."""
    process = start(*arguments, **environment)
    try:
        match = READY.match(first_line(process))
        assert match is not None, f"not ready: {process.communicate()}"
        yield process, match[1], int(match[2])
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def two_lines(err: str) -> tuple[str, str]:
    cause, fix = err.splitlines()
    assert cause.startswith("kpybroker: ")
    assert fix.startswith("fix: ")
    return cause, fix


def last_two_lines(err: str) -> tuple[str, str]:
    """Of a start that failed after it had logged something."""
    return two_lines("\n".join(err.splitlines()[-2:]))


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
    assert (process.returncode, out) == (0, "")
    assert err.splitlines()[-1].endswith("[KafkaServer id=0] shut down completed (kafka.server.KafkaServer)")
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
    with ready("server", str(file), KAFKA_OPTS="-Dx") as (process, _, _):
        process.terminate()
        _, err = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 0
    assert "[KafkaServer id=4] started" in err
    assert "num.io.thread is not a configuration key of Kafka 3.9 or 4.3 and has no effect" in err
    assert "; did you mean num.io.threads?" in err
    assert "KAFKA_OPTS has no effect" in err


def test_the_ready_line_is_alone_on_standard_output_and_the_banner_for_people_is_not(tmp_path: Path) -> None:
    with ready("dev", "--port", "0", "--data-dir", str(tmp_path), "--log-level", "DEBUG") as (process, host, port):
        process.terminate()
        out, err = process.communicate(timeout=SECONDS_MAX)
    assert out == ""
    assert f"kcat -P -b {host}:{port} -t demo" in err


def test_the_ready_line_of_a_cluster_has_all_bootstrap_servers(tmp_path: Path) -> None:
    process = start("dev", "--port", "0", "--data-dir", str(tmp_path), "--brokers", "3")
    line = first_line(process)
    process.terminate()
    process.communicate(timeout=SECONDS_MAX)
    match = re.fullmatch(r"kpybroker ready at (\S+) bootstrap\.servers=(\S+)\n", line)
    assert match is not None
    servers = match[2].split(",")
    assert servers[0] == match[1]
    assert len(set(servers)) == 3


def test_in_json_every_line_of_both_outputs_is_an_object(tmp_path: Path) -> None:
    place = ("--port", "0", "--data-dir", str(tmp_path / "data"))
    process = start("dev", *place, "--log-format", "json", "--brokers", "2", "--override", "num.partition=3")
    said = json.loads(first_line(process))
    process.terminate()
    out, err = process.communicate(timeout=SECONDS_MAX)
    assert (process.returncode, out) == (0, "")
    assert (said["event"], said["pid"]) == ("ready", process.pid)
    assert said["bootstrapServers"].split(",") == [broker["listeners"]["PLAINTEXT"] for broker in said["brokers"]]
    assert [broker["nodeId"] for broker in said["brokers"]] == [0, 1]
    messages = [json.loads(line)["message"] for line in err.splitlines()]
    assert "[KafkaServer id=1] started" in messages
    assert "num.partition is not a configuration key" in messages[0]
    assert "shut down completed" in messages[-1]


@pytest.mark.parametrize(
    ("arguments", "code", "cause"),
    [
        (["dev", "--port", "x"], 2, "'x' is not a whole number from 0 to 65535"),
        (["dev", "--override", "num.partitions=x"], 2, "Invalid value x for configuration num.partitions"),
        (["dev", "--ephemeral", "--host", "192.0.2.1"], 5, "192.0.2.1:9092 cannot be bound"),
        (["server", "/no/such/file"], 2, "/no/such/file cannot be read"),
    ],
)
@pytest.mark.parametrize("option", [["--log-format", "json"], ["--log-format=json"]], ids=["two words", "one word"])
def test_in_json_an_error_is_an_object_too(arguments: list[str], option: list[str], code: int, cause: str) -> None:
    returned, out, err = finish(*arguments, *option)
    assert (returned, out) == (code, "")
    last = [json.loads(line) for line in err.splitlines()][-1]
    assert (last["level"], last["exitCode"]) == ("FATAL", code)
    assert cause in last["message"]
    assert last["fix"]


@pytest.mark.parametrize("arguments", [[], ["log"]])
def test_without_a_command_the_help_is_printed_as_help(arguments: list[str]) -> None:
    _, out, err = finish(*arguments)
    said = (out + err).splitlines()  # click before 8.2 prints it to standard output
    assert said[0].startswith(f"Usage: {' '.join(['kpybroker', *arguments])} [OPTIONS] COMMAND")
    assert "Commands:" in said
    assert "fix:" not in out + err


@pytest.mark.parametrize(
    ("arguments", "cause", "fix"),
    [
        (["--port", "abc"], "Invalid value for '--port': 'abc' is not a whole number from 0 to 65535.", "--help"),
        (
            ["--port", "65534", "--brokers", "3"],
            "--brokers 3 takes the ports 65534 to 65536, and the last port is 65535",
            "choose a --port up to 65533, or 0 for any free ones",
        ),
        (["--brokers", "3", "--override", "log.dirs=/x"], "--override log.dirs is for one broker", "--data-dir"),
        (["--brokers", "3", "--override", "broker.id=1"], "--override broker.id is for one broker", "leave out"),
        (
            ["--brokers", "3", "--override", "zookeeper.connect=h:1"],
            "has its coordination embedded",
            "kpybroker server",
        ),
        (["--data-dir", "/x", "--override", "log.dir=/y"], "both name a data directory", "leave one"),
        (["--ephemeral", "--override", "log.dir=/y"], "--ephemeral keeps nothing, yet --override log.dir", "leave one"),
    ],
)
def test_an_error_blames_what_is_wrong(arguments: list[str], cause: str, fix: str) -> None:
    code, out, err = finish("dev", *arguments)
    assert (code, out) == (2, "")
    said = two_lines(err)
    assert cause in said[0]
    assert fix in said[1]


@pytest.mark.parametrize("command", [["dev"], ["server"]])
@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("authorizer.class.name=com.example.Authorizer", "=kafka.security.authorizer.AclAuthorizer"),
        ("super.users=User:admin", "only where every client that reaches this broker may do everything"),
    ],
)
def test_security_that_is_not_served_is_refused(command: list[str], setting: str, expected: str) -> None:
    code, out, err = finish(*command, "--override", setting)
    assert (code, out) == (2, "")
    cause, fix = two_lines(err)
    assert "not served yet: " in cause
    assert expected in fix


def test_a_listener_with_tls_needs_a_key_store(tmp_path: Path) -> None:
    settings = ["listeners=SSL://127.0.0.1:0", "security.inter.broker.protocol=SSL", f"log.dirs={tmp_path}"]
    code, out, err = finish("server", *(part for one in settings for part in ("--override", one)))
    assert (code, out) == (2, "")
    cause, fix = two_lines("\n".join(err.splitlines()[-2:]))  # after the line on the tree, where stores may be set
    assert cause == "kpybroker: listener SSL: there is no key store: clients would not know whom they talk to"
    assert "set ssl.keystore.location" in fix


def test_a_failed_start_says_its_cause_and_nothing_of_a_stop(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = ("dev", "--port", str(port), "--data-dir", str(tmp_path), "--log-level", "INFO")
        code, out, err = finish(*command)
    assert (code, out) == (5, "")
    assert "shut" not in err
    assert err.splitlines()[-2].startswith(f"kpybroker: port {port} is taken")


def test_a_file_of_something_else_is_no_server_properties(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("hello world\n")
    code, _, err = finish("server", str(tmp_path / "notes"))
    assert code == 2
    assert "is not a server.properties file: none of its keys is one of Kafka's" in two_lines(err)[0]


def test_another_name_of_the_directory_or_of_the_id_is_enough(tmp_path: Path) -> None:
    """Not refused because of a default of `dev` for the first name."""
    others = ("--override", f"log.dir={tmp_path / 'data'}", "--override", "node.id=4")
    with ready("dev", "--port", "0", *others) as (process, _, _):
        process.terminate()
        process.communicate(timeout=SECONDS_MAX)
    assert "broker.id=4" in (tmp_path / "data" / "meta.properties").read_text()


def test_a_taken_port(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = finish("dev", "--port", str(port), "--data-dir", str(tmp_path))
    assert code == 5
    assert f"port {port} is taken" in last_two_lines(err)[0]


def test_a_locked_directory_and_one_of_another_broker(tmp_path: Path) -> None:
    place = ("--data-dir", str(tmp_path / "data"))
    with ready("dev", "--port", "0", *place):
        code, _, err = finish("dev", "--port", "0", *place)
        assert code == 4
        assert "is in use by another broker" in last_two_lines(err)[0]
    code, _, err = finish("dev", "--port", "0", *place, "--override", "broker.id=5")
    assert code == 7
    last_two_lines(err)


def test_an_unreachable_zookeeper(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        address = f"127.0.0.1:{deaf.getsockname()[1]}"
    zookeeper = ("--override", f"zookeeper.connect={address}", "--override", "zookeeper.connection.timeout.ms=500")
    code, _, err = finish("dev", "--port", "0", "--data-dir", str(tmp_path), *zookeeper)
    assert code == 6
    assert f"ZooKeeper at {address} cannot be reached" in last_two_lines(err)[0]


def test_a_directory_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, _, err = finish("dev", "--port", "0", "--data-dir", str(tmp_path / "file" / "data"))
    assert code == 3
    assert "file" in last_two_lines(err)[0]


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
    monkeypatch.setattr(command_line, "_leave", lambda code: None)  # this process goes on
    for command in ("dev", "server"):
        monkeypatch.setattr(f"kpybroker.cli.{command}.set_up_logging", lambda *args, **kwargs: None)
    with pytest.raises(SystemExit, check=lambda error: error.code == 2):
        command_line.main()
    two_lines(capsys.readouterr().err)


@pytest.mark.parametrize("closed", [1, 2], ids=["standard output", "standard error"])
def test_a_broker_runs_without_one_of_its_outputs(tmp_path: Path, closed: int) -> None:
    shell = f"exec {shlex.quote(sys.executable)} -m kpybroker dev --port 0 --data-dir {tmp_path} {closed}>&-"
    process = subprocess.Popen(["sh", "-c", shell], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    output = process.stdout if closed == 2 else process.stderr
    assert output is not None
    said = next((line for line in output if "ready at" in line or "stop     Ctrl-C" in line), None)
    process.terminate()
    _, err = process.communicate(timeout=SECONDS_MAX)
    assert said is not None
    assert (process.returncode, "Traceback" in err) == (0, False)


def test_the_start_of_a_cluster_blames_the_port_before_it_stops_the_others(tmp_path: Path) -> None:
    first = free_port()
    port = first + 1
    with socket.create_server(("127.0.0.1", port)):
        code, out, err = finish("dev", "--brokers", "2", "--port", str(first), "--data-dir", str(tmp_path))
    assert (code, out) == (5, "")
    said = [line for line in err.splitlines() if "is taken" in line or "shut down completed" in line]
    assert [f"port {port} is taken" in line for line in said] == [True, False, True]
    assert last_two_lines(err)[0] == said[-1]


def test_a_single_broker_keeps_away_from_the_data_of_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "broker-0").mkdir()
    (tmp_path / "broker-0" / "meta.properties").write_text("version=0\n")
    code, _, err = finish("dev", "--port", "0", "--data-dir", str(tmp_path))
    assert code == 2
    assert f"{tmp_path} holds the data of a cluster" in two_lines(err)[0]
    assert {path.name for path in tmp_path.iterdir()} == {"broker-0"}


@pytest.mark.parametrize("directory", ["", " ", "a,b"])
def test_what_is_not_one_directory_is_refused(directory: str) -> None:
    code, _, err = finish("dev", "--port", "0", "--data-dir", directory)
    assert code == 2
    assert f"--data-dir '{directory}' is not one directory" in two_lines(err)[0]
