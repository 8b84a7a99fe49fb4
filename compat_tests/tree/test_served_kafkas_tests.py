"""Kafka 3.9.1's own tests of its ZooKeeper client, on trees of our server; with `--broker=kafka`, on a real one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compat_tests.deps import ROOT, jars_dir
from compat_tests.support.tools import LOG4J, run_process
from compat_tests.support.zookeeper.fresh_trees import fresh_trees

OURS = ROOT / "compat_tests" / "tree" / "kafkas_tests" / "kafka" / "zk" / "EmbeddedZookeeper.java"
TESTS = ("kafka.zookeeper.ZooKeeperClientTest", "kafka.zk.KafkaZkClientTest")
COUNT = 92
DEADLINE_S = 550.0


def run_tests(classes: list[str], *options: str) -> str:
    """What the console of JUnit says of them."""
    path = ":".join([*classes, f"{jars_dir('kafka-tests-3.9.1')}/*", f"{jars_dir('kafka-3.9.1')}/*"])
    java = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Dlog4j.configuration=file:{LOG4J}"]
    junit = ["org.junit.platform.console.ConsoleLauncher", "execute", "--details=tree", "--disable-banner"]
    chosen = [word for name in TESTS for word in ("-c", name)]
    result = run_process([*java, *options, "-cp", path, *junit, *chosen], check=False, deadline_s=DEADLINE_S)
    return result.out + result.err


def count(said: str, what: str) -> int:
    found = re.search(rf"\[ +(\d+) tests {what} ", said)
    assert found, said
    return int(found[1])


@pytest.mark.wide
def test_kafkas_own_tests_of_zookeeper_pass(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    if request.config.getoption("--broker") == "kafka":
        said = run_tests([])
    else:
        run_process(["javac", "-d", str(tmp_path / "classes"), str(OURS)])
        with fresh_trees() as trees:
            said = run_tests([str(tmp_path / "classes")], f"-Dkpybroker.trees={trees.port}")
            assert trees.made >= COUNT
    assert (count(said, "successful"), count(said, "failed")) == (COUNT, 0), said
