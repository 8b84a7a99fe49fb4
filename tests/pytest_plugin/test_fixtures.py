"""The plugin in runs of its own, as a project that installs kpybroker has it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.support.programs.leftovers import eventually
from tests.support.programs.pytest_runs import OTHER_PLUGINS, run_pytest


def brokers_of(run_directory: Path) -> list[str]:
    """Processes that were started by a run below this directory and still run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
                place = os.readlink(entry / "cwd")
            except OSError:
                continue
            if b"kpybroker" in command and place == str(run_directory):
                found.append(entry.name)
    return found


CLIENTS = """
import pytest

def test_a_record_arrives(kafka_producer, kafka_consumer, kafka_topic, group_id, kafka_broker):
    kafka_producer.produce(kafka_topic, b"value", b"key")
    assert kafka_producer.flush(60) == 0
    message = kafka_consumer.poll(60)
    assert (message.key(), message.value(), message.topic()) == (b"key", b"value", kafka_topic)
    kafka_consumer.commit(message, asynchronous=False)
    assert kafka_broker.committed(group_id) == {kafka_topic: {0: 1}}

@pytest.mark.kafka(partitions=3, config={"retention.ms": 7})
def test_the_marker(kafka_broker, kafka_topic, kafka_admin):
    topic = kafka_broker.topics()[kafka_topic]
    assert (len(topic.partitions), topic.config) == (3, {"retention.ms": "7"})
    assert kafka_topic in kafka_admin.list_topics(timeout=60).topics

names = set()

@pytest.mark.parametrize("number", range(2))
def test_names_are_of_one_test(number, kafka_topic, group_id):
    assert kafka_topic.startswith("test_names_are_of_one_test".replace("_", "-"))
    assert not names & {kafka_topic, group_id}
    names.update((kafka_topic, group_id))

def test_the_other_name(kpybroker, kafka_broker):
    assert kpybroker is kafka_broker
"""


def test_clients_topics_and_groups(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, CLIENTS)
    assert run.counts["passed"] == 5, run.output
    assert brokers_of(tmp_path) == []


FAULTS = """
import urllib.request

import pytest

addresses = []

def test_a_fault(kafka_faults, kafka_producer, kafka_topic, kafka_requests):
    with kafka_faults.error("Produce", "NOT_LEADER_OR_FOLLOWER", topic=kafka_topic, times=1) as fault:
        kafka_producer.produce(kafka_topic, b"value")
        assert kafka_producer.flush(60) == 0
        assert fault.hits == 1
    assert len(kafka_requests("Produce")) == 2
    kafka_faults.error("Metadata", "UNKNOWN_SERVER_ERROR", expect_unused=True)

def test_it_is_gone(kafka_broker):
    assert kafka_broker.faults.all() == []

def test_time(kafka_clock, kafka_broker):
    before = kafka_clock.now()
    kafka_clock.advance(hours=25)
    assert (kafka_clock.now() - before).total_seconds() >= 25 * 3600

def test_factory(kafka_broker_factory):
    one = kafka_broker_factory(partitions=2, topics=["made"])
    assert len(one.topics()["made"].partitions) == 1 or len(one.topics()["made"].partitions) == 2
    assert len(kafka_broker_factory(brokers=2).ids) == 2

def test_cluster(kafka_cluster):
    assert kafka_cluster.ids == [0, 1, 2]

def test_registry(kafka_schema_registry, kafka_broker):
    with urllib.request.urlopen(kafka_schema_registry.url + "/subjects", timeout=180) as response:
        assert response.read() == b"[]"
    assert "_schemas" in kafka_broker.topics(internal=True)
"""


def test_faults_time_and_more_brokers(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, FAULTS)
    assert run.counts["passed"] == 6, run.output
    assert brokers_of(tmp_path) == []


SCOPED = """
import os
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_one(number, kafka_broker, kafka_topic):
    kafka_broker.produce(kafka_topic, ["x"])
    with open("brokers.txt", "a") as file:
        print(kafka_broker.status()["pid"], kafka_broker.topics().keys().__len__(), file=file)
"""


def brokers_used(directory: Path) -> list[tuple[str, int]]:
    """Process id, and how many topics there were, for each test."""
    lines = (directory / "brokers.txt").read_text().split("\n")[:-1]
    return [(line.split()[0], int(line.split()[1])) for line in lines]


def test_one_broker_for_a_session_or_for_each_test(tmp_path: Path) -> None:
    assert run_pytest(tmp_path, SCOPED.format(count=3)).counts["passed"] == 3
    assert [topics for _, topics in brokers_used(tmp_path)] == [1, 2, 3]
    (tmp_path / "brokers.txt").unlink()
    assert run_pytest(tmp_path, SCOPED.format(count=2), ini="kafka_broker_scope=function").counts["passed"] == 2
    used = brokers_used(tmp_path)
    assert [topics for _, topics in used] == [1, 1]
    assert len({pid for pid, _ in used}) == 2


def test_workers_of_xdist_have_one_broker_each_which_ends_with_the_run(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, SCOPED.format(count=8), "-n", "2", "--dist", "load")
    assert run.counts["passed"] == 8, run.output
    assert len({pid for pid, _ in brokers_used(tmp_path)}) == 2
    eventually(lambda: brokers_of(tmp_path) == [], "the end of the broker")


def test_a_fault_reaches_no_test_of_another_worker(tmp_path: Path) -> None:
    tests = (
        SCOPED.format(count=4)
        + """
def test_fault(kafka_faults):
    kafka_faults.error('Fetch', 'UNKNOWN_SERVER_ERROR', expect_unused=True)
"""
    )
    run = run_pytest(tmp_path, tests, "-n", "2", "--dist", "each")
    assert run.counts["passed"] == 10, run.output
    assert len({pid for pid, _ in brokers_used(tmp_path)}) == 2


SECURED = """
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_a_client_logs_in(number, kafka_broker, kafka_producer, kafka_consumer, kafka_admin, kafka_topic):
    assert kafka_broker.config("java")["security.protocol"] == "SASL_SSL"
    kafka_producer.produce(kafka_topic, b"value")
    assert kafka_producer.flush(120) == 0
    assert kafka_consumer.poll(120).value() == b"value"
    assert kafka_topic in kafka_admin.list_topics(timeout=120).topics

def test_a_broker_of_its_own(kafka_broker_factory):
    one = kafka_broker_factory(sasl="plain", tls=False, topics=["t"])
    assert one.config("java")["sasl.mechanism"] == "PLAIN"
    assert one.admin().list_topics(timeout=120).topics["t"].error is None
"""
SECURED_INI = "kafka_broker_tls = true\nkafka_broker_sasl = scram\n"


@pytest.mark.parametrize(
    "workers",
    [pytest.param((), id="alone", marks=pytest.mark.wide), pytest.param(("-n", "2", "--dist", "load"), id="xdist")],
)
def test_brokers_have_tls_and_logins_where_the_settings_say_so(tmp_path: Path, workers: tuple[str, ...]) -> None:
    run = run_pytest(tmp_path, SECURED.format(count=3), *workers, ini=SECURED_INI)
    assert run.counts["passed"] == 4, run.output
    eventually(lambda: brokers_of(tmp_path) == [], "the end of the broker")


def test_a_way_to_log_in_that_does_not_exist_is_named(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, "def test_it(kafka_broker): ...", ini="kafka_broker_sasl = kerberos\n")
    assert "sasl='kerberos'" in run.output
    assert "give one of 'plain', 'scram', 'oauthbearer'" in run.output


def test_the_configuration_reaches_the_broker(tmp_path: Path) -> None:
    tests = """
def test_it(kafka_broker):
    kafka_broker.produce("made", ["x"])
    assert len(kafka_broker.topics()["made"].partitions) == 4
"""
    ini = "kafka_broker_extra_config =\n  num.partitions=4\n  log.retention.hours = 1\n"
    run = run_pytest(tmp_path, tests, ini=ini)
    assert run.counts["passed"] == 1, run.output
    wrong = run_pytest(tmp_path, tests, ini="kafka_broker_extra_config = num.partition=4\n")
    assert "did you mean 'num.partitions'?" in wrong.output
    assert "is not `key=value`" in run_pytest(tmp_path, tests, ini="kafka_broker_extra_config = x\n").output
    assert "choose session, module" in run_pytest(tmp_path, tests, ini="kafka_broker_scope = test\n").output


def test_a_failure_shows_the_log_and_the_requests(tmp_path: Path) -> None:
    tests = """
def test_it(kafka_broker, kafka_producer, kafka_topic):
    kafka_producer.produce(kafka_topic, b"x")
    kafka_producer.flush(60)
    assert False, "on purpose"
"""
    run = run_pytest(tmp_path, tests)
    assert run.counts["failed"] == 1
    assert "kafka_broker: the last 40 lines of its log" in run.output
    assert "kafka_broker: its last requests" in run.output
    assert "Produce v" in run.output


OWN_BROKERS = """
from kpybroker.testing import Broker

def test_inline():
    with Broker(in_thread=True, topics=["inline"]) as broker:
        broker.admin(library="confluent-kafka").list_topics("inline", timeout=60)
        assert False, "on purpose"

def test_factory(kafka_broker_factory):
    one = kafka_broker_factory(in_thread=True, topics=["factory"])
    one.admin(library="confluent-kafka").list_topics("factory", timeout=60)
    assert False, "on purpose"
"""


def test_so_does_one_in_a_broker_of_its_own(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, OWN_BROKERS)
    assert run.counts == {"failed": 2}
    for topic in ("inline", "factory"):
        assert re.search(rf"Metadata v.* from rdkafka: .* ms .*'{topic}'", run.output), run.output
    assert run.output.count("its last requests") == 2


def test_nothing_is_started_or_imported_that_no_test_asks_for(tmp_path: Path) -> None:
    tests = """
import sys

def test_it():
    ours = {name for name in sys.modules if name.startswith("kpybroker.")}
    assert {name.split(".")[1] for name in ours} == {"pytest_plugin"}
"""
    assert run_pytest(tmp_path, tests, "-p", "no:xdist").counts["passed"] == 1


EXTERNAL = """
def test_clients(kafka_broker, kafka_producer, kafka_consumer, kafka_topic):
    kafka_broker.produce(kafka_topic, ["before"])
    kafka_producer.produce(kafka_topic, b"value")
    assert kafka_producer.flush(60) == 0
    assert [kafka_consumer.poll(120).value() for _ in range(2)] == [b"before", b"value"]

def test_faults(kafka_faults): ...
def test_time(kafka_clock): ...
def test_requests(kafka_requests): ...
def test_cluster(kafka_cluster): ...
def test_factory(kafka_broker_factory): ...
def test_registry(kafka_schema_registry): ...

def test_looking(kafka_broker):
    kafka_broker.transactions()
"""


def test_the_same_tests_run_on_a_cluster_that_is_there(tmp_path: Path) -> None:
    from kpybroker.testing import Broker

    with Broker() as broker:
        run = run_pytest(tmp_path, EXTERNAL, f"--kafka-bootstrap={broker.bootstrap_servers}")
    assert (run.counts["passed"], run.counts["skipped"]) == (1, 7), run.output
    assert "the clock of a real cluster cannot be moved" in run.output
    assert "test_it.py::test_looking: `transactions` is not something that stock clients can do" in run.output
    assert "7 tests need a broker of kpybroker" in run.output


COROUTINES = """
import pytest
{head}

async def test_a_group(kafka_broker, kafka_producer, kafka_consumer, kafka_topic, group_id):
    kafka_producer.produce(kafka_topic, b"value")
    assert await kafka_broker.aio.call(kafka_producer.flush, 10) == 0
    message = await kafka_broker.aio.call(kafka_consumer.poll, 10)
    assert message.value() == b"value"
    assert (await kafka_broker.aio.wait_group(group_id, "Stable", members=1)).state == "Stable"

async def test_a_broker_of_its_own(kafka_faults, seeded):
    from kpybroker.testing import Broker

    assert [record.value for record in seeded] == [b"seed"]
    async with Broker(topics=["t"]) as broker:
        assert list(broker.topics()) == ["t"]

{fixture}
async def seeded(kafka_broker, kafka_topic):
    await kafka_broker.aio.call(kafka_broker.produce, kafka_topic, [b"seed"])
    return kafka_broker.records(kafka_topic)
"""
ASYNC_PLUGINS = {
    "asyncio": ("import pytest_asyncio\npytestmark = pytest.mark.asyncio", "@pytest_asyncio.fixture"),
    "trio": ("pytestmark = pytest.mark.trio", "@pytest.fixture"),
    "anyio": ("pytestmark = pytest.mark.anyio", "@pytest.fixture"),
}


@pytest.mark.parametrize(
    "plugin", [pytest.param(one, marks=[] if one == "anyio" else pytest.mark.wide) for one in ASYNC_PLUGINS]
)
def test_coroutines_use_the_same_fixtures(tmp_path: Path, plugin: str) -> None:
    """With pytest-asyncio and pytest-trio; anyio runs each test on both loops. All of them are there."""
    head, fixture = ASYNC_PLUGINS[plugin]
    ini = "asyncio_default_fixture_loop_scope = function\n"
    run = run_pytest(tmp_path, COROUTINES.format(head=head, fixture=fixture), ini=ini, others=OTHER_PLUGINS)
    assert run.counts == {"passed": 4 if plugin == "anyio" else 2}, run.output
    assert brokers_of(tmp_path) == []
