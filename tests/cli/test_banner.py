"""The ready line, for programs, and the banner, for people."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

import pytest

from kpybroker.cli.banner import Address, Facts, Node, banner, durability, reachable, ready_json, ready_line

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
    assert "kcat -P -b 127.0.0.1:9092,127.0.0.1:9093 -t demo" in text


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
