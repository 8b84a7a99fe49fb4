"""`kpybroker replay`: a copy is what the topic holds, by what another client reads of both."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from contextlib import closing
from typing import Any

import pytest

from compat_tests.conftest import Launcher
from compat_tests.eos.place import OneBroker
from compat_tests.support import quick
from compat_tests.support.command_line import CommandLine
from compat_tests.support.services import Broker
from compat_tests.support.topics.origin import START_MS, Content, Origin, committed_records, content
from compat_tests.support.waiting import eventually

SOURCE, COPY = "orders", "orders-copy"
EACH = 50_000
"""Records of a partition: many batches."""


@pytest.fixture
def cli(broker: Broker) -> CommandLine:
    return CommandLine(broker.bootstrap)


@pytest.fixture
def origin(broker: Broker, name: str) -> Origin:
    """Two partitions with every codec, tombstones, null keys, headers, and transactions, some of them aborted."""
    made = Origin(broker, name, 2)
    made.write(20)
    made.write_in_transactions(10)
    made.write(3)
    return made


def contents(broker: Broker, topic: str) -> list[list[Content]]:
    return [[content(message) for message in part] for part in committed_records(broker.bootstrap, topic)]


def test_a_copy_has_all_and_nothing_else(cli: CommandLine, broker: Broker, origin: Origin) -> None:
    """Made with the source's partitions and settings; written again it is there twice."""
    copy = f"{origin.topic}-copy"
    refused = cli.run("replay", origin.topic, copy, code=1)
    assert f"topic {copy}: it does not exist" in refused.err
    assert f"kpybroker topic create {copy} -p 2" in refused.err
    done = cli.run("replay", origin.topic, copy, "--create")
    assert done.err == f"copied {origin.count} records of 2 partitions\n"
    assert contents(broker, copy) == origin.expected
    assert cli.run("config", "get", "topic", copy, "retention.ms").lines == ["-1"]
    cli.run("replay", origin.topic, copy, "-X", "compression.type=zstd")
    assert contents(broker, copy) == [part * 2 for part in origin.expected]
    raw = f"{origin.topic}-raw"
    cli.run("replay", origin.topic, raw, "--create", "-X", "isolation.level=read_uncommitted")
    aborted = sum((value or b"").endswith(b" aborted") for part in contents(broker, raw) for _, value, _, _ in part)
    assert aborted > 0
    assert sum(map(len, contents(broker, raw))) > origin.count


def test_a_part_of_it(cli: CommandLine, broker: Broker, origin: Origin) -> None:
    """From a time, a number of records, one partition; spread by keys it has the same records."""
    since = origin.expected[1][30][2]
    parts: dict[str, tuple[list[str], Any]] = {
        "time": (["-o", f"@{since}"], [[one for one in part if one[2] >= since] for part in origin.expected]),
        "one": (["-p", "1", "-o", "0:10"], [[], origin.expected[1][:10]]),
        "range": (["-o", f"@{START_MS}:@{since}", "-p", "0"], [[o for o in origin.expected[0] if o[2] < since], []]),
    }
    for suffix, (options, expected) in parts.items():
        cli.run("replay", origin.topic, f"{origin.topic}-{suffix}", "--create", *options)
        assert contents(broker, f"{origin.topic}-{suffix}") == expected, suffix
    quick.create_topic(broker.bootstrap, f"{origin.topic}-five", 5, retention_ms=-1)
    cli.run("replay", origin.topic, f"{origin.topic}-five", "--by-key")
    spread = contents(broker, f"{origin.topic}-five")
    everything = [one for part in origin.expected for one in part]
    assert sorted((one for part in spread for one in part), key=lambda one: int(one[2])) == sorted(
        everything, key=lambda one: int(one[2])
    )
    assert sum(map(bool, spread)) > 2
    cli.run("replay", origin.topic, f"{origin.topic}-some", "--create", "-n", "7")
    assert sum(map(len, contents(broker, f"{origin.topic}-some"))) == 7


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.wide)])
def test_a_signal_ends_it_where_it_says(launcher: Launcher, number: signal.Signals) -> None:
    """It says where to go on; a copy that goes on there has every record once."""
    with closing(OneBroker(launcher.unstarted())) as place:
        place.start()
        broker, cli = place.broker, CommandLine(place.bootstrap)
        for name in (SOURCE, COPY):
            place.create_topic(name, 2)
        for partition in (0, 1):
            quick.fill(place.bootstrap, SOURCE, [f"{n}" for n in range(EACH)], partition)
        code, said = _interrupted(place, cli, number)
        assert code == 130, said
        copied = re.search(r"copied (\d+) records? of \d partitions?\r?\n", said)
        assert copied, said
        assert 0 < int(copied[1]) < 2 * EACH
        places = re.findall(r"next: ([^:]+):(\d) at offset (\d+)", said)
        assert sum(int(offset) for _, _, offset in places) == int(copied[1])
        goes_on = dict.fromkeys("01", "0") | {partition: offset for _, partition, offset in places}
        for partition, offset in goes_on.items():
            cli.run("replay", SOURCE, COPY, "-p", partition, "-o", offset)
        values = [[one[1] for one in part] for part in contents(broker, COPY)]
        assert values == [[f"{n}".encode() for n in range(EACH)]] * 2


def _interrupted(place: OneBroker, cli: CommandLine, number: signal.Signals) -> tuple[int, str]:
    """A copy that gets the signal while its fourth request waits; its exit code, and what its terminal shows."""
    terminal, end = pty.openpty()
    command = [sys.executable, "-m", "kpybroker", "replay", SOURCE, COPY]
    with place.gate.producing(3):
        process = subprocess.Popen(command, stderr=end, env={**os.environ, **cli.environment})
        os.close(end)
        ends = [(COPY, partition) for partition in (0, 1)]
        eventually(lambda: any(quick.end_offset(place.bootstrap, *one) for one in ends), "some records")
        process.send_signal(number)
    return process.wait(60), read_terminal(terminal)


def read_terminal(descriptor: int) -> str:
    """All that was written to a terminal whose other end is closed."""
    said = b""
    try:
        while data := os.read(descriptor, 65536):
            said += data
    except OSError:
        pass  # Linux reports the closed end as an error
    os.close(descriptor)
    return said.decode()


@pytest.mark.parametrize(
    ("arguments", "code", "cause"),
    [
        (("no-such-topic", "b"), 1, "topic no-such-topic: "),
        (("a", "b", "-o", "9:3:1"), 2, "is no offset"),
        (("a", "b", "-n", "0"), 2, "0 is not in the range"),
        (("a",), 2, "Missing argument 'TARGET'"),
        (("a", "b", "-b", "127.0.0.1:1"), 1, "no broker can be reached"),
        (("a", "b", "-b", "not an address:x"), 2, "is not an address"),
        (("a", "b", "--command-config", "/no/such/file"), 2, "/no/such/file"),
    ],
)
def test_bad_input_is_two_lines(cli: CommandLine, arguments: tuple[str, ...], code: int, cause: str) -> None:
    found = cli.run("replay", *arguments, code=code)
    lines = found.err.splitlines()
    assert cause in lines[0], found.err
    assert [line.partition(":")[0] for line in lines] == ["kpybroker", "fix"], found.err
