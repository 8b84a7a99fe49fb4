"""The compatibility harness: other people's clients against a running broker, and the same tests against real Kafka.

    pytest compat_tests --broker=kpybroker                           # ours, on its embedded coordination tree
    pytest compat_tests --broker=kpybroker --coordination=zookeeper  # ours, on real ZooKeeper
    pytest compat_tests --broker=kpybroker --shortcuts=none          # ours, on the plain paths (a list: only those)
    pytest compat_tests --broker=kpybroker --kafka-version=3.9       # ours, in the place of a release: no features
    pytest compat_tests --broker=kafka                               # Apache Kafka 3.9.1 in ZooKeeper mode

Test ids are the same for every target. `broker` is shared by the whole session, so a test makes its own topics and
groups (`topic`, `name`); a test that stops or configures a broker starts its own (`own_broker`).
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import tempfile
import uuid
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_tests import deps
from compat_tests.support.clients import Client
from compat_tests.support.groups.members import Member, speaks_new_protocol, start_member
from compat_tests.support.groups.serving import NOT_SERVED, QUICK, serves_groups
from compat_tests.support.quick import create_topic
from compat_tests.support.services import KAFKA_VERSION, Broker, ZooKeeper
from compat_tests.support.tools import VERSIONS, Tools
from kpybroker.config.keys.own import KAFKA_VERSIONS
from tests.support.programs.forks import QUICK_JVMS, fork_children_of_testing

TEST_SECONDS_MAX = 600
NEWER = ((re.compile(r"(?<![\d.])3\.9\.1(?![\d.])"), "4.x"), (re.compile(r"(?<=kafka-python-)2\.2\.15"), "3.0.12"))

MakeTopic = Callable[..., str]
StartBroker = Callable[..., Broker]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("compatibility")
    group.addoption("--broker", choices=["kpybroker", "kafka"], default=os.environ.get("COMPAT_BROKER", "kpybroker"))
    group.addoption("--coordination", choices=["embedded", "zookeeper"], default="embedded", help="for kpybroker")
    group.addoption(
        "--shortcuts",
        default=os.environ.get("COMPAT_SHORTCUTS", "all"),
        help="kpybroker.shortcuts of every broker of ours: all, none, or a list of names",
    )
    group.addoption("--kafka-version", choices=KAFKA_VERSIONS, help="kpybroker.kafka.version of every broker of ours")
    group.addoption(
        "--all-versions",
        action="store_true",
        help="differential scripts in every version, clients and tools of every version, and the wide tests too",
    )
    group.addoption("--keep-files", action="store_true", help="leave the brokers' directories in place")
    group.addoption("--exact", action="store_true", help="the loop is held for 50 ms at most, with no allowance")
    group.addoption("--console-pictures", metavar="DIRECTORY", help="write the pictures of docs/console there")
    group.addoption("--deploy", action="store_true", help="build the image and boot the unit of docs/deploy")
    group.addoption("--replication-rounds", type=int, default=1, help="how often every broker of a cluster dies")
    group.addoption(
        "--security", choices=["none", "sasl_ssl"], default="none", help="of the clusters of compat_tests/cluster"
    )
    group.addoption("--replication-matrix", action="store_true", help="every row of Kafka's replication matrix")


def pytest_configure(config: pytest.Config) -> None:
    os.environ[QUICK_JVMS] = "yes"
    fork_children_of_testing()
    deps.brings_clients = config.getoption("--all-versions")
    if release := config.getoption("--kafka-version"):
        os.environ[KAFKA_VERSION] = release


def pytest_report_header(config: pytest.Config) -> str:
    return f"compatibility tests run against: {config.getoption('--broker')}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without --all-versions: no wide tests, and of the clients and tools of several Kafkas those of the newest."""
    if config.getoption("--all-versions"):
        return
    ids = {item.nodeid for item in items}

    def has_newer(item: pytest.Item) -> bool:
        return any(version.search(item.nodeid) and version.sub(newest, item.nodeid) in ids for version, newest in NEWER)

    left_out = [item for item in items if item.get_closest_marker("wide") or has_newer(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in set(left_out)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """A test that hangs fails, with the place where it hung, and the next one runs."""

    def too_long(_signal: int, _frame: object) -> None:
        raise AssertionError(f"no end within {TEST_SECONDS_MAX} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(TEST_SECONDS_MAX)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Launcher:
    """Starts brokers of the chosen kind, and ZooKeeper when one needs it; ends them all with the session."""

    def __init__(self, kind: str, coordination: str, directory: Path, shortcuts: str = "all") -> None:
        self.kind = kind
        self._own_keys = {"kpybroker.shortcuts": shortcuts} if kind == "kpybroker" else {}
        self._needs_zookeeper = kind == "kafka" or coordination == "zookeeper"
        self.directory = directory
        self._zookeeper: ZooKeeper | None = None
        self._brokers: list[Broker] = []

    def broker(self, **overrides: str) -> Broker:
        """A new broker with its own files; `overrides` are configuration keys with `_` for `.`."""
        broker = self.unstarted(**overrides)
        broker.start()
        return broker

    def unstarted(self, **overrides: str) -> Broker:
        name = f"broker-{len(self._brokers)}"
        keys = self._own_keys | {key.replace("_", "."): str(value) for key, value in overrides.items()}
        zookeeper = self.zookeeper(name) if self._needs_zookeeper else None
        broker = Broker(self.kind, self.directory / name, zookeeper, keys)
        self._brokers.append(broker)
        return broker

    def zookeeper(self, name: str) -> str:
        """The address of a chroot of that name, in the one ZooKeeper of this run."""
        if self._zookeeper is None:
            self._zookeeper = ZooKeeper(self.directory / "zookeeper")
            self._zookeeper.start()
        return f"{self._zookeeper.connect}/{name}"

    def close(self) -> None:
        for broker in self._brokers:
            broker.service.kill()
        if self._zookeeper is not None:
            self._zookeeper.stop()


@pytest.fixture(scope="session")
def launcher(request: pytest.FixtureRequest) -> Iterator[Launcher]:
    directory = Path(tempfile.mkdtemp(prefix="compat-"))
    options = request.config.option
    started = Launcher(options.broker, options.coordination, directory, options.shortcuts)
    yield started
    started.close()
    if options.keep_files:
        print(f"\nbroker files: {directory}")
    else:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def broker(launcher: Launcher) -> Broker:
    """The broker that the whole session shares."""
    return launcher.broker(**QUICK)


@pytest.fixture
def own_broker(launcher: Launcher) -> Iterator[StartBroker]:
    """Starts brokers for one test; it may stop, kill and restart them."""
    started: list[Broker] = []

    def start(**overrides: str) -> Broker:
        started.append(launcher.broker(**overrides))
        return started[-1]

    yield start
    for one in started:
        one.service.kill()


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name of this test's own, for topics and groups; it says which test made it."""
    words = re.sub(r"[^A-Za-z0-9.]+", "-", request.node.name.removeprefix("test_")).strip("-")
    return f"{words}-{uuid.uuid4().hex[:6]}"


@pytest.fixture
def topic(broker: Broker, name: str) -> MakeTopic:
    """Makes topics: `topic(partitions=1, suffix="", max_message_bytes=...)`."""

    def make(partitions: int = 1, suffix: str = "", **config: Any) -> str:
        create_topic(broker.bootstrap, name + suffix, partitions, **config)
        return name + suffix

    return make


@pytest.fixture
def seed() -> int:
    """Of a random load; a failed test shows it."""
    chosen = random.randrange(10**6)
    print(f"seed {chosen}")
    return chosen


@pytest.fixture
def made(topic: MakeTopic) -> str:
    """A topic of one partition."""
    return topic()


@pytest.fixture
def client(broker: Broker) -> Callable[[str], Client]:
    return lambda client_name: Client(client_name, broker.bootstrap)


@pytest.fixture(params=VERSIONS)
def tools(request: pytest.FixtureRequest, broker: Broker) -> Tools:
    """Kafka's tools, once from each set of jars."""
    return Tools(request.param, broker.bootstrap)


@pytest.fixture
def join(broker: Broker) -> Iterator[Callable[..., Member]]:
    """Starts group members: `join("confluent", group=..., topics=[...])`; what still runs at the end is killed.

    A test with members of the new protocol is skipped where it is not served.
    """
    members: list[Member] = []

    def start(client_name: str, bootstrap: str | None = None, **spec: Any) -> Member:
        if speaks_new_protocol(client_name) and not serves_groups(broker):
            pytest.skip(NOT_SERVED)
        members.append(start_member(client_name, bootstrap or broker.bootstrap, **spec))
        return members[-1]

    yield start
    for member in members:
        member.kill()
