"""`config list|describe|get|set|unset` against a broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpybroker.client.actions.resources import Change, parse_changes
from kpybroker.client.connect.errors import CommandError
from kpybroker.client.connect.settings import ENVIRONMENT
from kpybroker.config.groups.keys import GROUP_KEYS
from tests.client.conftest import Run
from tests.support.programs.command_line import invoke
from tests.support.programs.samples import dev_broker


def test_a_topics_setting_is_set_read_and_unset(run: Run, name: str) -> None:
    run("topic", "create", name)
    done = run("config", "set", "topic", name, "retention.ms=5000", "cleanup.policy=compact")
    assert [line.split() for line in done.lines[1:]] == [
        [name, "retention.ms", "5000", "set"],
        [name, "cleanup.policy", "compact", "set"],
    ]
    assert run("config", "get", "topic", name, "retention.ms").out == b"5000\n"
    assert run("config", "get", "topics", name, "retention.ms", "segment.ms").lines[1:] == [
        "retention.ms  5000       topic",
        "segment.ms    604800000  default",
    ]
    assert {"NAME": name, "KEY": "retention.ms", "VALUE": "5000", "SOURCE": "topic"} in run(
        "config", "list", "topic"
    ).table
    assert run("config", "unset", "topic", name, "retention.ms").code == 0
    assert run("config", "get", "topic", name, "retention.ms").out == b"604800000\n"
    assert run("config", "describe", "topic", name).lines[1:] == ["cleanup.policy  compact  topic"]
    (row,) = run("config", "describe", "topic", name, "--all", "--format", "json").json
    assert (row["type"], row["name"], len(row["configs"]) > 20) == ("topic", name, True)


def test_a_brokers_setting_and_that_of_all_brokers(run: Run) -> None:
    assert run("config", "set", "broker", "0", "log.cleaner.threads=2").code == 0
    assert run("config", "set", "broker", "default", "message.max.bytes=2000000").code == 0
    rows = run("config", "list", "broker").table
    assert rows == [
        {"NAME": "0", "KEY": "log.cleaner.threads", "VALUE": "2", "SOURCE": "broker"},
        {"NAME": "default", "KEY": "message.max.bytes", "VALUE": "2000000", "SOURCE": "cluster-default"},
    ]
    assert run("config", "get", "broker", "0", "message.max.bytes").out == b"2000000\n"
    assert "message.max.bytes" in run("config", "describe", "broker", "default").text
    assert run("config", "unset", "broker", "0", "log.cleaner.threads").code == 0
    assert run("config", "unset", "broker", "default", "message.max.bytes").code == 0
    assert run("config", "list", "broker").err == "nothing is set for a broker\n"


SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


def test_a_groups_settings_are_set_read_and_unset(run: Run, name: str) -> None:
    assert run("config", "list", "group", name).err == "nothing is set for a group\n"
    done = run("config", "set", "group", name, f"{SESSION}=50000", f"{HEARTBEAT}=200")
    assert [line.split() for line in done.lines[1:]] == [
        [name, SESSION, "50000", "set"],
        [name, HEARTBEAT, "200", "set"],
    ]
    assert run("config", "set", "groups", f"{name}-2", f"{HEARTBEAT}=300").code == 0
    assert run("config", "list", "groups", f"{name}*").table == [
        {"NAME": name, "KEY": HEARTBEAT, "VALUE": "200", "SOURCE": "group"},
        {"NAME": name, "KEY": SESSION, "VALUE": "50000", "SOURCE": "group"},
        {"NAME": f"{name}-2", "KEY": HEARTBEAT, "VALUE": "300", "SOURCE": "group"},
    ]
    assert run("config", "get", "group", name, SESSION).out == b"50000\n"
    assert run("config", "unset", "group", name, SESSION).code == 0
    assert run("config", "get", "group", name, SESSION).out == b"45000\n"
    assert run("config", "describe", "group", name).lines[1:] == [f"{HEARTBEAT}  200    group"]
    both = run("config", "describe", "group", name, f"{name}-2", "--all", "--format", "json").json
    assert [(row["type"], row["name"]) for row in both] == [("group", name), ("group", f"{name}-2")]
    shown = {row["key"]: row["source"] for row in both[0]["configs"]}
    assert shown.keys() == GROUP_KEYS.keys()
    assert {key: source for key, source in shown.items() if key.startswith("consumer.")} == {
        "consumer.assignment.interval.ms": "server.properties",
        HEARTBEAT: "group",
        SESSION: "default",
    }
    for group in (name, f"{name}-2"):
        assert run("config", "unset", "group", group, HEARTBEAT).code == 0
    assert run("config", "describe", "group", name).err == "nothing is set; --all shows the defaults\n"
    assert run("config", "list", "group", f"{name}*").err == "nothing is set for a group\n"


def test_what_no_group_may_have_changes_nothing(run: Run, name: str) -> None:
    low = run("config", "set", "group", name, f"{SESSION}=50000", f"{HEARTBEAT}=1")
    assert (low.code, f"{HEARTBEAT} must be greater than or equal to" in low.err) == (1, True)
    unknown = run("config", "set", "group", name, "retention.ms=1")
    assert (unknown.code, "Unknown group config name: retention.ms" in unknown.err) == (1, True)
    assert "it has no key retention.ms" in run("config", "get", "group", name, "retention.ms").err
    assert run("config", "list", "group", f"{name}*").err == "nothing is set for a group\n"


def test_a_subscription_to_client_metrics_is_set_read_and_unset(run: Run, name: str) -> None:
    assert run("config", "list", "client-metrics", name).err == "nothing is set for client metrics\n"
    done = run("config", "set", "client-metrics", name, "metrics=org.apache.kafka.", "match=client_id=app-.*")
    assert [line.split() for line in done.lines[1:]] == [
        [name, "metrics", "org.apache.kafka.", "set"],
        [name, "match", "client_id=app-.*", "set"],
    ]
    assert run("config", "list", "client-metrics", f"{name}*").table == [
        {"NAME": name, "KEY": "match", "VALUE": "client_id=app-.*", "SOURCE": "client-metrics"},
        {"NAME": name, "KEY": "metrics", "VALUE": "org.apache.kafka.", "SOURCE": "client-metrics"},
    ]
    assert run("config", "get", "client-metrics", name, "interval.ms").out == b"300000\n"
    assert run("config", "describe", "client-metrics", name, "--all").lines[1:] == [
        "interval.ms  300000             default",
        "match        client_id=app-.*   client-metrics",
        "metrics      org.apache.kafka.  client-metrics",
    ]
    bad = run("config", "set", "client-metrics", name, "interval.ms=1")
    assert (bad.code, "interval must be between 100 and 3600000" in bad.err) == (1, True)
    assert run("config", "unset", "client-metrics", name, "metrics", "match").code == 0
    assert run("config", "list", "client-metrics", f"{name}*").err == "nothing is set for client metrics\n"


def test_a_cluster_without_settings_of_groups_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with dev_broker(tmp_path / "data", "--kafka-version", "3.9") as broker:
        monkeypatch.setenv(ENVIRONMENT, broker.bootstrap)
        for words, text in (
            (("list", "group"), "does not serve ListConfigResources"),
            (("describe", "group", "g"), "Unexpected resource type UNKNOWN"),
            (("set", "group", "g", f"{SESSION}=50000"), "Unknown resource type 32"),
            (("set", "client-metrics", "s", "metrics=a"), "but resource type is CLIENT_METRICS"),
        ):
            result = invoke(monkeypatch, "config", *words)
            assert (result.code, text in result.err) == (1, True), result.err


def test_settings_of_several_brokers_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's library takes one broker a call."""
    with dev_broker(tmp_path / "data", "--brokers", "2") as cluster:
        monkeypatch.setenv(ENVIRONMENT, cluster.bootstrap)
        assert invoke(monkeypatch, "config", "set", "broker", "1", "log.cleaner.threads=2").code == 0
        listed = invoke(monkeypatch, "config", "list", "broker")
        assert (listed.code, "log.cleaner.threads" in listed.out.decode()) == (0, True), listed.err


def test_failures_are_named(run: Run, name: str) -> None:
    run("topic", "create", name)
    bad = run("config", "set", "topic", name, "retention.ms=x", "cleanup.policy=compact", "--format", "json")
    assert bad.code == 1
    assert {row["status"] for row in bad.json} == {"failed"}
    assert run("config", "get", "topic", name, "cleanup.policy").out == b"delete\n"
    assert "has no key nope" in run("config", "get", "topic", name, "nope").err
    assert run("config", "describe", "topic", f"{name}-none").code == 1
    missing = run("config", "describe", "broker", "0", "77")
    assert (missing.code, "the cluster has no broker 77" in missing.err) == (1, True)
    assert "no broker 77" in run("config", "set", "broker", "77", "log.cleaner.threads=2").err
    assert run("config", "set", "broker", "x", "a=1").code == 2
    assert run("config", "set", "broker", "default", "listeners=x").code == 1
    assert run("config", "get", "nonsense", "x", "y").code == 2


def test_changes_are_parsed() -> None:
    assert parse_changes(["a=1=2"], ["b"], ["c=3"], ["d="]) == [
        Change("set", "a", "1=2"),
        Change("append", "c", "3"),
        Change("subtract", "d", ""),
        Change("delete", "b"),
    ]
    for bad in (["=1"], ["a"]):
        with pytest.raises(CommandError):
            parse_changes(bad)
