"""The samples of the docs that run Kafka's own tools, with the 3.9.1 jars, against a `kpybroker dev`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.support.tools import Tools, write_commands
from kpybroker.client.connect.settings import ENVIRONMENT
from tests.support.programs.samples import DevBroker, dev_broker, run_sample


@pytest.fixture(scope="module")
def broker_of_samples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevBroker]:
    with dev_broker(tmp_path_factory.mktemp("samples") / "data") as broker:
        yield broker


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with `kafka-topics.sh` and the others."""
    return write_commands(tmp_path_factory.mktemp("commands"))


def places(broker: DevBroker, **renamed: str) -> dict[str, str]:
    return {"127.0.0.1:9092": broker.bootstrap, **renamed}


@pytest.mark.parametrize("sample", ["tools/cluster-health.sh", "tools/preferred-leaders.sh"])
def test_a_look_at_a_healthy_broker_finds_nothing(
    broker_of_samples: DevBroker, commands: Path, tmp_path: Path, sample: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT, broker_of_samples.bootstrap)
    out = run_sample(sample, tmp_path, places(broker_of_samples), commands)
    assert "Leader: none" not in out
    assert "Exception" not in out


def test_partitions_move_to_the_brokers_of_a_plan(commands: Path, tmp_path: Path) -> None:
    with dev_broker(tmp_path / "data", "--brokers", "3") as cluster:
        create = Tools("3.9.1", cluster.bootstrap)
        create.run("topics", "--create", "--topic", "clicks", "--replica-assignment", "0,0,0")
        out = run_sample("tools/reassign.sh", tmp_path, places(cluster), commands)
        assert "Successfully started partition reassignments for clicks-0,clicks-1,clicks-2" in out
        assert "Status of partition reassignment:" in out
        described = create.run("topics", "--describe", "--topic", "clicks").out
        assert {line.split("Replicas: ")[1].split()[0][:1] for line in described.splitlines()[1:]} == {"0", "1", "2"}


def test_quotas_are_set_shown_and_removed(broker_of_samples: DevBroker, commands: Path, tmp_path: Path) -> None:
    out = run_sample("security/quotas.sh", tmp_path, places(broker_of_samples), commands)
    everyone = "consumer_byte_rate=2000000.0, controller_mutation_rate=1.0, producer_byte_rate=1000000.0"
    assert _quotas(out, "the default client-id") == set(everyone.split(", "))
    assert _quotas(out, "client-id 'loader'") == {"producer_byte_rate=1.0E7"}
    assert _quotas(out, "ip '192.0.2.7'") == {"connection_creation_rate=5.0"}
    assert "Completed updating config for client loader" in out.splitlines()[-1]


def _quotas(out: str, entity: str) -> set[str]:
    (line,) = [line for line in out.splitlines() if line.startswith(f"Quota configs for {entity} are ")]
    return set(line.partition(" are ")[2].split(", "))


def test_levels_change_at_run_time_and_state_changes_are_merged(commands: Path, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    with dev_broker(tmp_path / "data", "--override", f"kpybroker.log.dir={logs}") as broker:
        out = run_sample("logs/levels.sh", tmp_path, places(broker), commands)
        assert "kafka.request.logger=DEBUG" in out
        Tools("3.9.1", broker.bootstrap).run("topics", "--create", "--topic", "orders", "--partitions", "3")
    completed = (logs / "kafka-request.log").read_text()
    assert '"requestApiKeyName":"DESCRIBE_CONFIGS"' in completed
    assert '"requestApiKeyName":"CREATE_TOPICS"' not in completed
    out = run_sample("logs/merge.sh", tmp_path, {})
    assert "Leader orders-0 with topic id" in out
    assert "orders-2" not in out
