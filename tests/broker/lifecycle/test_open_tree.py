"""Where a start looks for the file of the embedded tree, and which one it uses."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

from kpybroker.broker.app import Broker
from kpybroker.broker.lifecycle import errors
from kpybroker.broker.lifecycle.errors import StartupError
from kpybroker.broker.lifecycle.open_tree import EMBEDDED_TREE_FILE
from kpybroker.config.broker import BrokerConfig
from kpybroker.wire.messages.describe_configs import DescribeConfigsRequest
from tests.support.brokers.running_broker import ask, create_topic, settings
from tests.support.network.memory_transport import MemoryTransport


async def start(*directories: Path, new_topic: str | None = None) -> set[str]:
    """Start on the real disk, and stop; returns the topics that existed."""
    config = BrokerConfig(settings(directories[0]) | {"log.dirs": ",".join(map(str, directories))})
    async with Broker.open(config, transport=MemoryTransport()) as broker:
        topics = set((await broker.tree.children("/brokers/topics")).names)
        if new_topic is not None:
            await create_topic(broker, new_topic)
        return topics


async def refused(*directories: Path) -> StartupError:
    with pytest.raises(StartupError) as raised:
        await start(*directories)
    assert raised.value.exit_code == errors.EXIT_IDENTITY
    return raised.value


def files(directory: Path) -> list[Path]:
    return sorted(path.parent for path in directory.glob(f"*/{EMBEDDED_TREE_FILE}"))


async def test_the_order_of_the_log_directories_does_not_matter(tmp_path: Path) -> None:
    a, b, c = (tmp_path / name for name in "abc")
    assert await start(a, b, new_topic="one") == set()
    assert await start(b, a, new_topic="two") == {"one"}
    assert await start(c, b, a) == {"one", "two"}
    assert files(tmp_path) == [a]


async def test_a_directory_of_another_cluster_is_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    await start(a)
    await start(b)
    (b / "meta.properties").unlink()
    error = await refused(a, b)
    assert all(str(path / EMBEDDED_TREE_FILE) in error.cause for path in (a, b))
    assert "cluster" in error.cause
    await start(a)


async def test_the_latest_of_two_copies_is_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    await start(a, b, new_topic="one")
    shutil.copy(a / EMBEDDED_TREE_FILE, tmp_path / "copy")
    await start(a, b, new_topic="two")
    shutil.move(tmp_path / "copy", b / EMBEDDED_TREE_FILE)
    assert await start(b, a) == {"one", "two"}
    assert f"the latest is used, {a}" in caplog.text


async def test_a_cluster_whose_file_is_missing_does_not_become_another(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    await start(a, b)
    (a / EMBEDDED_TREE_FILE).rename(tmp_path / "kept")
    assert "log directories belong to cluster" in (await refused(a, b)).cause
    assert files(tmp_path) == []
    (tmp_path / "kept").rename(b / EMBEDDED_TREE_FILE)
    assert await start(a, b) == set()


FACTORS = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "min.insync.replicas": "2",
}


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


async def test_a_broker_alone_lowers_what_it_can_never_meet_and_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = BrokerConfig(settings(tmp_path) | FACTORS)
    async with Broker.open(config, transport=MemoryTransport()) as broker:
        asked = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=4, resource_name="0", configuration_keys=None
        )
        response = await ask(broker, DescribeConfigsRequest(resources=[asked]), 4)
    shown = {entry.name: entry.value for entry in response.results[0].configs}
    assert {shown[name] for name in FACTORS} == {"1"}
    (warning,) = warnings(caplog)
    for name, value in FACTORS.items():
        assert f"{name} from {value} to 1" in warning


async def test_what_is_not_set_follows_the_number_of_brokers_without_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    props = {name: value for name, value in settings(tmp_path).items() if name not in FACTORS}
    async with Broker.open(BrokerConfig(props), transport=MemoryTransport()) as broker:
        assert {broker.config.get_int(name) for name in FACTORS} == {1}
    assert warnings(caplog) == []


async def test_with_zookeeper_every_factor_stays_as_it_is_set(tmp_path: Path) -> None:
    """Other brokers may still join."""
    keys = {**FACTORS, "zookeeper.connect": "127.0.0.1:1", "zookeeper.connection.timeout.ms": "1"}
    config = BrokerConfig(settings(tmp_path) | keys)
    with pytest.raises(StartupError):
        async with Broker.open(config, transport=MemoryTransport()):
            pass
    assert {name: str(config.get(name)) for name in FACTORS} == FACTORS
