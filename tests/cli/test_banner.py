"""The ready line, for programs, and the banner, for people."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence

import pytest

from kpybroker.cli.banner import (
    OF_A_FILE,
    Address,
    Facts,
    Node,
    banner,
    durability,
    fold,
    reachable,
    ready_json,
    ready_line,
    show,
)
from kpybroker.cli.dev_security import client_lines
from kpybroker.control.development.certificates import TlsFiles
from kpybroker.control.development.security import SecurityOptions

FILES = TlsFiles("/ca", "/broker", "/client")
LOOPBACK = Address("A", "127.0.0.1", 9092)
CLUSTER = [Node(0, [LOOPBACK, Address("B", "127.0.0.1", 9192)]), Node(1, [Address("A", "0.0.0.0", 9093)])]


def facts(nodes: Sequence[Node]) -> Facts:
    return Facts(
        nodes=nodes,
        cluster_id="abc",
        version="9.9",
        log_dirs=["/a", "/b"],
        coordination="embedded",
        ephemeral=False,
        fsync_each=False,
    )


@pytest.mark.parametrize(
    ("address", "line", "typed"),
    [
        (LOOPBACK, "kpybroker ready at 127.0.0.1:9092", "127.0.0.1:9092"),
        (Address("A", "::1", 9092), "kpybroker ready at [::1]:9092", "[::1]:9092"),
        (Address("A", "::", 9092), "kpybroker ready at [::]:9092", "127.0.0.1:9092"),
        (Address("A", "0.0.0.0", 9092), "kpybroker ready at 0.0.0.0:9092", "127.0.0.1:9092"),
    ],
)
def test_the_ready_line_of_one_broker_is_its_address(address: Address, line: str, typed: str) -> None:
    assert ready_line(facts([Node(0, [address])])) == line
    assert reachable(address) == typed


@pytest.mark.parametrize("text", ["127.0.0.1:9092", "[::1]:9092", "kafka.example.com:1"])
def test_an_address_can_be_read_again(text: str) -> None:
    assert str(Address.of("A", text)) == text


def test_brokers_that_are_processes_have_a_pid() -> None:
    (broker,) = json.loads(ready_json(facts([Node(0, [LOOPBACK], pid=7)])))["brokers"]
    assert broker["pid"] == 7


def test_that_of_a_cluster_has_the_bootstrap_servers_in_addition() -> None:
    line = "kpybroker ready at 127.0.0.1:9092 bootstrap.servers=127.0.0.1:9092,127.0.0.1:9093"
    assert ready_line(facts(CLUSTER)) == line


def test_as_json_it_has_what_a_program_needs() -> None:
    line = ready_json(facts(CLUSTER))
    assert "\n" not in line
    assert json.loads(line) == {
        "event": "ready",
        "address": "127.0.0.1:9092",
        "bootstrapServers": "127.0.0.1:9092,127.0.0.1:9093",
        "pid": os.getpid(),
        "version": "9.9",
        "clusterId": "abc",
        "brokers": [
            {"nodeId": 0, "listeners": {"A": "127.0.0.1:9092", "B": "127.0.0.1:9192"}},
            {"nodeId": 1, "listeners": {"A": "0.0.0.0:9093"}},
        ],
        "logDirs": ["/a", "/b"],
        "ephemeral": False,
        "control": None,
        "metrics": [],
        "console": None,
        "registry": None,
        "zookeeper": None,
    }


def test_both_have_the_address_of_the_control_channel() -> None:
    known = facts([Node(0, [LOOPBACK])])._replace(control="http://127.0.0.1:1")
    assert ready_line(known) == "kpybroker ready at 127.0.0.1:9092 control=http://127.0.0.1:1"
    assert json.loads(ready_json(known))["control"] == "http://127.0.0.1:1"


def test_the_ready_line_has_the_addresses_of_registry_and_console() -> None:
    known = facts([Node(0, [LOOPBACK])])._replace(registry="http://127.0.0.1:2", console="http://127.0.0.1:3")
    line = "kpybroker ready at 127.0.0.1:9092 registry=http://127.0.0.1:2 console=http://127.0.0.1:3"
    assert ready_line(known) == line


def test_the_banner_says_where_what_and_how() -> None:
    text = banner(facts([Node(3, [LOOPBACK, Address("B", "127.0.0.1", 9093)])]))
    for part in ("broker   3 of cluster abc, kpybroker 9.9", "/a, /b", "B at 127.0.0.1:9093", "kcat", "PySpark"):
        assert part in text


def test_the_banner_of_a_cluster_names_every_broker_and_every_address() -> None:
    text = banner(facts(CLUSTER))
    assert "brokers  0, 1 of cluster abc" in text
    assert "at       127.0.0.1:9092, 127.0.0.1:9192\n" in text
    assert "kcat -P -b 127.0.0.1:9092 -t demo" in text, "one of them is enough to try"


def test_what_is_durable_depends_on_how_it_was_started() -> None:
    assert durability(ephemeral=True, fsync_each=False).startswith("nothing")
    assert "also after a power cut" in durability(ephemeral=False, fsync_each=True)
    assert "if the broker is killed" in durability(ephemeral=False, fsync_each=False)


def test_both_say_where_the_metrics_are() -> None:
    known = facts(CLUSTER)._replace(metrics=["http://127.0.0.1:9404/metrics", "http://127.0.0.1:9405/metrics"])
    assert json.loads(ready_json(known))["metrics"] == list(known.metrics)
    lines = banner(known).splitlines()
    assert [line.split()[1] for line in lines if line.startswith("  metrics ")] == list(known.metrics)


def test_all_three_say_where_clients_of_zookeeper_connect() -> None:
    known = facts([Node(0, [LOOPBACK])])._replace(zookeeper="127.0.0.1:2181")
    assert ready_line(known) == "kpybroker ready at 127.0.0.1:9092 zookeeper=127.0.0.1:2181"
    assert json.loads(ready_json(known))["zookeeper"] == "127.0.0.1:2181"
    assert "  tree     embedded; for clients of ZooKeeper at 127.0.0.1:2181\n" in banner(known)


LONG = Address("A", "broker-1.kafka.internal.example.com", 29092)
MANY = facts([Node(number, [LONG._replace(port=29092 + number), LOOPBACK]) for number in range(9)])._replace(
    console="http://127.0.0.1:8080",
    registry="http://127.0.0.1:8081",
    log_dirs=[f"/var/lib/kpybroker/broker-{number}" for number in range(9)],
)
SECURED = facts([Node(0, [LOOPBACK])])._replace(
    clients=client_lines("127.0.0.1:9092", SecurityOptions(tls=True, sasl="scram", acl=True), FILES)
)


@pytest.mark.parametrize("known", [facts(CLUSTER), MANY, SECURED], ids=["two", "nine", "secured"])
@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_line_of_the_banner_is_wrapped_inside_an_address(known: Facts, width: int) -> None:
    lines = banner(known, width).splitlines()
    for line in lines:
        if len(line) > width:  # a line of a properties file, or one word
            assert line.startswith(OF_A_FILE) or len(line.removesuffix(" \\").split()) <= 2, line
    words = {word for line in banner(known, 10_000).splitlines() for word in line.split()}
    assert words <= {word for line in lines for word in line.split()}


def test_a_command_that_goes_on_in_the_next_line_is_the_same_command() -> None:
    parts = fold("    kcat     echo hello world && echo again and once more -X a=b && echo -n the end", 36)
    assert [part[13:] for part in parts] == [
        "echo hello world && \\",
        "echo again and once \\",
        "more -X a=b && \\",
        "echo -n the end",
    ]
    kcat = "\n".join(parts)
    done = subprocess.run(["bash", "-c", kcat.removeprefix("    kcat")], capture_output=True, text=True, check=True)
    assert done.stdout == "hello world\nagain and once more -X a=b\nthe end"
    python = "\n".join(fold("    Python   python -c \"import os; print({'a': 'b', 'c': 1}); print('two')\"", 46))
    assert python.count("\n") == 2, python
    command = python.removeprefix("    Python   python").replace("\\\n", "")
    done = subprocess.run(["bash", "-c", sys.executable + command], capture_output=True, text=True, check=True)
    assert done.stdout == "{'a': 'b', 'c': 1}\ntwo\n"


def test_colours_change_no_character_and_are_for_terminals_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = banner(MANY)
    coloured = banner(MANY, coloured=True)
    assert re.sub(r"\x1b\[\d+m", "", coloured) == plain
    assert f"\x1b[32m{LONG}\x1b[0m" in coloured
    assert "  \x1b[1mdata\x1b[0m     /var" in coloured
    show(MANY)
    assert capsys.readouterr().err == f"{plain}\n"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    show(MANY)
    assert capsys.readouterr().err == f"{coloured}\n"
    monkeypatch.setenv("NO_COLOR", "1")
    show(MANY)
    assert capsys.readouterr().err == f"{plain}\n"
