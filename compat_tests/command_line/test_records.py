"""`kpybroker topic produce` and `consume` in pipes and under signals, and with the records of other clients."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import termios
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from compat_tests.conftest import MakeTopic, StartBroker
from compat_tests.support import quick
from compat_tests.support.command_line import DEADLINE_S, CommandLine
from compat_tests.support.services import Broker
from compat_tests.support.tools import Tools, run_process
from compat_tests.support.waiting import eventually

COUNT = 3000


@pytest.fixture
def cli(broker: Broker) -> CommandLine:
    return CommandLine(broker.bootstrap)


def test_binary_records_round_trip_between_topics(cli: CommandLine, topic: MakeTopic) -> None:
    first, second = topic(partitions=3), topic(partitions=3, suffix="-copy")
    rows: list[dict[str, Any]] = [
        {"key": {"base64": "/wA="}, "value": None, "partition": 2, "timestamp": 1_795_000_000_000, "headers": []},
        {"key": None, "value": "ü\n\t", "partition": 0, "timestamp": 1_795_000_000_001,
         "headers": [{"key": "h", "value": None}]},
        {"key": "", "value": {"base64": "gA=="}, "partition": 1, "timestamp": 1_795_000_000_002, "headers": []},
    ]  # fmt: skip
    cli.run("topic", "produce", first, "-f", "json", stdin="".join(json.dumps(row) + "\n" for row in rows))
    out = cli.run("topic", "consume", first, "-e", "-f", "json").out
    cli.run("topic", "produce", second, "-f", "json", stdin=out)
    copied = [json.loads(line) for line in cli.run("topic", "consume", second, "-e", "-f", "json").lines]
    found = sorted(copied, key=lambda row: row["timestamp"])
    assert [{key: row[key] for key in rows[0]} for row in found] == rows


def test_what_kcat_writes_is_read_and_the_reverse(made: str, cli: CommandLine, broker: Broker) -> None:
    cli.run("topic", "produce", made, "-K:", "-H", "a=1", stdin="k:v\n")
    kcat = ["kcat", "-b", broker.bootstrap, "-C", "-t", made, "-e", "-q", "-o", "beginning"]
    assert run_process([*kcat, "-f", "%k %s %h\n"]).out == "k v a=1\n"
    as_json = run_process([*kcat, "-J"]).out
    cli.run("topic", "produce", made, "-f", "json", stdin=as_json)
    assert cli.run("topic", "consume", made, "-e", "-f", "%k %v %h\\n").lines == ["k v a=1", "k v a=1"]


def test_keys_go_where_javas_producer_sends_them(cli: CommandLine, broker: Broker, topic: MakeTopic) -> None:
    ours, javas = topic(partitions=7), topic(partitions=7, suffix="-java")
    lines = "".join(f"key-{n}:v\n" for n in range(20))
    cli.run("topic", "produce", ours, "-K:", stdin=lines)
    java = ("--property", "parse.key=true", "--property", "key.separator=:")
    Tools("3.9.1", broker.bootstrap).run("console-producer", "--topic", javas, *java, stdin=lines)
    read = [sorted(cli.run("topic", "consume", t, "-e", "-f", "%k %p\\n").lines) for t in (ours, javas)]
    assert read[0] == read[1]
    assert len(read[0]) == 20


def test_aborted_records_are_left_out_unless_asked_for(cli: CommandLine, broker: Broker, topic: MakeTopic) -> None:
    from confluent_kafka import Producer

    made = topic()
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": made, **quick.QUIET})
    producer.init_transactions(60)
    for value, end in (("committed", producer.commit_transaction), ("aborted", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(made, value.encode())
        producer.flush(60)
        end(60)
    # markers are the last offsets: the end is found without a record at it
    assert cli.run("topic", "consume", made, "-e").lines == ["committed"]
    assert cli.run("topic", "consume", made, "-o", ":end").lines == ["committed"]
    everything = ("topic", "consume", made, "-e", "-X", "isolation.level=read_uncommitted")
    assert cli.run(*everything).lines == ["committed", "aborted"]


def test_offsets_times_and_ranges(made: str, cli: CommandLine) -> None:
    rows = [json.dumps({"value": str(n), "timestamp": 1_795_000_000_000 + n * 1000}) + "\n" for n in range(10)]
    cli.run("topic", "produce", made, "-f", "json", stdin="".join(rows))

    def read(*words: str) -> str:
        return cli.run("topic", "consume", made, "-f", "%v ", *words).out.strip()

    assert read("-o", "-3", "-e") == "7 8 9"
    assert read("-o", "2:4") == "2 3"
    assert read("-o", "@1795000006500", "-e") == "7 8 9"
    assert read("-o", "@1795000001000:@1795000003000") == "1 2"
    assert read("-o", "end", "-e") == ""
    assert read("-o", "+8", "-n", "1") == "8"


def test_a_reader_that_leaves_ends_it_quietly(made: str, cli: CommandLine, broker: Broker) -> None:
    """`consume | head -1` ends also when no further record arrives."""
    quick.fill(broker.bootstrap, made, ["only"])
    script = f'"{sys.executable}" -m kpybroker topic consume {made} | head -n 1; echo "${{PIPESTATUS[@]}}"'
    result = run_process(["bash", "-c", script], env=cli.environment)
    assert (result.out, result.err) == ("only\n0 0\n", "")


def test_what_a_reader_did_not_get_is_not_committed(made: str, cli: CommandLine, broker: Broker, name: str) -> None:
    quick.fill(broker.bootstrap, made, [f"{n:01000d}" for n in range(COUNT)])
    script = f'"{sys.executable}" -m kpybroker topic consume {made} -g {name} | head -n 1'
    assert run_process(["bash", "-c", script], env=cli.environment).code == 0
    left = cli.run("topic", "consume", made, "-g", name, "-e").lines
    # head read some buffers' worth; nothing that stayed in the pipe is lost for the group
    assert left[-1] == f"{COUNT - 1:01000d}"
    assert len(left) > COUNT / 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_a_summary(made: str, cli: CommandLine, name: str, number: signal.Signals) -> None:
    cli.run("topic", "produce", made, stdin="a\nb\n")
    with cli.start("topic", "consume", made, "-g", name) as process:
        assert process.stdout is not None
        assert [process.stdout.readline(), process.stdout.readline()] == [b"a\n", b"b\n"]
        process.send_signal(number)
        out, err = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, out, err.decode()) == (0, b"", f"2 records from 1 partition of {made}\n")
    assert cli.json("group", "describe", name)[0]["offsets"][0]["current_offset"] == 2


def test_lines_are_sent_as_they_are_typed(made: str, cli: CommandLine) -> None:
    with cli.start("topic", "produce", made, "-o", "%o %v\\n", stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for n in range(3):
            process.stdin.write(f"line {n}\n".encode())
            process.stdin.flush()
            assert process.stdout.readline() == f"{n} line {n}\n".encode()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 130
    assert err.decode().splitlines() == ["delivered 3 records to 1 partition", "stopped after line 3 of the input"]


def test_it_waits_for_a_broker_that_is_restarted(own_broker: StartBroker, name: str) -> None:
    broker = own_broker()
    cli = CommandLine(broker.bootstrap)
    cli.run("topic", "create", name)
    cli.run("topic", "produce", name, stdin="before\n")
    with cli.start("topic", "consume", name) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"before\n"
        broker.restart()
        cli.run("topic", "produce", name, stdin="after\n")
        assert process.stdout.readline() == b"after\n"
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0


def test_a_broker_that_is_away_does_not_keep_it_from_ending(own_broker: StartBroker, name: str) -> None:
    broker = own_broker()
    cli = CommandLine(broker.bootstrap)
    cli.run("topic", "create", name)
    with cli.start("topic", "produce", name, "-o", "%v\\n", stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"first\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"first\n"
        with cli.start("topic", "consume", name, "-g", name) as consumer:
            assert consumer.stdout is not None
            assert consumer.stdout.readline() == b"first\n"
            broker.service.kill()
            consumer.send_signal(signal.SIGINT)
            process.stdin.write(b"second\n")
            process.stdin.flush()
            eventually(lambda: not unread_bytes(process.stdin), "the line is read")
            # the next one is read once the record of this one is on its way
            process.stdin.write(b"third\n")
            process.stdin.flush()
            eventually(lambda: not unread_bytes(process.stdin), "the next line is read")
            assert process.stderr is not None
            process.send_signal(signal.SIGINT)
            # librdkafka alone takes a session's 45 s
            _, err = consumer.communicate(timeout=30)
            assert (consumer.returncode, err.decode().splitlines()[-1]) == (0, f"1 record from 1 partition of {name}")
        code, err = process.wait(60), process.stderr.read()
    assert code == 130, err
    assert b"delivered 1 record to" in err
    assert re.search(rb"not delivered: [12]\b", err)
    assert b"Traceback" not in err


def unread_bytes(pipe: Any) -> int:
    """What was written into a pipe and not yet read from it."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def test_a_broker_that_dies_loses_no_record_without_a_word(own_broker: StartBroker, name: str, tmp_path: Path) -> None:
    """Every line is delivered, or reported and kept."""
    broker = own_broker()
    cli = CommandLine(broker.bootstrap)
    cli.run("topic", "create", name)
    kept = tmp_path / "kept.jsonl"
    words = ("topic", "produce", name, "--undelivered", str(kept), "--timeout", "5", "-o", "%v\\n")
    with cli.start(*words, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        delivered: list[bytes] = []
        assert process.stdout is not None
        reader = threading.Thread(target=lambda: delivered.extend(process.stdout or ()))
        process.stdin.write(b"".join(b"%d\n" % n for n in range(COUNT)))
        process.stdin.flush()
        reader.start()
        eventually(lambda: delivered, "something was delivered")
        broker.service.kill()
        process.stdin.write(b"".join(b"%d\n" % n for n in range(COUNT, 2 * COUNT)))
        process.stdin.close()
        code = process.wait(DEADLINE_S)
        reader.join(DEADLINE_S)
        assert process.stderr is not None
        err = process.stderr.read().decode()
    failed = [json.loads(line)["value"] for line in kept.read_text().splitlines()]
    assert code == 1
    assert f"not delivered: {len(failed)}; they are in {kept}" in err
    assert sorted([*map(int, delivered), *map(int, failed)]) == list(range(2 * COUNT))


def test_a_record_that_is_too_large_fails_alone(cli: CommandLine, topic: MakeTopic) -> None:
    made = topic(max_message_bytes=1000)
    values = ["a", "x" * 5000, "b", "y" * 6000, "c"]
    result = cli.run("topic", "produce", made, stdin="\n".join(values), code=1)
    assert "line 2: not delivered" in result.err
    assert "line 4: not delivered" in result.err
    assert sorted(cli.run("topic", "consume", made, "-e").lines) == ["a", "b", "c"]


def test_a_cluster_that_is_away_is_a_quick_error_and_no_traceback(name: str) -> None:
    commands = (
        ("topic", "list"),
        ("topic", "consume", name),
        ("group", "list"),
        ("cluster", "info"),
        ("acl", "list"),
    )
    cli = CommandLine("127.0.0.1:1")
    with ThreadPoolExecutor(len(commands)) as threads:
        results = list(threads.map(lambda words: cli.run(*words, code=1), commands))
    for result in results:
        assert result.err.startswith("kpybroker: "), str(result)
        assert "refused" in result.err
        assert "doctor" in result.err
        assert "Traceback" not in result.err


def test_output_does_not_depend_on_the_locale(made: str, cli: CommandLine) -> None:
    cli.run("topic", "produce", made, stdin="grüße\n")
    result = run_process(
        [sys.executable, "-m", "kpybroker", "topic", "consume", made, "-e", "-f", "wide"],
        env={**cli.environment, "LC_ALL": "C", "PYTHONUTF8": "0", "HOME": os.environ.get("HOME", "/")},
    )
    assert "grüße" in result.out
