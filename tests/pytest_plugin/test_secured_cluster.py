"""`--kafka-bootstrap` on a cluster with TLS, logins and ACLs: `--kafka-command-config` and `--kafka-profile`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import javaproperties
import pytest

from kpybroker.client.connect import profiles
from kpybroker.testing import Broker, Sasl
from tests.support.programs.planted import FAILING, OURS, PASSING, PLANTED, outcomes
from tests.support.programs.pytest_runs import run_pytest

LIBRARIES = """
import asyncio
import pytest

@pytest.mark.parametrize("library", ["confluent-kafka", "kafka-python"])
def test_clients_log_in(kafka_broker, kafka_topic, group_id, library):
    producer = kafka_broker.producer(library=library)
    (producer.produce if library == "confluent-kafka" else producer.send)(kafka_topic, b"one")
    producer.flush()
    kafka_broker.assert_records(kafka_topic, values=["one"])
    consumer = kafka_broker.consumer(group_id, kafka_topic, library=library)
    wait = 1 if library == "confluent-kafka" else 1000  # seconds, milliseconds
    kafka_broker.wait_for(lambda: consumer.poll(wait))
    consumer.close()
    assert kafka_broker.admin(library=library).list_topics()

def test_aiokafka_logs_in(kafka_broker, kafka_topic, group_id):
    async def run():
        async with kafka_broker.aio_producer() as producer:
            await producer.send_and_wait(kafka_topic, b"one")
        async with kafka_broker.aio_consumer(group_id, kafka_topic) as consumer:
            return (await consumer.getone()).value

    assert asyncio.run(run()) == b"one"

def test_another_user(kafka_broker):
    kafka_broker.producer(user="bob")
"""


@pytest.fixture(scope="module", params=["scram", "certificates"])
def secured(request: pytest.FixtureRequest) -> Iterator[Broker]:
    config = {"group.initial.rebalance.delay.ms": 0}
    sasl: Sasl | None = "scram" if request.param == "scram" else None
    with Broker(tls=True, sasl=sasl, acl=sasl is not None, config=config) as broker:
        yield broker


@pytest.fixture
def file(secured: Broker, tmp_path: Path) -> Path:
    """What Kafka's own tools take as `--command-config`."""
    path = tmp_path / "admin.properties"
    path.write_text(javaproperties.dumps(own(secured)))
    return path


def own(broker: Broker) -> dict[str, str]:
    settings = broker.config("java", user="admin" if broker.users else None)
    return {key: str(value) for key, value in settings.items() if key != "bootstrap.servers"}


def test_a_suite_runs_with_the_file_of_a_client(tmp_path: Path, secured: Broker, file: Path) -> None:
    options = (f"--kafka-bootstrap={secured.bootstrap_servers}", f"--kafka-command-config={file}")
    run = run_pytest(tmp_path, PLANTED, "-rA", *options)
    assert outcomes(run.output) == {**FAILING, **PASSING, **dict.fromkeys(OURS, "SKIPPED")}, run.output
    assert run.code == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize(
    "workers", [pytest.param((), id="alone", marks=pytest.mark.wide), pytest.param(("-n", "2"), id="xdist")]
)
def test_each_library_logs_in(tmp_path: Path, secured: Broker, file: Path, workers: tuple[str, ...]) -> None:
    """The file names the cluster, too; its path is one of the run's directory."""
    file.write_text(f"{file.read_text()}\nbootstrap.servers={secured.bootstrap_servers}\n")
    run = run_pytest(tmp_path, LIBRARIES, "--kafka-command-config=admin.properties", *workers)
    assert (run.counts["passed"], run.counts["skipped"], run.code) == (3, 1, pytest.ExitCode.OK), run.output
    assert "test_another_user: `user='bob'`" in run.output


def test_a_profile_does_it(tmp_path: Path, secured: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only one that is named: that in use is for commands, and may be a cluster that no test may touch."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    profiles.save("mine", {**own(secured), "bootstrap.servers": secured.bootstrap_servers})
    profiles.save("elsewhere", {"bootstrap.servers": "127.0.0.1:1"})
    profiles.use("elsewhere")
    run = run_pytest(tmp_path, LIBRARIES, "--kafka-profile=mine", "-k", "confluent")
    assert run.counts["passed"] == 1, run.output
    run = run_pytest(tmp_path, "def test(kafka_broker): assert kafka_broker.data_dir")
    assert run.counts == {"passed": 1}, run.output


def two_lines(run_output: str) -> tuple[str, str]:
    first, second = (line for line in run_output.splitlines() if line.strip())
    return first, second


def test_without_a_login_the_run_ends_in_two_lines(tmp_path: Path, secured: Broker) -> None:
    run = run_pytest(tmp_path, PLANTED, f"--kafka-bootstrap={secured.bootstrap_servers}")
    assert run.code == pytest.ExitCode.USAGE_ERROR
    cause, fix = two_lines(run.output)
    assert secured.bootstrap_servers in cause
    assert fix == "ERROR: fix: give its TLS and login with --kafka-command-config FILE, or name a listener without"


def test_so_it_does_where_a_login_is_refused(tmp_path: Path) -> None:
    with Broker(sasl="scram") as broker:
        given = {**own(broker), "bootstrap.servers": broker.bootstrap_servers}
        given["sasl.jaas.config"] = given["sasl.jaas.config"].replace(broker.users["admin"], "wrong-password")
        (tmp_path / "wrong.properties").write_text(javaproperties.dumps(given))
        run = run_pytest(tmp_path, PLANTED, "--kafka-command-config=wrong.properties")
    assert run.code == pytest.ExitCode.USAGE_ERROR
    cause, fix = two_lines(run.output)
    assert cause.startswith("ERROR: --kafka-command-config=wrong.properties: ")
    assert fix.startswith("ERROR: fix: ")
    assert "wrong-password" not in run.output


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        (("--kafka-command-config=missing.properties",), "missing.properties"),
        (("--kafka-command-config=empty.properties",), "--kafka-command-config=empty.properties has no bootstrap.serv"),
        (("--kafka-profile=missing",), "there is no profile missing"),
        (("--kafka-profile=no/name",), "'no/name' is no name of a profile"),
        (
            ("--kafka-bootstrap=127.0.0.1:1", "--kafka-command-config=jks.properties"),
            "is JKS, and librdkafka reads PEM",
        ),
    ],
)
def test_a_file_or_profile_that_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], cause: str
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("KPYBROKER_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    (tmp_path / "empty.properties").write_text("client.id=tests\n")
    (tmp_path / "store.jks").write_bytes(b"\xfe\xed\xfe\xed")
    (tmp_path / "jks.properties").write_text("security.protocol=SSL\nssl.truststore.location=store.jks\n")
    run = run_pytest(tmp_path, PLANTED, *options)
    assert run.code == pytest.ExitCode.USAGE_ERROR, run.output
    lines = two_lines(run.output)
    assert cause in lines[0]
    assert lines[1].startswith("ERROR: fix: ")
