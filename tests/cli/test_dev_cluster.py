"""`kpybroker dev --brokers N`: several brokers of one process on one tree, which keep their data over a restart."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from kpybroker.broker.app import Broker
from kpybroker.broker.cluster.metadata_cache import Node
from kpybroker.broker.cluster.topic_admin import NewTopic
from kpybroker.broker.requests.context import PlainConnectionInfo, RequestContext
from kpybroker.cli import dev_cluster, run
from kpybroker.cli.exit_codes import EXIT_CONFIG
from kpybroker.cli.options import DevOptions
from kpybroker.config.development import development_defaults
from kpybroker.control.hosted import Hosted
from kpybroker.control.plan import BrokerPlan
from kpybroker.core.authorizer import AllowAll
from kpybroker.wire.api import ApiKey
from tests.support.brokers.hosted import running


def plans(
    directory: Path, count: int, port: int = 0, given: Mapping[str, str] = MappingProxyType({})
) -> list[run.BrokerToRun]:
    options = DevOptions(port, "127.0.0.1", brokers=count)
    return dev_cluster.plans({**development_defaults(count), **given}, options, str(directory))


def test_each_broker_has_an_id_a_port_and_a_directory_of_its_own(tmp_path: Path) -> None:
    configs = [plan.config for plan in plans(tmp_path, 3, port=9092)]
    assert [config.get_int("broker.id") for config in configs] == [0, 1, 2]
    assert [config.listeners[0].port for config in configs] == [9092, 9093, 9094]
    assert len({tuple(config.log_dirs) for config in configs}) == 3


@pytest.mark.parametrize(("given", "ports"), [("9600", [9600, 9601, 9602]), ("0", [0, 0, 0])])
def test_each_broker_serves_its_metrics_at_a_port_of_its_own(tmp_path: Path, given: str, ports: list[int]) -> None:
    configs = [plan.config for plan in plans(tmp_path, 3, given={"kpybroker.metrics.port": given})]
    assert [config.get_int("kpybroker.metrics.port") for config in configs] == ports


def test_the_directory_of_a_single_broker_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / dev_cluster.SINGLE_BROKER_FILE).write_text("broker.id=0\n")
    with pytest.raises(SystemExit, check=lambda error: error.code == EXIT_CONFIG):
        dev_cluster.check(DevOptions(0, "127.0.0.1", brokers=3), {}, str(tmp_path))
    assert "holds the data of a single broker" in capsys.readouterr().err


def test_fewer_brokers_than_there_are_data_of_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(3):
        (tmp_path / f"broker-{number}").mkdir()
        (tmp_path / f"broker-{number}" / "meta.properties").write_text("")
    dev_cluster.check(DevOptions(0, "127.0.0.1", brokers=3), {}, str(tmp_path))
    assert caplog.records == []
    dev_cluster.check(DevOptions(0, "127.0.0.1", brokers=2), {}, str(tmp_path))
    assert "holds the data of 3 brokers, and --brokers 2 starts only the first ones" in caplog.text


async def nodes_seen_by(broker: Broker) -> list[Node]:
    """The brokers' addresses for a client that connected by another host name than the listeners'."""
    connection = PlainConnectionInfo(local=("reached.example", broker.bound[0].listener.address[1]))
    assert await broker.metadata.wait_until(lambda snapshot: len(snapshot.brokers) == 3, 10)
    nodes = broker.metadata.alive_nodes(RequestContext(connection, AllowAll(), ApiKey.METADATA, 12))
    assert {node.host for node in nodes} == {"reached.example"}
    return nodes


async def test_they_are_one_cluster_and_their_topics_outlive_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """And they stop without a warning: no leader is elected in place of those that stop first."""
    for life in range(2):
        async with running(hosted_by(plans(tmp_path, 3), tmp_path)) as hosted:
            first, second, third = hosted.brokers.values()
            assert first.controller.is_active
            if life == 0:
                alone = NewTopic("alone", assignments={0: [2]})
                await first.topics.create_topics([NewTopic("t"), alone], 10_000)
            assert await third.metadata.wait_until(lambda snapshot: snapshot.has_leader("t", 0), 10)
            state = third.metadata.partition("t", 0)
            assert state is not None
            assert sorted(state.replicas) == [0, 1, 2]
            assert await nodes_seen_by(first) == await nodes_seen_by(second) == await nodes_seen_by(third)
            caplog.clear()
        assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_factor_above_the_number_of_brokers_is_lowered_with_one_warning_for_all(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = plans(tmp_path, 2, given={"offsets.topic.replication.factor": "3"})
    async with running(hosted_by(wanted, tmp_path)) as hosted:
        factors = [one.config.get_int("offsets.topic.replication.factor") for one in hosted.brokers.values()]
        assert factors == [2, 2]
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert "offsets.topic.replication.factor from 3 to 2" in warning


def hosted_by(wanted: list[run.BrokerToRun], directory: Path) -> Hosted:
    return Hosted([BrokerPlan.of(plan.config) for plan in wanted], directory)


def test_with_processes_the_files_are_the_same(tmp_path: Path) -> None:
    options = DevOptions(0, "127.0.0.1", brokers=2, processes=True, log_level="WARN")
    wanted = plans(tmp_path, 2, given={"kpybroker.log.dir": "/log"})
    family = dev_cluster.family(wanted, options, str(tmp_path), run.NO_EXTRAS)
    hosted = hosted_by(wanted, tmp_path)
    assert family.tree_file == hosted.directory / "coordination.sqlite"
    assert [one["log.dirs"] for one in family.members] == [str(tmp_path / f"broker-{number}") for number in range(2)]
    assert [one["kpybroker.log.dir"] for one in family.members] == ["/log", "/log/broker-1"]
    assert (family.log_level, family.quiet) == ("WARNING", False)
