"""The properties of several brokers from those of one."""

from __future__ import annotations

import os
from collections.abc import Mapping

import pytest

from kpybroker.cli.processes.derive import NotDerivable, connected, derive, own_log_directory, serving
from kpybroker.config.broker import BrokerConfig

FILE = {"broker.id": "0", "listeners": "PLAINTEXT://127.0.0.1:9092", "log.dirs": "/var/lib/kpybroker"}


def column(key: str, props: Mapping[str, str], count: int = 3, stored_id: int | None = None) -> list[str | None]:
    return [one.get(key) for one in derive({**FILE, **props}, count, stored_id)]


def test_the_first_broker_is_the_one_of_the_file() -> None:
    props = {**FILE, "broker.id": "7", "kpybroker.metrics.port": "9600", "num.partitions": "3"}
    assert derive(props, 3)[0] == {**props, "node.id": "7"}


@pytest.mark.parametrize(
    ("key", "props", "values"),
    [
        ("broker.id", {"broker.id": "7"}, ["7", "8", "9"]),
        ("node.id", {"broker.id": "7"}, ["7", "8", "9"]),
        (
            "listeners",
            {"listeners": "PLAINTEXT://:9092,SSL://[::1]:9192"},
            [
                "PLAINTEXT://:9092,SSL://[::1]:9192",
                "PLAINTEXT://:9093,SSL://[::1]:9193",
                "PLAINTEXT://:9094,SSL://[::1]:9194",
            ],
        ),
        ("listeners", {"listeners": "PLAINTEXT://127.0.0.1:0"}, ["PLAINTEXT://127.0.0.1:0"] * 3),
        (
            "advertised.listeners",
            {"advertised.listeners": "PLAINTEXT://kafka.example.com:19092"},
            [f"PLAINTEXT://kafka.example.com:{port}" for port in (19092, 19093, 19094)],
        ),
        ("advertised.listeners", {}, [None] * 3),
        ("log.dirs", {}, ["/var/lib/kpybroker", "/var/lib/kpybroker-1", "/var/lib/kpybroker-2"]),
        ("log.dirs", {"log.dirs": "/a/,/b"}, ["/a/,/b", "/a-1,/b-1", "/a-2,/b-2"]),
        ("log.dirs", {"log.dirs": "/data/broker-0"}, ["/data/broker-0", "/data/broker-1", "/data/broker-2"]),
        (
            "log.dirs",
            {"log.dirs": "/data/broker-7", "broker.id": "7"},
            ["/data/broker-7", "/data/broker-8", "/data/broker-9"],
        ),
        ("kpybroker.metrics.port", {"kpybroker.metrics.port": "9600"}, ["9600", "9601", "9602"]),
        ("kpybroker.metrics.port", {"kpybroker.metrics.port": "0"}, ["0", "0", "0"]),
        ("kpybroker.log.dir", {"kpybroker.log.dir": "/log"}, ["/log", "/log/broker-1", "/log/broker-2"]),
        (
            "kafka.graphite.metrics.group",
            {"kafka.graphite.metrics.reporter.enabled": "true", "kafka.graphite.metrics.group": "kafka"},
            ["kafka", "kafka-1", "kafka-2"],
        ),
        ("num.partitions", {"num.partitions": "3"}, ["3", "3", "3"]),
    ],
)
def test_each_further_one_counts_up(key: str, props: Mapping[str, str], values: list[str | None]) -> None:
    assert column(key, props) == values


def test_log_dir_is_as_good_as_log_dirs() -> None:
    props = {"broker.id": "0", "log.dir": "/data"}
    assert derive(props, 2)[1]["log.dirs"] == "/data-1"


def test_without_an_id_the_one_of_the_directories_counts_or_0() -> None:
    props = {"listeners": FILE["listeners"], "log.dirs": FILE["log.dirs"]}
    assert [one["broker.id"] for one in derive(props, 2)] == ["0", "1"]
    assert [one["broker.id"] for one in derive(props, 2, stored_id=1001)] == ["1001", "1002"]


def test_with_a_zookeeper_of_other_brokers_an_id_is_needed() -> None:
    with pytest.raises(NotDerivable, match=r"broker\.id, which is not set"):
        derive({"zookeeper.connect": "zk:2181", "log.dirs": "/data"}, 2)


@pytest.mark.parametrize(
    ("props", "cause"),
    [
        (
            {"listeners": "PLAINTEXT://:9092,SSL://:9093"},
            "PLAINTEXT of broker 1 would be at port 9093, as SSL of broker 0",
        ),
        (
            {"kpybroker.metrics.port": "9094"},
            r"kpybroker\.metrics\.port of broker 0 would be at port 9094|PLAINTEXT of broker 2 would be at port 9094",
        ),
        ({"kpybroker.zookeeper.port": "9093"}, r"at port 9093, as kpybroker\.zookeeper\.port of broker 0"),
        ({"listeners": "PLAINTEXT://:65534"}, "the last broker would have 65536"),
        ({"log.dirs": "/a,/a-1"}, r"log\.dirs of broker 0 and of broker 1 would both have /a-1"),
    ],
)
def test_what_would_collide_is_refused(props: Mapping[str, str], cause: str) -> None:
    with pytest.raises(NotDerivable, match=cause):
        derive({**FILE, **props}, 3)


def test_one_port_at_several_addresses_is_no_collision() -> None:
    props = {"listeners": "PLAINTEXT://127.0.0.1:9092,OTHER://127.0.0.2:9093"}
    props["listener.security.protocol.map"] = "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT"
    assert column("listeners", props, 2)[1] == "PLAINTEXT://127.0.0.1:9093,OTHER://127.0.0.2:9094"


def test_a_volume_has_no_place_next_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "ismount", lambda path: path == "/var/lib/kpybroker")
    with pytest.raises(NotDerivable, match="is a mount point") as caught:
        derive(FILE, 2)
    assert "log.dirs=/var/lib/kpybroker/broker-0" in caught.value.fix
    assert column("log.dirs", {"log.dirs": "/var/lib/kpybroker/broker-0"}, 2)[1] == "/var/lib/kpybroker/broker-1"


def test_those_that_do_not_keep_the_tree_connect_to_it() -> None:
    props = {**FILE, "kpybroker.zookeeper.port": "2181", "zookeeper.session.timeout.ms": "6000"}
    props["zookeeper.ssl.client.enable"] = "true"
    assert connected(props, "127.0.0.1:2181") == {
        **FILE,
        "zookeeper.session.timeout.ms": "6000",
        "zookeeper.connect": "127.0.0.1:2181",
        "kpybroker.new.cluster.features": "newest",  # as of a tree that is embedded
    }
    wanted = {**props, "kpybroker.new.cluster.features": "none"}
    assert connected(wanted, "127.0.0.1:2181")["kpybroker.new.cluster.features"] == "none"


def test_the_one_that_keeps_it_serves_it() -> None:
    props = {**FILE, "zookeeper.set.acl": "true", "zookeeper.session.timeout.ms": "6000"}
    served = serving(props, "127.0.0.1", 41_000)
    assert served == {
        **FILE,
        "zookeeper.session.timeout.ms": "6000",
        "kpybroker.zookeeper.host": "127.0.0.1",
        "kpybroker.zookeeper.port": "41000",
    }
    BrokerConfig(served)


def test_without_a_directory_for_its_log_files_there_is_none() -> None:
    assert own_log_directory(FILE, 1, 1) == {}
