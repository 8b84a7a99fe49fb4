"""`server FILE --processes 2` and `dev --brokers 2 --processes` with stock clients: one cluster, supervised."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from compat_tests.cluster.traffic import Reader, Writer, verify
from compat_tests.processes.conftest import DEADLINE_S, Processes, StartProcesses, is_running
from compat_tests.support.clients import Client
from compat_tests.support.quick import admin_client, create_topic, fill, read
from compat_tests.support.records import make_records
from compat_tests.support.waiting import eventually
from kpybroker.config.sources.properties import load_properties
from tests.support.programs.signals import freeze

PAIR = [("t", 0), ("t", 1)]


def leaders(bootstrap: str, topic: str = "t") -> dict[int, int]:
    found = admin_client(bootstrap).list_topics(topic, timeout=120).topics[topic].partitions
    return {number: one.leader for number, one in found.items()}


def wait_for_leaders(bootstrap: str, wanted: dict[int, int]) -> None:
    eventually(lambda: leaders(bootstrap) == wanted, f"the leaders {wanted}", DEADLINE_S)


def in_sync(admin: AdminClient, topic: str) -> bool:
    partitions = admin.list_topics(topic, timeout=120).topics[topic].partitions.values()
    return all(sorted(one.isrs) == sorted(one.replicas) for one in partitions)


def test_two_brokers_are_one_cluster_and_one_that_is_killed_comes_back(
    start: StartProcesses, properties: Path, tmp_path: Path
) -> None:
    pair = start("server", str(properties), "--processes", "2")
    port = int(load_properties(str(properties))["listeners"].rpartition(":")[2])
    assert [(one["nodeId"], one["listeners"]) for one in pair.ready["brokers"]] == [
        (4, {"PLAINTEXT": f"127.0.0.1:{port}"}),
        (5, {"PLAINTEXT": f"127.0.0.1:{port + 1}"}),
    ]
    assert pair.ready["logDirs"] == [str(tmp_path / "data"), str(tmp_path / "data-5")]
    assert (tmp_path / "data" / "coordination.sqlite").exists()
    assert {line["broker"] for line in pair.lines() if "started" in line["message"]} == {4, 5}
    through_one = f"127.0.0.1:{port}"
    create_topic(through_one, "t", 2)
    assert set(leaders(through_one).values()) == {4, 5}
    fill(through_one, "t", [f"{n}" for n in range(100)], partition=0)
    fill(through_one, "t", [f"{n}" for n in range(100)], partition=1)
    pair.kill(5)
    wait_for_leaders(through_one, leaders(through_one))
    assert len(read(through_one, PAIR, 200, group="g")) == 200
    records = make_records("java", 20)
    client = Client("confluent", f"127.0.0.1:{port + 1}")
    create_topic(through_one, "u")
    client.produce("u", records)
    assert len(client.consume(["u"], len(records))) == len(records)
    pair.stop()
    assert pair.running() == []
    assert pair.rest_of_output() == b""
    ends = [line["broker"] for line in pair.lines() if line["message"].endswith("shut down completed")]
    assert ends == [5, 4]


def test_nothing_outlives_a_supervisor_that_is_killed(start: StartProcesses) -> None:
    pair = start("dev", "--brokers", "2", "--processes", "--port", "0", "--ephemeral")
    assert pair.running() == [0, 1]
    pair.signal(signal.SIGKILL)
    pair.wait()
    eventually(lambda: pair.running() == [], "the end of the brokers", DEADLINE_S)


@pytest.mark.wide
def test_a_second_signal_ends_all_at_once(start: StartProcesses) -> None:
    pair = start("dev", "--brokers", "2", "--processes", "--port", "0", "--ephemeral")
    for pid in pair.pids.values():
        freeze(pid)
    directories = [Path(one) for one in pair.ready["logDirs"]]
    pair.signal(signal.SIGTERM)
    eventually(lambda: _insist(pair), "the end of the supervisor", DEADLINE_S)
    assert pair.wait() == 128 + signal.SIGTERM
    eventually(lambda: pair.running() == [], "the end of the brokers", DEADLINE_S)
    assert not any(path.exists() for path in directories)


def _insist(pair: Processes) -> bool:
    """Two signals of a kind count as one until Python has handled the first."""
    pair.signal(signal.SIGTERM)
    return not is_running(pair.pid)


@pytest.mark.wide
@pytest.mark.parametrize("key", ["listeners", "log.dirs"])
def test_a_broker_that_cannot_start_ends_all_with_its_two_lines(
    start: StartProcesses, properties: Path, tmp_path: Path, key: str
) -> None:
    port = int(load_properties(str(properties))["listeners"].rpartition(":")[2])
    with socket.socket() as taken:
        if key == "listeners":
            taken.bind(("127.0.0.1", port + 1))
            taken.listen()
        else:
            (tmp_path / "data-5").write_text("not a directory")
        pair = start("server", str(properties), "--processes", "2", ready=False)
        assert pair.wait() == (5 if key == "listeners" else 3)
    (fatal,) = [line for line in pair.lines() if "exitCode" in line]
    assert fatal["fix"]
    assert pair.rest_of_output() == b""


@pytest.mark.wide
def test_what_one_process_wrote_is_there_with_two_and_with_one_again(start: StartProcesses, properties: Path) -> None:
    with_one = start("server", str(properties))
    at = with_one.ready["address"]
    create_topic(at, "t", 1)
    fill(at, "t", ["one", "two"])
    with_one.stop()
    pair = start("server", str(properties), "--processes", "2")
    assert [message.value() for message in read(at, [("t", 0)], 2)] == [b"one", b"two"]
    create_topic(at, "both", 2, 2)
    assert set(leaders(at, "both").values()) == {4, 5}
    fill(at, "t", ["three"])
    pair.stop()
    start("server", str(properties))
    assert len(read(at, [("t", 0)], 3)) == 3


@pytest.mark.wide
def test_dev_finds_its_data_with_and_without_processes(start: StartProcesses, tmp_path: Path) -> None:
    common = ("dev", "--brokers", "2", "--port", "0", "--data-dir", str(tmp_path / "data"))
    for number, options in enumerate([(), ("--processes",), ()]):
        pair = start(*common, *options)
        if number == 0:
            create_topic(pair.bootstrap, "t", 2, 2)
            fill(pair.bootstrap, "t", ["one", "two"])
        assert len(read(pair.bootstrap, PAIR, 2)) == 2
        if options:
            what = "both brokers lead"
            eventually(lambda: set(leaders(pair.bootstrap).values()) == {0, 1}, what, DEADLINE_S)
        pair.stop()


def test_nothing_acknowledged_is_lost_when_each_broker_is_killed_under_load(start: StartProcesses) -> None:
    pair = start("dev", "--brokers", "2", "--processes", "--port", "0", "--ephemeral", "--log-level", "INFO")
    create_topic(pair.bootstrap, "t", 4, 2)
    admin = admin_client(pair.bootstrap)
    writer, reader = Writer(pair.bootstrap, "t", 4), Reader(pair.bootstrap, "t", "g")
    writer.start()
    reader.start()
    for victim in (1, 0):
        writer.wait_for_more(1_000, DEADLINE_S)
        pair.kill(victim)
        writer.wait_for_more(1_000, DEADLINE_S)
        eventually(lambda: in_sync(admin, "t"), "all replicas in sync", DEADLINE_S)
    writer.stop()
    reader.stop()
    verify(pair.bootstrap, writer, reader)
    pair.stop()
