"""What the start says of files that other users can read."""

from __future__ import annotations

import logging
import os
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kpybroker.broker.app import Broker
from kpybroker.cli.health import exposure
from kpybroker.config.broker import BrokerConfig
from tests.support.brokers.running_broker import create_topic, settings
from tests.support.network.memory_transport import MemoryTransport

pytestmark = pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A directory that all users may enter: pytest's own are closed."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def place(open_place: Path) -> Path:
    """A log directory that others may enter, with nothing in it."""
    made = open_place / "data"
    made.mkdir()
    made.chmod(0o755)
    return made


def _config(directory: Path, **more: str) -> BrokerConfig:
    return BrokerConfig({"log.dirs": str(directory)} | {key.replace("_", "."): value for key, value in more.items()})


@pytest.mark.parametrize(
    "name", ["coordination.sqlite", "coordination.sqlite-wal", "meta.properties", "__consumer_offsets-3"]
)
@pytest.mark.parametrize("mode", [0o604, 0o640, 0o602])
def test_a_log_directory_with_something_that_others_can_read_or_change(place: Path, name: str, mode: int) -> None:
    assert list(exposure.of_broker(_config(place))) == []
    (place / name).touch()
    (place / name).chmod(0o600)
    assert list(exposure.of_broker(_config(place))) == []
    (place / name).chmod(mode)
    assert list(exposure.of_broker(_config(place))) == [str(place)]
    place.chmod(0o700)
    assert list(exposure.of_broker(_config(place))) == []


def test_a_directory_that_anyone_may_write_to(place: Path) -> None:
    place.chmod(0o777)
    assert list(exposure.of_broker(_config(place))) == [str(place)]


def test_a_key_store_of_any_listener_and_the_tree_of_a_cluster(place: Path) -> None:
    store, tree = place.parent / "broker.pem", place.parent / "coordination.sqlite"
    for file in (store, tree):
        file.touch()
        file.chmod(0o644)
    config = BrokerConfig({"log.dirs": str(place), "listener.name.plaintext.ssl.keystore.location": str(store)})
    assert list(exposure.of_broker(config, [tree, place / "missing"])) == [str(store), str(tree)]
    for file in (store, tree):
        file.chmod(0o600)
    assert list(exposure.of_broker(config, [tree])) == []


def test_a_file_of_settings_only_if_it_holds_a_secret(place: Path) -> None:
    file = place / "server.properties"
    file.touch()
    file.chmod(0o640)
    assert list(exposure.of_properties(str(file), {"broker.id": "1"})) == []
    secret = {"listener.name.sasl_ssl.plain.sasl.jaas.config": "x"}
    assert list(exposure.of_properties(str(file), secret)) == [str(file)]
    file.chmod(0o600)
    assert list(exposure.of_properties(str(file), secret)) == []


def test_the_line_names_the_path_and_the_command(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        exposure.warn([str(place)])
    (line,) = caplog.messages
    assert str(place) in line
    assert f"`chmod -R go-rwx -- {place}`" in line
    assert "0755" in line


@pytest.mark.parametrize("name", ["it's", "two words", "$(id); #", "-R"])
def test_the_command_is_right_for_any_name(name: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        exposure.warn([name])
    command = caplog.messages[0].split("`")[1]
    assert shlex.split(command) == ["chmod", "-R", "go-rwx", "--", name]


async def test_what_a_broker_creates_is_private_whatever_the_umask(place: Path) -> None:
    """Its tree, its checkpoints, its logs; while it runs, and after it has stopped."""
    config = BrokerConfig(settings(place))
    before = os.umask(0)
    try:
        async with Broker.open(config, transport=MemoryTransport()) as broker:
            await create_topic(broker, "orders")
            running = _modes(place)
        stopped = _modes(place)
    finally:
        os.umask(before)
    assert {"coordination.sqlite", "coordination.sqlite-wal", "meta.properties", "orders-0"} <= running.keys()
    for found in (running, stopped):
        assert {name: oct(mode) for name, mode in found.items() if mode & 0o077} == {}
    assert list(exposure.of_broker(config)) == []


def _modes(directory: Path) -> dict[str, int]:
    return {str(path.relative_to(directory)): path.stat().st_mode for path in directory.rglob("*")}
