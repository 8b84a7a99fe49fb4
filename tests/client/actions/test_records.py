"""`topic produce` and `topic consume` against a broker."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from kpybroker.client.connect.settings import ENVIRONMENT
from kpybroker.testing import Broker
from tests.client.conftest import Run
from tests.support.programs.command_line import invoke
from tests.support.requests import odd


def test_lines_go_in_and_come_out(run: Run, name: str) -> None:
    run("topic", "create", name)
    sent = run("topic", "produce", name, stdin=b"a\n\nb")
    assert (sent.code, sent.out, sent.err) == (0, b"", "delivered 3 records to 1 partition\n")
    assert run("topic", "consume", name, "-e").out == b"a\n\nb\n"


def test_json_lines_round_trip_with_everything(run: Run, name: str) -> None:
    run("topic", "create", name, f"{name}-copy", "-p", "3")
    rows: list[dict[str, Any]] = [
        {"key": None, "value": None, "partition": 2, "timestamp": 1_700_000_000_000, "headers": []},
        {"key": {"base64": "//4="}, "value": "ü\n", "partition": 0, "timestamp": 1_700_000_000_001,
         "headers": [{"key": "h", "value": None}, {"key": "h", "value": {"base64": "/w=="}}]},
        {"key": "", "value": "", "partition": 1, "timestamp": 5, "headers": []},
    ]  # fmt: skip
    stdin = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    assert run("topic", "produce", name, "-f", "json", stdin=stdin).code == 0
    first = run("topic", "consume", name, "-e", "-f", "json")
    assert run("topic", "produce", f"{name}-copy", "-f", "json", stdin=first.out).code == 0
    second = run("topic", "consume", f"{name}-copy", "-e", "-f", "json")
    assert sorted(first.lines) == sorted(line.replace(f"{name}-copy", name) for line in second.lines)
    found = sorted((json.loads(line) for line in first.lines), key=lambda row: -row["timestamp"])
    assert [{key: row[key] for key in rows[0]} for row in found] == [rows[1], rows[0], rows[2]]


def test_each_json_line_may_name_its_topic(run: Run, name: str) -> None:
    run("topic", "create", f"{name}-a", f"{name}-b")
    stdin = "".join(json.dumps({"topic": f"{name}-{x}", "value": x}) + "\n" for x in "ab").encode()
    assert run("topic", "produce", "-f", "json", stdin=stdin).code == 0
    assert sorted(run("topic", "consume", f"{name}-a", f"{name}-b", "-e", "-f", "%t=%v\n").lines) == [
        f"{name}-a=a",
        f"{name}-b=b",
    ]
    nameless = run("topic", "produce", stdin=b"x\n")
    assert nameless.code == 1
    assert "line 1 is no record: it names no topic" in nameless.err


def test_keys_headers_null_and_delimiters(run: Run, name: str) -> None:
    run("topic", "create", name)
    assert run("topic", "produce", name, "-K:", "-H", "a=1", "-H", "b", "-Z", "-D", ";", stdin=b"k:v;:w;x:").code == 0
    out = run("topic", "consume", name, "-e", "-Z", "-f", "%k %v %h\\n").lines
    assert out == ["k v a=1,b=NULL", "NULL w a=1,b=NULL", "x NULL a=1,b=NULL"]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_batches_are_compressed(run: Run, name: str, codec: str) -> None:
    run("topic", "create", name)
    assert run("topic", "produce", name, "-z", codec, stdin=b"x" * 5000 + b"\n").code == 0
    (directory,) = [row for row in run("cluster", "log-dirs", "-r", "--format", "json").json if row["topic"] == name]
    assert directory["size"] < 1000
    assert run("topic", "consume", name, "-e").out == b"x" * 5000 + b"\n"


def test_keys_choose_the_partition_as_javas_clients_do(run: Run, name: str) -> None:
    run("topic", "create", name, "-p", "10")
    run("topic", "produce", name, "-K:", stdin=b"".join(b"%d:x\n" % n for n in range(6)))
    out = run("topic", "consume", name, "-e", "-f", "%k %p\n").lines
    # org.apache.kafka.common.utils.Utils.murmur2, of which a test in compat_tests asks Java
    assert {line.split()[0]: line.split()[1] for line in out} == murmur2_partitions(["0", "1", "2", "3", "4", "5"], 10)


def murmur2_partitions(keys: list[str], partitions: int) -> dict[str, str]:
    from kafka.partitioner.default import murmur2

    return {key: str((murmur2(key.encode()) & 0x7FFFFFFF) % partitions) for key in keys}


def test_where_to_begin_and_to_end(run: Run, name: str) -> None:
    run("topic", "create", name)
    stdin = b"".join(b'{"value":"%d","timestamp":%d}\n' % (n, 1_700_000_000_000 + n * 1000) for n in range(10))
    run("topic", "produce", name, "-f", "json", stdin=stdin)

    def read(*words: str) -> str:
        return run("topic", "consume", name, "-f", "%v ", *words).text.strip()

    assert read("-o", "7", "-e") == "7 8 9"
    assert read("-o", "-2", "-e") == "8 9"
    assert read("-o", "+8", "-e") == "8 9"
    assert read("-o", "2:5") == "2 3 4"
    assert read("-o", ":end") == "0 1 2 3 4 5 6 7 8 9"
    assert read("-o", "@1700000003500", "-e") == "4 5 6 7 8 9"
    assert read("-o", "@2023-11-14T22:13:21:@1700000003000") == "1 2"
    assert read("-o", "end", "-e") == ""
    assert read("-o", "50", "-e") == ""
    assert read("-n", "3") == "0 1 2"
    assert read("-o", "5", "-n", "2") == "5 6"


def test_only_some_partitions(run: Run, name: str) -> None:
    run("topic", "create", name, "-p", "3")
    for partition in range(3):
        run("topic", "produce", name, "-p", str(partition), stdin=b"%d\n" % partition)
    assert sorted(run("topic", "consume", name, "-e", "-p", "0,2").lines) == ["0", "2"]
    wrong = run("topic", "consume", name, "-p", "3", "-e")
    assert wrong.code == 2
    assert "has no partition 3" in wrong.err


def test_a_group_goes_on_where_it_was(run: Run, name: str) -> None:
    run("topic", "create", name)
    run("topic", "produce", name, stdin=b"1\n2\n3\n")
    assert run("topic", "consume", name, "-g", name, "-n", "2").lines == ["1", "2"]
    assert run("topic", "consume", name, "-g", name, "-e").lines == ["3"]
    assert run("topic", "consume", name, "-g", name, "-e").lines == []
    assert run("topic", "consume", name, "-g", f"{name}-late", "-o", "end", "-e").lines == []


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("consume", "t", "-g", "g", "-p", "0"), "-p names partitions"),
        (("consume", "t", "-g", "g", "-o", "5"), "group seek moves a group"),
        (("consume", "t", "-f", "jsn"), "'jsn' is no format"),
        (("consume", "t", "-f", "%q"), "%q is no verb"),
        (("consume", "t", "-o", "soon"), "'soon' is no offset"),
        (("consume", "t", "-p", "x"), "does not name partitions"),
        (("produce", "t", "-f", "jsn"), "'jsn' is neither line nor json"),
        (("produce", "t", "-f", "json", "-K:"), "-K separates"),
        (("produce", "t", "-D", ""), "-D is empty"),
        (("produce", "t", "-K", ""), "-K is empty"),
        (("produce", "t", "-H", "=x"), "has no name"),
        (("produce", "t", "-o", "%q"), "%q is no verb"),
        (("produce", "t", "--undelivered", "/no/such/dir/f"), "cannot be written"),
    ],
)
def test_bad_options_are_refused(run: Run, words: tuple[str, ...], named: str) -> None:
    result = run("topic", *words)
    assert result.code == 2
    assert named in result.err
    assert "fix: " in result.err


def test_a_topic_that_is_not_there(run: Run, name: str) -> None:
    result = run("topic", "consume", name, "-e")
    assert (result.code, result.out) == (1, b"")
    assert f"topic {name}: " in result.err


def test_a_line_that_is_no_record_stops_it_and_says_where_to_go_on(run: Run, name: str) -> None:
    run("topic", "create", name)
    result = run(
        "topic", "produce", name, "-f", "json", stdin=b'{"value":"1"}\n{"value":"2"}\nnonsense\n{"value":"4"}\n'
    )
    assert result.code == 1
    assert "delivered 2 records" in result.err
    assert "line 3 is no record: it is not JSON" in result.err
    assert "tail -n +3" in result.err
    assert run("topic", "consume", name, "-e").lines == ["1", "2"]


def test_a_record_that_is_too_large_fails_alone_and_is_kept(run: Run, name: str, tmp_path: Path) -> None:
    run("topic", "create", name, "-c", "max.message.bytes=1000")
    kept = tmp_path / "kept.jsonl"
    result = run(
        "topic",
        "produce",
        name,
        "--undelivered",
        str(kept),
        "-k",
        "k",
        stdin=b"a\n" + b"x" * 5000 + b"\nb\n",
    )
    assert result.code == 1
    assert "line 2: not delivered" in result.err
    assert "MESSAGE_TOO_LARGE" in result.err
    assert f"not delivered: 1; they are in {kept}" in result.err
    assert run("topic", "consume", name, "-e").lines == ["a", "b"]
    assert json.loads(kept.read_text()) == {
        "topic": name, "partition": None, "offset": None, "timestamp": None, "timestamp_type": None, "key": "k",
        "value": "x" * 5000, "headers": [],
    }  # fmt: skip
    run("topic", "alter", name, "-d", "max.message.bytes")
    assert run("topic", "produce", "-f", "json", stdin=kept.read_bytes()).code == 0


def test_a_partition_that_is_not_there_fails(run: Run, name: str) -> None:
    run("topic", "create", name)
    result = run("topic", "produce", name, "-f", "json", stdin=b'{"value":"a","partition":5}\n{"value":"b"}\n')
    assert result.code == 1
    assert "line 1: not delivered" in result.err
    assert run("topic", "produce", name, "-f", "json", "-p", "-1", stdin=b'{"value":"a","partition":5}\n').code == 0


def test_a_cluster_that_is_away_delivers_nothing_and_says_so(run: Run, name: str) -> None:
    result = run("topic", "produce", name, "-b", "127.0.0.1:1", "--timeout", "2", stdin=b"a\nb\n")
    assert result.code == 1
    assert "delivered 0 records" in result.err
    assert "not delivered: 2" in result.err
    assert "Connection refused" in result.err


def test_a_producer_that_cannot_go_on_says_why_and_what_was_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker(topics=["t"]) as broker:
        broker.faults.error("InitProducerId", "CLUSTER_AUTHORIZATION_FAILED")
        monkeypatch.setenv(ENVIRONMENT, broker.bootstrap_servers)
        result = invoke(monkeypatch, "topic", "produce", "t", stdin=b"x\ny\n")
        assert broker.records("t") == []
    assert result.code == 1
    lines = result.err.splitlines()
    assert sum(line.startswith("kpybroker: the producer cannot go on: ") for line in lines) == 1
    assert "delivered 0 records" in lines
    assert any(line.startswith("not delivered: ") for line in lines)
    assert "fix: grant it: kpybroker acl create; or use the credentials of another user" in lines
    assert "Traceback" not in result.err


def test_deliveries_are_printed_as_asked(run: Run, name: str) -> None:
    run("topic", "create", name)
    result = run("topic", "produce", name, "-k", "k", "-H", "a=1", "-o", "%t %p %o %k %v %h %i\\n", stdin=b"x\ny\n")
    assert result.lines == [f"{name} 0 0 k x a=1 0", f"{name} 0 1 k y a=1 1"]
    json_line = run("topic", "produce", name, "-o", "json", stdin=b"z\n").json
    assert (json_line["offset"], json_line["value"]) == (2, "z")
    assert re.fullmatch(r"\d{13}", str(json_line["timestamp"]))


def test_a_format_is_read_and_written(run: Run, name: str) -> None:
    run("topic", "create", name)
    run("topic", "produce", name, "-f", "%k\\t%T\\t%v", stdin=b"k\t1700000000000\ta\tb\n")
    assert run("topic", "consume", name, "-e", "-f", "%k\\t%T\\t%v\\n").out == b"k\t1700000000000\ta\tb\n"


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        ("0:2", ["a", "b"]),
        ("0:9999999", ["a", "b"]),
        (":end", ["a", "b"]),
        ("+0:+1", ["a"]),
        ("-1:end", ["b"]),
        ("end:9", []),
        ("@1000000:@99999999999999", ["a", "b"]),
        ("5:9", []),
    ],
)
def test_a_range_ends_where_its_partitions_end(run: Run, name: str, offset: str, expected: list[str]) -> None:
    run("topic", "create", name, "-p", "3")
    run("topic", "produce", name, "-p", "1", stdin=b"a\nb\n")
    assert run("topic", "consume", name, "-o", offset).lines == expected


@pytest.mark.parametrize("end", ["commit", "abort", "none"])
def test_a_range_ends_at_markers_and_at_transactions(run: Run, bootstrap: str, name: str, end: str) -> None:
    run("topic", "create", name)
    run("topic", "produce", name, stdin=b"a\nb\n")
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(name, b"c")
    producer.flush()
    if end == "commit":
        producer.commit_transaction()
    elif end == "abort":
        producer.abort_transaction()
    seen = ["a", "b", "c"] if end == "commit" else ["a", "b"]
    for offset in ("0:3", "0:4", "0:9", ":end", "+0:+100"):
        assert run("topic", "consume", name, "-o", offset).lines == seen, offset
    assert run("topic", "consume", name, "-o", "3:9").lines == []
    if end == "none":
        producer.abort_transaction()


def test_a_range_of_deleted_records_ends(run: Run, name: str) -> None:
    run("topic", "create", name)
    run("topic", "produce", name, stdin=b"a\nb\nc\n")
    run("topic", "trim", name, "--to", "end", "-y")
    for offset in ("0:2", "0:3", ":end", "-3:end", "0:9"):
        assert run("topic", "consume", name, "-o", offset).lines == [], offset


def test_keys_and_headers_of_the_command_line_may_be_any_bytes(run: Run, bootstrap: str, name: str) -> None:
    run("topic", "create", name)
    arguments = ("-k", "\udcff", "-H", "h\udcfe=\udcfd", "-D", "\udcfc")
    assert run("topic", "produce", name, *arguments, stdin=b"a\xfcb").code == 0
    found = [(one.key, one.value, one.headers) for one in odd.stored(bootstrap, name)]
    assert found == [(b"\xff", value, (("h\udcfe", b"\xfd"),)) for value in (b"a", b"b")]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal of POSIX")
def test_a_terminal_gets_no_control_character(run: Run, bootstrap: str, name: str) -> None:
    run("topic", "create", name)
    run("topic", "produce", name, "-k", "\x1b[2J", "-H", "\x1b=\x07", stdin=b"\x1b[31mred\xff\n")
    assert run("topic", "consume", name, "-e").out == b"\x1b[31mred\xff\n"
    terminal, output = os.openpty()
    command = [sys.executable, "-m", "kpybroker", "topic", "consume", name, "-e", "-f", "%k %h %v %k{hex}\\n"]
    subprocess.run(command, stdout=output, check=True, env={**os.environ, ENVIRONMENT: bootstrap})
    os.close(output)
    shown = os.read(terminal, 1000)
    os.close(terminal)
    assert shown == b"\\x1b[2J \\x1b=\\x07 \\x1b[31mred\\xff 1b5b324a\r\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
@pytest.mark.parametrize(
    "words",
    [
        ("topic", "list"),
        ("topic", "list", "--format", "json"),
        ("topic", "describe", "NAME"),
        ("topic", "consume", "NAME", "-e"),
        ("topic", "consume", "NAME", "-e", "-f", "json"),
        ("topic", "produce", "NAME", "-o", "json"),
        ("doctor",),
        ("--version",),
        ("topic", "consume", "--help"),
        ("completion", "bash"),
    ],
)
def test_a_full_disk_is_reported(run: Run, bootstrap: str, name: str, words: tuple[str, ...]) -> None:
    run("topic", "create", name)
    run("topic", "produce", name, stdin=b"x\n")
    command = [sys.executable, "-m", "kpybroker", *(name if word == "NAME" else word for word in words)]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command, input=b"y\n", stdout=full, stderr=subprocess.PIPE, env={**os.environ, ENVIRONMENT: bootstrap}
        )
    assert done.returncode == 1, done.stderr.decode()
    assert b"standard output cannot be written: No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr
