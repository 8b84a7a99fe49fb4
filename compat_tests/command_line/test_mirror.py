"""`kpybroker mirror` between the broker under test and Kafka, both ways: killed, stopped, shared, refused."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from compat_tests.conftest import Launcher, StartBroker
from compat_tests.support import quick
from compat_tests.support.command_line import CommandLine
from compat_tests.support.security.secured import LOGIN, secured_keys
from compat_tests.support.services import Broker
from compat_tests.support.topics.origin import Content, Origin, committed_records, content, partition_count
from compat_tests.support.waiting import eventually
from tests.support.network.certificates import Authority
from tests.support.network.ports import free_port

BATCH_RECORDS = 2000
"""How many records a mirror has read and not committed, at most."""
QUICK_GROUP = ("-X", "session.timeout.ms=6000", "-X", "heartbeat.interval.ms=500")
"""A mirror that was killed is a member of its group until then."""


class Sides(NamedTuple):
    source: Broker
    target: Broker
    cli: CommandLine
    """Of the source."""

    def contents(self, topic: str) -> list[list[Content]]:
        """What the target has."""
        return [[content(one) for one in part] for part in committed_records(self.target.bootstrap, topic)]

    def run(self, topic: str, *options: str, code: int = 0) -> str:
        """A mirror with an end, and what it says."""
        return self.cli.run("mirror", topic, "--to", self.target.bootstrap, "-g", topic, *options, code=code).err

    def start(self, topic: str, *options: str) -> subprocess.Popen[bytes]:
        """A mirror without an end."""
        where = ("--to", self.target.bootstrap, "-g", topic, "--create", *QUICK_GROUP)
        return self.cli.start("mirror", topic, *where, *options)

    def has(self, topic: str, count: float) -> None:
        """Wait until the target has as many offsets."""

        def enough() -> bool:
            partitions = partition_count(self.target.bootstrap, topic)
            ends = [quick.end_offset(self.target.bootstrap, topic, number) for number in range(partitions)]
            assert sum(ends) >= count, ends
            return True

        eventually(enough, f"{count} records of {topic} are copied")


@pytest.fixture(scope="module")
def other(launcher: Launcher) -> Iterator[Broker]:
    """A Kafka."""
    made = Broker("kafka", launcher.directory / "mirror-other", launcher.zookeeper("mirror-other"), {})
    try:
        made.start()
        yield made
    finally:
        made.service.kill()


@pytest.fixture(params=["to-kafka", pytest.param("from-kafka", marks=pytest.mark.wide)])
def sides(request: pytest.FixtureRequest, broker: Broker, other: Broker) -> Sides:
    source, target = (broker, other) if request.param == "to-kafka" else (other, broker)
    return Sides(source, target, CommandLine(source.bootstrap))


@pytest.fixture
def watched() -> Iterator[Callable[[subprocess.Popen[bytes]], subprocess.Popen[bytes]]]:
    """Ends what a test leaves running."""
    all_of_them: list[subprocess.Popen[bytes]] = []

    def keep(process: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
        all_of_them.append(process)
        return process

    yield keep
    for process in all_of_them:
        process.kill()
        process.communicate()


def ended(process: subprocess.Popen[bytes], number: signal.Signals | None = None) -> tuple[int, str]:
    """The exit code and what it said, after a signal or by itself."""
    if number is not None:
        process.send_signal(number)
    _, err = process.communicate(timeout=120)
    assert b"Traceback" not in err, err.decode()
    return process.returncode, err.decode()


def test_a_signal_ends_it_and_the_next_goes_on(sides: Sides, name: str) -> None:
    """Everything is kept as it was, in a topic that is made as the source's is; after Ctrl-C nothing is twice."""
    origin = Origin(sides.source, name, 2)
    origin.write(20)
    origin.write_in_transactions(10)
    process = sides.start(name)
    sides.has(name, origin.count)
    code, said = ended(process, signal.SIGINT)
    assert code == 0
    assert said.splitlines() == [
        f"mirroring {name} from {sides.source.bootstrap} to {sides.target.bootstrap} as group {name}; Ctrl-C ends it",
        f"copied {origin.count} records of 2 partitions",
    ]
    assert sides.contents(name) == origin.expected
    assert CommandLine(sides.target.bootstrap).run("config", "get", "topic", name, "retention.ms").lines == ["-1"]
    origin.write(5)
    assert sides.run(name, "-e") == "copied 50 records of 2 partitions\n"
    assert sides.run(name, "-e") == "copied 0 records\n"
    assert sides.contents(name) == origin.expected


@pytest.mark.wide
def test_killed_again_and_again(sides: Sides, name: str) -> None:
    """Nothing is lost and nothing is out of order; a kill copies at most a batch again."""
    origin = Origin(sides.source, name, 2)
    origin.write(6000)
    shares = (0.2, 0.5, 0.8)
    for share in shares:
        process = sides.start(name)
        sides.has(name, share * origin.count)
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
    sides.run(name, "-e", *QUICK_GROUP)
    found = sides.contents(name)
    for number, part in enumerate(found):
        places = {one[2]: at for at, one in enumerate(origin.expected[number])}
        highest = -1
        for one in part:
            at = places[one[2]]
            assert one == origin.expected[number][at]
            assert at <= highest + 1, f"partition {number}: record {at} after {highest}"
            highest = max(highest, at)
        assert highest == len(origin.expected[number]) - 1
    assert origin.count <= sum(map(len, found)) <= origin.count + len(shares) * BATCH_RECORDS


@pytest.mark.wide
def test_two_share_the_partitions(
    sides: Sides, name: str, watched: Callable[[subprocess.Popen[bytes]], subprocess.Popen[bytes]]
) -> None:
    origin = Origin(sides.source, name, 2)
    both = [watched(sides.start(name)) for _ in range(2)]

    def shared() -> bool:
        (row,) = sides.cli.json("group", "describe", name)
        assert [len(one["assignment"]) for one in row["members"]] == [1, 1], row
        return True

    eventually(lambda: partition_count(sides.target.bootstrap, name), "the topic is made")
    eventually(shared, "one partition each")
    origin.write(100)
    sides.has(name, origin.count)
    said = [ended(process, signal.SIGTERM) for process in both]
    assert [code for code, _ in said] == [0, 0]
    assert [text.splitlines()[-1] for _, text in said] == ["copied 500 records of 1 partition"] * 2
    assert sides.contents(name) == origin.expected


def test_partitions_that_are_added(
    sides: Sides, name: str, watched: Callable[[subprocess.Popen[bytes]], subprocess.Popen[bytes]]
) -> None:
    """With --create they are added while it runs; without it stops, says so, and goes on once they are there."""
    origin = Origin(sides.source, name, 2)
    origin.write(4)
    process = watched(sides.start(name, "-X", "topic.metadata.refresh.interval.ms=500"))
    sides.has(name, origin.count)
    origin.grow()
    origin.write(4)
    sides.has(name, origin.count)
    assert ended(process, signal.SIGINT)[0] == 0
    assert sides.contents(name) == origin.expected

    origin.grow()
    origin.write(4)
    refused = sides.run(name, "-e", code=1).splitlines()
    address = sides.target.bootstrap
    assert refused[0] == f"kpybroker: topic {name} has 3 partitions in {address}, and 4 are needed"
    assert refused[1].startswith(f"fix: add them: kpybroker topic alter {name} -p 4 -b {address}")
    CommandLine(address).run("topic", "alter", name, "-p", "4")
    sides.run(name, "-e")
    assert sides.contents(name) == origin.expected


def test_topics_of_a_pattern(sides: Sides, name: str) -> None:
    """Each that exists at the start; the default group is of this target, so another target gets everything too."""
    origins = [Origin(sides.source, f"{name}-{letter}") for letter in "ab"]
    for origin in origins:
        origin.write(3)
    where = ("mirror", f"{name}-*", "--to", sides.target.bootstrap)
    refused = sides.cli.run(*where, "-e", code=1).err
    assert f"topic {name}-a: it does not exist in {sides.target.bootstrap}" in refused
    assert f"topic {name}-b: it does not exist in {sides.target.bootstrap}" in refused
    assert sides.cli.run(*where, "-e", "--create").err == "copied 60 records of 4 partitions\n"
    for origin in origins:
        assert sides.contents(origin.topic) == origin.expected
    target_id = CommandLine(sides.target.bootstrap).json("cluster", "info")["cluster_id"]
    group = f"kpybroker-mirror-{target_id}"
    assert -1001 not in quick.committed(sides.source.bootstrap, group, [(f"{name}-a", 0), (f"{name}-b", 1)])
    assert f"no topic matches no-{name}-*" in sides.cli.run("mirror", f"no-{name}-*", *where[2:], code=1).err


@pytest.mark.wide
def test_brokers_that_die_during_a_mirror(
    broker: Broker,
    own_broker: StartBroker,
    name: str,
    watched: Callable[[subprocess.Popen[bytes]], subprocess.Popen[bytes]],
) -> None:
    """It waits for a source, and for a target as long as --timeout; then it ends, and another goes on."""
    source, target = own_broker(), own_broker()
    sides = Sides(source, target, CommandLine(source.bootstrap))
    origin = Origin(source, name, 2)
    process = watched(sides.start(name, "--timeout", "120"))
    for dying in (source, target):
        origin.write(20)
        sides.has(name, origin.count)
        dying.kill()
        dying.start()
    origin.write(20)
    sides.has(name, origin.count)
    assert process.poll() is None
    assert ended(process, signal.SIGINT)[0] == 0
    assert sides.contents(name) == origin.expected

    process = watched(sides.start(name, "--timeout", "3"))
    origin.write(1)
    sides.has(name, origin.count)
    target.kill()
    origin.write(20)
    code, said = ended(process)
    assert code == 1
    assert "was not copied: no broker can be reached" in said, said
    target.start()
    sides.run(name, "-e")
    assert [list(dict.fromkeys(map(hashable, part))) for part in sides.contents(name)] == [
        list(map(hashable, part)) for part in origin.expected
    ]


def hashable(one: Content) -> tuple[object, ...]:
    return (*one[:3], tuple(one[3]))


# --- logins, and what is refused


class Locked(NamedTuple):
    broker: Broker
    address: str
    directory: Path
    authority: Authority

    def file(self, password: str) -> str:
        """A client's .properties, as Kafka's tools take it."""
        path = self.directory / f"{password}.properties"
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        path.write_text(
            f"bootstrap.servers={self.address}\nsecurity.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n"
            f'sasl.jaas.config={module} required username="{LOGIN.user}" password="{password}";\n'
            f"ssl.truststore.type=PEM\nssl.truststore.location={self.authority.certificate}\n"
        )
        return str(path)


@pytest.fixture(scope="module")
def locked(launcher: Launcher, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Locked]:
    """A broker with a SASL_SSL listener."""
    directory = tmp_path_factory.mktemp("locked")
    authority = Authority(directory)
    made = launcher.unstarted()
    port = free_port()
    made.configure(secured_keys(made.port, port, authority))
    made.start()
    yield Locked(made, f"127.0.0.1:{port}", directory, authority)
    made.service.kill()


def test_logins_on_either_side(broker: Broker, locked: Locked, name: str) -> None:
    """`--command-config` for the source, `--to-config` for the target; a refused login says whose it is."""
    file, wrong = locked.file(LOGIN.password), locked.file("not-the-password")
    origin = Origin(broker, name, 2)
    origin.write(4)
    cli = CommandLine(broker.bootstrap)
    cli.run("mirror", name, "--to-config", file, "--create", "-e")
    there = Sides(broker, locked.broker, cli)
    assert there.contents(name) == origin.expected

    back = Origin(locked.broker, f"{name}-back", 2)
    back.write(4)
    cli.run(
        "mirror", back.topic, "--command-config", file, "--to", broker.bootstrap, "--create", "-e", "-b", locked.address
    )
    assert Sides(locked.broker, broker, cli).contents(back.topic) == back.expected

    refused = cli.run("mirror", name, "--to-config", wrong, "-e", code=1).err
    assert refused.startswith(f"kpybroker: target {locked.address}: ")
    assert "--to-config" in refused.splitlines()[1]
    assert "not-the-password" not in refused
    option = "sasl.password=another-wrong-one"
    refused = cli.run("mirror", name, "--to-config", file, "--to-option", option, "-e", code=1).err
    assert refused.startswith(f"kpybroker: target {locked.address}: ")
    assert "another-wrong-one" not in refused


@pytest.mark.parametrize(
    ("options", "code", "cause"),
    [
        ((), 2, "the target cluster is not named"),
        (("--to", "SELF"), 2, "source and target are the same cluster"),
        (("--to", "127.0.0.1:1"), 1, "target 127.0.0.1:1: no broker can be reached"),
        (("--to", "no such place:x"), 2, "is not an address"),
        (("--to-config", "/no/such/file"), 2, "/no/such/file"),
        (("--to", "127.0.0.1:1", "--to-option", "no.such.key=1"), 2, "no.such.key"),
        (("--to", "127.0.0.1:1", "-n", "none"), 2, "'none' is not a valid integer"),
    ],
)
def test_bad_input_is_two_lines(broker: Broker, name: str, options: tuple[str, ...], code: int, cause: str) -> None:
    words = [broker.bootstrap if word == "SELF" else word for word in options]
    found = CommandLine(broker.bootstrap).run("mirror", name, *words, code=code)
    lines = found.err.splitlines()
    assert cause in lines[0], found.err
    assert [re.split("[: ]", line)[0] for line in lines] == ["kpybroker", "fix"], found.err
