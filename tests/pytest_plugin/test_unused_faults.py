"""Faults end with the test that made them, however it made them, and one that never acted fails it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.programs.pytest_runs import OTHER_PLUGINS, Run, run_pytest


def outcomes(run: Run) -> dict[str, str]:
    """The name of each test -> how it ended, by `-rA`."""
    return {
        name: what for what, name in re.findall(r"^(PASSED|FAILED|ERROR|SKIPPED) \S+?\.py::(\S+)", run.output, re.M)
    }


PROJECT = """
import unittest

import pytest
from kpybroker.testing import Broker

def ask(broker, topic=None):
    broker.admin(library="confluent-kafka").list_topics(topic, timeout=60)

@pytest.fixture(scope="module")
def slow(kafka_broker):
    return kafka_broker.faults.delay("Metadata", 1)

@pytest.fixture(scope="module")
def idle(kafka_broker):
    kafka_broker.faults.delay("DeleteAcls", 1)

@pytest.fixture
def own(kafka_broker):
    kafka_broker.faults.error("DeleteAcls", "UNKNOWN_SERVER_ERROR")

def nothing_but(broker, *faults):
    return [one.id for one in broker.faults.all()] == [one.id for one in faults]

def test_used_directly(kafka_broker):
    kafka_broker.faults.delay("Metadata", 1)
    ask(kafka_broker)

def test_unused_directly(kafka_broker):
    assert nothing_but(kafka_broker)
    kafka_broker.faults.error("DeleteAcls", "UNKNOWN_SERVER_ERROR")

def test_unused_by_the_fixture(kafka_faults, kafka_broker):
    assert nothing_but(kafka_broker)
    kafka_faults.error("DeleteAcls", "UNKNOWN_SERVER_ERROR")

def test_unused_of_a_fixture_of_the_test(own):
    pass

def test_unused_by_the_channel(kafka_broker):
    assert nothing_but(kafka_broker)
    kafka_broker.channel.call("add_fault", act={"observe": True}, match={"api": "DeleteAcls"})

def test_unused_in_a_broker_of_its_own():
    with Broker(in_thread=True) as broker:
        broker.faults.observe("DeleteAcls")

def test_unused_in_a_broker_of_the_factory(kafka_broker_factory):
    kafka_broker_factory(in_thread=True).faults.observe("DeleteAcls")

def test_a_typo(kafka_broker, kafka_topic):
    kafka_broker.faults.error("Metadata", "UNKNOWN_SERVER_ERROR", topic=kafka_topic + "s")
    ask(kafka_broker, kafka_topic)

def test_expected(kafka_broker):
    kafka_broker.faults.error("DeleteAcls", "UNKNOWN_SERVER_ERROR", expect_unused=True)

def test_a_predicate_that_raises(kafka_broker):
    kafka_broker.faults.delay("Metadata", 1, when=lambda request: request["nope"])
    ask(kafka_broker)

def test_its_own_failure_comes_first(kafka_broker):
    kafka_broker.faults.error("DeleteAcls", "UNKNOWN_SERVER_ERROR")
    assert "own" == "failure"

def test_a_skip_stays_one(kafka_broker):
    kafka_broker.faults.error("DeleteAcls", "UNKNOWN_SERVER_ERROR")
    pytest.skip("for a reason")

class TestUnit(unittest.TestCase):
    def test_unit(self):
        with Broker(in_thread=True) as broker:
            broker.faults.observe("DeleteAcls")

def test_wide_first(slow, kafka_broker):
    assert nothing_but(kafka_broker, slow)
    kafka_broker.faults.delay("ApiVersions", 1)
    ask(kafka_broker)

def test_wide_second(slow, kafka_broker, kafka_faults):
    assert nothing_but(kafka_broker, slow)

def test_wide_third(slow, kafka_broker):
    assert nothing_but(kafka_broker, slow)
    ask(kafka_broker)

def test_wide_and_idle(idle):
    pass
"""
FAILING = {
    "test_unused_directly",
    "test_unused_by_the_fixture",
    "test_unused_of_a_fixture_of_the_test",
    "test_unused_by_the_channel",
    "test_unused_in_a_broker_of_its_own",
    "test_unused_in_a_broker_of_the_factory",
    "test_a_typo",
    "test_a_predicate_that_raises",
    "test_its_own_failure_comes_first",
    "TestUnit::test_unit",
}
BY_THEMSELVES = {"test_a_predicate_that_raises", "test_its_own_failure_comes_first"}
"""They fail also where an unused fault is but a warning."""


def test_a_fault_that_never_acted_fails_its_test_and_no_other(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, PROJECT, "-rA")
    found = outcomes(run)
    assert {name for name, what in found.items() if what == "FAILED"} == FAILING, run.output
    assert {name for name, what in found.items() if what == "ERROR"} == {"test_wide_and_idle"}
    assert run.counts["skipped"] == 1
    assert re.search(r"there is no topic '(test-a-typo-\w+)s': did you mean '\1'", run.output)
    assert "KeyError: 'nope'" in run.output
    assert re.search(r"AssertionError: assert 'own' == 'failure'(.*\n)+?.*has never acted", run.output)
    assert re.search(r"made at \S+test_it\.py:\d+", run.output)


def test_it_can_be_a_warning(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, PROJECT, "-rA", ini="kafka_unused_faults = warn\n")
    assert {name for name, what in outcomes(run).items() if what in ("FAILED", "ERROR")} == BY_THEMSELVES, run.output
    assert run.output.count("UnusedFaultWarning: fault") >= 8
    run = run_pytest(tmp_path, PROJECT, "--kafka-unused-faults=warn", "-k", "unused_directly", "-W", "error")
    assert run.counts["failed"] == 1, run.output
    run = run_pytest(tmp_path, PROJECT, ini="kafka_unused_faults = no\n")
    assert "kafka_unused_faults is 'no': choose fail, warn" in run.output


LEVERS = """
import pytest
from kpybroker.testing import Broker

@pytest.fixture(scope="module")
def old(kafka_broker):
    kafka_broker.cap_versions("3.0")

def oldest(broker):
    broker.admin(library="confluent-kafka").list_topics(timeout=60)
    return broker.requests("Metadata")[-1].version

def test_holds(kafka_broker, kafka_cluster):
    kafka_broker.cap_versions("2.4")
    assert oldest(kafka_broker) == 9
    kafka_cluster.partition([0], [1, 2])
    kafka_cluster[1].pause()
    kafka_cluster[2].pause()
    kafka_cluster[2].resume()

def test_nothing_is_held(kafka_broker, kafka_cluster):
    assert oldest(kafka_broker) == 13
    assert [node.status()["state"] for node in kafka_cluster] == ["up", "up", "up"]
    kafka_cluster.create_topic("t", replication_factor=3)
    kafka_cluster.wait_for(lambda: len(kafka_cluster.topics()["t"].partitions[0].isr) == 3)

def test_a_fixture_holds(old, kafka_broker):
    assert oldest(kafka_broker) == 11
    kafka_broker.cap_versions("2.4", broker=0)

def test_a_broker_ends_while_it_holds():
    with Broker() as broker:
        broker.cap_versions("2.4")
        broker.channel.call("pause", broker=0)
"""


def test_what_else_a_test_holds_back_ends_with_it(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, LEVERS)
    assert run.counts == {"passed": 4}, run.output


LOOPS = """
import pytest
{head}

async def test_used(kafka_broker, kafka_topic):
    kafka_broker.faults.delay("Metadata", 1)
    admin = kafka_broker.admin(library="confluent-kafka")
    await kafka_broker.aio.call(admin.list_topics, kafka_topic, timeout=60)

async def test_unused(kafka_broker):
    assert kafka_broker.faults.all() == []
    kafka_broker.faults.error("DeleteAcls", "UNKNOWN_SERVER_ERROR")
"""


def test_so_it_is_in_coroutines(tmp_path: Path) -> None:
    for plugin in ("asyncio", "trio"):
        tests = LOOPS.format(head=f"pytestmark = pytest.mark.{plugin}")
        run = run_pytest(tmp_path, tests, "-rA", others=OTHER_PLUGINS)
        assert outcomes(run) == {"test_used": "PASSED", "test_unused": "FAILED"}, run.output


def test_so_it_is_in_the_workers_of_xdist(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, PROJECT, "-rA", "-n", "2", "--dist", "load")
    assert {name for name, what in outcomes(run).items() if what == "FAILED"} == FAILING, run.output
