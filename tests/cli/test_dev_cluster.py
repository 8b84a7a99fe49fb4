"""`kpybroker dev --brokers N`: several brokers of one process on one tree, which keep their data over a restart."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import trio

from kpybroker.broker.app import Broker
from kpybroker.broker.cluster.metadata_cache import Node
from kpybroker.broker.cluster.topic_admin import NewTopic
from kpybroker.broker.requests.context import PlainConnectionInfo, RequestContext
from kpybroker.cli import dev, dev_cluster, run
from kpybroker.cli.exit_codes import EXIT_CONFIG
from kpybroker.cli.options import DevOptions
from kpybroker.core.authorizer import AllowAll
from kpybroker.wire.api import ApiKey


def plans(directory: Path, count: int, port: int = 0) -> list[run.Plan]:
    props = {**dev.DEFAULTS, **dev_cluster.defaults(count)}
    return dev_cluster.plans(props, DevOptions(port, "127.0.0.1", brokers=count), str(directory))


@pytest.mark.parametrize(("count", "factor", "minimum"), [(2, 2, 2), (3, 3, 2), (5, 3, 2)])
def test_topics_have_as_many_replicas_as_such_a_cluster_can_keep(
    tmp_path: Path, count: int, factor: int, minimum: int
) -> None:
    config = plans(tmp_path, count)[0].config
    for key in ("default.replication.factor", "offsets.topic.replication.factor"):
        assert config.get_int(key) == factor
    assert config.get_int("transaction.state.log.min.isr") == minimum


def test_each_broker_has_an_id_a_port_and_a_directory_of_its_own(tmp_path: Path) -> None:
    configs = [plan.config for plan in plans(tmp_path, 3, port=9092)]
    assert [config.get_int("broker.id") for config in configs] == [0, 1, 2]
    assert [config.listeners[0].port for config in configs] == [9092, 9093, 9094]
    assert len({tuple(config.log_dirs) for config in configs}) == 3


def test_the_directory_of_a_single_broker_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / dev_cluster.SINGLE_BROKER_FILE).write_text("broker.id=0\n")
    with pytest.raises(SystemExit, check=lambda error: error.code == EXIT_CONFIG):
        plans(tmp_path, 3)
    assert "holds the data of a single broker" in capsys.readouterr().err


async def nodes_seen_by(broker: Broker) -> list[Node]:
    """The brokers' addresses for a client that connected by another host name than the listeners'."""
    connection = PlainConnectionInfo(local=("reached.example", broker.bound[0].listener.address[1]))
    assert await broker.metadata.wait_until(lambda snapshot: len(snapshot.brokers) == 3, 10)
    nodes = broker.metadata.alive_nodes(RequestContext(connection, AllowAll(), ApiKey.METADATA, 12))
    assert {node.host for node in nodes} == {"reached.example"}
    return nodes


async def test_they_are_one_cluster_and_their_topics_outlive_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """And they stop without a warning: no leader is elected in place of those that stop first."""
    for life in range(2):
        running = run.Running()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(dev_cluster.serve, plans(tmp_path, 3), str(tmp_path), running)
            with trio.fail_after(30):
                while not running.brokers:  # noqa: ASYNC110 -- a program would read the ready line instead
                    await trio.sleep(0.01)
            first, second, third = running.brokers
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
            second.stop()  # one of them is stopped, and so are the others
        assert capsys.readouterr().out.startswith("kpybroker ready at 127.0.0.1:")
        assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
