"""The merge of state-change logs: which lines it takes, and their order. Next to Kafka's: `compat_tests/logs`."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from kpybroker.cli.dump.merge import Selection, merged, partition_of, text_of_json

AT = "2024-01-01 00:00:0{},{:03d}"


def line(second: int, what: str, milliseconds: int = 0, source: str = "Broker id=1") -> str:
    return f"[{AT.format(second, milliseconds)}] TRACE [{source}] {what} (state.change.logger)"


def run(*arguments: str | Path) -> tuple[int, str, str]:
    """(exit code, standard output, standard error)."""
    command = [sys.executable, "-m", "kpybroker", "log", "merge-state-changes", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "Changed partition orders-eu-3 from NewPartition to OnlinePartition with state LeaderAndIsr(isr=[1, 2])",
        "Changed state of replica 2 for partition orders-eu-3 from NewReplica to OnlineReplica",
        "Leader orders-eu-3 with topic id Some(x) starts at leader epoch 0 from offset 0, ISR [1,2]",
        "Follower orders-eu-3 starts at leader epoch 4 from offset 0",
        "Received LeaderAndIsr request LeaderAndIsrPartitionState(topicName='orders-eu', partitionIndex=3, isr=[1, 2])",
        "started the transition for partition [orders-eu,3] from OnlinePartition",
        "Broker 1 received UpdateMetadata request for partition [orders-eu, 3]",
    ],
)
def test_the_partition_of_a_line_is_found_in_every_form(text: str) -> None:
    assert partition_of(line(1, text)) == ("orders-eu", 3)


def test_a_line_about_the_whole_request_is_about_no_partition() -> None:
    for text in (
        "Handling LeaderAndIsr request correlationId 1 from controller 1 for 2 partitions",
        "Sending UpdateMetadata request to brokers 1,2 for 0 partitions",
    ):
        assert partition_of(line(1, text)) is None


def test_lines_are_in_the_order_of_their_times_and_of_the_files_within_a_millisecond() -> None:
    first = [line(1, "Leader t-0"), line(3, "Leader t-1"), "java.lang.Exception: without a time", line(4, "Leader t-2")]
    second = [line(1, "Follower t-0"), line(2, "Follower t-1"), line(4, "Follower t-2")]
    merge = list(merged([iter(first), iter(second)], Selection()))
    assert merge == [first[0], second[0], second[1], first[1], first[3], second[2]]


def test_topic_partitions_and_times_select() -> None:
    log = [line(second, f"Leader {topic}-{second}") for second in range(1, 6) for topic in ("t", "u")]

    def chosen(**selection: object) -> list[str]:
        return list(merged([iter(log)], Selection(**selection)))  # type: ignore[arg-type]

    assert chosen(topic="u") == log[1::2]
    assert chosen(topic="t", partitions=frozenset({2, 5})) == [log[2], log[8]]
    assert chosen(start=AT.format(2, 0), end=AT.format(3, 0)) == log[2:6]


def test_json_lines_are_printed_in_kafkas_form_and_local_time() -> None:
    text = (
        '{"timestamp": "2024-01-01T12:00:00.123Z", "level": "TRACE", "logger": "state.change.logger", '
        '"message": "[Broker id=1] Leader t-0"}'
    )
    local = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(1704110400))
    assert text_of_json(text) == f"[{local},123] TRACE [Broker id=1] Leader t-0 (state.change.logger)"
    assert list(merged([iter([text])], Selection())) == [text_of_json(text)]
    for broken in ('{"timestamp": 1}', '{"message', "{}", '{"timestamp":"x","level":"","logger":"","message":""}'):
        assert text_of_json(broken) == broken


@pytest.mark.not_quick
def test_files_are_named_or_found_by_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "state-change.log").write_text(line(2, "Leader t-0") + "\n")
    (tmp_path / "state-change.log.1").write_text(line(1, "Leader t-0") + "\n")
    (tmp_path / "server.log").write_text(line(0, "Leader t-0") + "\n")
    expected = line(1, "Leader t-0") + "\n" + line(2, "Leader t-0") + "\n"
    assert run("--logs-regex", tmp_path / "state-change.log*") == (0, expected, "")
    names = ",".join(str(tmp_path / name) for name in ("state-change.log", "state-change.log.1"))
    assert run("--logs", names, "--topic", "t", "--partitions", "0") == (0, expected, "")


@pytest.mark.not_quick
def test_bytes_that_are_not_utf8_pass_through(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(line(1, "Leader t-0 ").encode() + b"\xff\n")
    command = [sys.executable, "-m", "kpybroker", "log", "merge-state-changes", "--logs", str(tmp_path / "log")]
    assert subprocess.run(command, capture_output=True, check=True).stdout.endswith(b"\xff\n")


@pytest.mark.not_quick
@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        ([], "exactly one of --logs and --logs-regex"),
        (["--logs", "a", "--logs-regex", "b"], "exactly one of --logs and --logs-regex"),
        (["--logs", "a", "--partitions", "1"], "without a topic"),
        (["--logs", "a", "--topic", "t", "--partitions", "1,x"], "'x', which is no partition"),
        (["--logs", "a", "--topic", "t", "--partitions", "1,2,1"], "repeats 1"),
        (["--logs", "a", "--start-time", "yesterday"], "'yesterday' is not a time"),
        (["--logs", "no-such-file"], "no-such-file cannot be read: No such file"),
        (["--logs", "/"], "/ cannot be read: Is a directory"),
        (["--logs-regex", "/("], "is no pattern"),
        (["--logs-regex", "/no-such-directory/x"], "/no-such-directory cannot be read"),
        (["--logs-regex", "/no-such-file"], "no file in / matches"),
    ],
)
def test_a_bad_option_is_two_lines_and_exit_code_2(arguments: list[str], cause: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert cause in err
    assert "\nfix: " in err
