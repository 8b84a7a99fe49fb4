"""`kpybroker replay`: a copy is what the topic holds, by what another client reads of both."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from typing import Any

import pytest

from compat_tests.conftest import MakeTopic
from compat_tests.support import quick
from compat_tests.support.command_line import CommandLine
from compat_tests.support.origin import START_MS, Content, Origin, committed_records, content, partition_count
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually

MANY, AT_ONCE = 100_000, 50_000


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
def test_a_signal_ends_it_where_it_says(
    cli: CommandLine, broker: Broker, topic: MakeTopic, name: str, number: signal.Signals
) -> None:
    """It says where to go on; a copy that goes on there has every record once."""
    source, copy = topic(partitions=2), f"{name}-copy"
    quick.create_topic(broker.bootstrap, copy, 2)
    for start in range(0, MANY // 2, AT_ONCE):
        for partition in (0, 1):
            quick.fill(broker.bootstrap, source, [f"{n}" for n in range(start, start + AT_ONCE)], partition)
    terminal, end = pty.openpty()
    command = [sys.executable, "-m", "kpybroker", "replay", source, copy]
    process = subprocess.Popen(command, stderr=end, env={**os.environ, **cli.environment})
    os.close(end)
    eventually(lambda: partition_count(broker.bootstrap, copy) and quick.end_offset(broker.bootstrap, copy, 0), "some")
    process.send_signal(number)
    assert process.wait(60) == 130
    said = read_terminal(terminal)
    copied = re.search(r"copied (\d+) records? of \d partitions?\r?\n", said)
    assert copied, said
    assert 0 < int(copied[1]) < MANY
    places = re.findall(r"next: ([^:]+):(\d) at offset (\d+)", said)
    assert sum(int(offset) for _, _, offset in places) == int(copied[1])
    goes_on = dict.fromkeys("01", "0") | {partition: offset for _, partition, offset in places}
    for partition, offset in goes_on.items():
        cli.run("replay", source, copy, "-p", partition, "-o", offset)
    values = [[one[1] for one in part] for part in contents(broker, copy)]
    assert values == [[f"{n}".encode() for n in range(MANY // 2)]] * 2


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
