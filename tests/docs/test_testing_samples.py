"""The samples of the guides to tests in Python and to a cluster that fails do what these say."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kpybroker.control.requests.request_log import ANSWERED
from tests.support.programs.pytest_runs import run_pytest
from tests.support.programs.samples import environment, run_sample, text_of

needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


@pytest.mark.parametrize(
    ("sample", "printed"),
    [
        ("first.py", "0 None first\n1 b'key' {\"amount\": 5}\n"),
        (
            "look.py",
            "3\n['1', '4', '7']\n{'orders': {0: 3, 1: 3, 2: 3}}\n{'orders': (0, 1, 2)}\n" + f"{ANSWERED}\n",
        ),
        (
            "faults.py",
            "errors: 2\nlost responses: 1\nbefore: 2\nafter: ['tried three times', 'written once', 'late']\n",
        ),
        ("clock.py", "[]\n"),
        ("queues.py", "first: 1\nagain: b'resize' 2\n"),
        ("snapshot.py", "['kept']\n"),
        ("waiting.py", "b'one'\n"),
        (
            "secured.py",
            "users: alice, bob, admin\nalice: TOPIC_AUTHORIZATION_FAILED\nbob: written\n"
            "settings for Java: SCRAM-SHA-256\n",
        ),
        ("registry.py", "{'id': 7}\n['orders-value']\n"),
        ("client_metrics.py", "slow: True\nclient: confluent-kafka-python\n"),
        ("brokers.py", "another controller: True\nbrokers: [1, 2, 3]\n"),
        ("leaders.py", "leader: 2\nwritten: 1 visible: 0\nvisible: 1\nin sync: (0,)\n"),
        ("network.py", "['before', 'after']\n"),
        (
            "disk.py",
            "outcomes: ['KAFKA_STORAGE_ERROR', None, None, None]\nafter the crash: ['one', 'two']\n",
        ),
    ],
)
def test_a_sample_prints_what_it_should(tmp_path: Path, sample: str, printed: str) -> None:
    assert run_sample(f"testing/{sample}", tmp_path, {}) == printed


@pytest.mark.parametrize(
    ("sample", "printed"),
    [
        ("lost_response.py", "broken ['one', 'two', 'two', 'three']\nfixed ['one', 'two', 'three']\n"),
        ("predicate.py", "[b'bob', b'carol']\n"),
        ("from_a_file.py", "errors: 2\nrecords: 1\n"),
        (
            "trace.py",
            "received: paid\n"
            + f"OffsetFetch {ANSWERED} COORDINATOR_LOAD_IN_PROGRESS\n" * 2
            + f"OffsetFetch {ANSWERED}\n",
        ),
    ],
)
def test_a_sample_of_the_guide_to_faults(tmp_path: Path, sample: str, printed: str) -> None:
    (tmp_path / "faults.yaml").write_text(text_of("faults/faults.yaml", {}))
    assert run_sample(f"faults/{sample}", tmp_path, {}) == printed


def in_a_shell(sample: str, directory: Path, *arguments: str) -> str:
    """What a sample prints that calls the control channel of `kpybroker dev`."""
    command = [sys.executable, "-m", "kpybroker", "dev", "--port", "0", "--control", "0", "--ephemeral", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment(directory / "data")) as broker:
        assert broker.stdout is not None
        try:
            control = re.search(r"control=http://(\S+)", broker.stdout.readline())
            assert control is not None
            return run_sample(sample, directory, {"127.0.0.1:9099": control[1]})
        finally:
            broker.terminate()


@needs_curl
def test_a_cluster_fails_in_a_shell(tmp_path: Path) -> None:
    printed = in_a_shell("testing/cluster.sh", tmp_path, "--brokers", "3")
    assert '"id": 2, "state": "up"' in printed
    assert '"Fetch": [0, 11]' in printed
    assert '"error"' not in printed


@needs_curl
def test_the_channel_in_a_shell(tmp_path: Path) -> None:
    printed = in_a_shell("testing/control.sh", tmp_path)
    assert '[{"partition": 0, "offset": 0}]' in printed
    assert '"value": "one"' in printed
    assert '"error"' not in printed
    added = in_a_shell("faults/over_http.sh", tmp_path)
    assert re.match(r'\{"id": (\d+)\}\[\{"id": \1, "match": \{"api": "Produce", "topic": "orders"\}', added)


def test_the_settings_of_pytest(tmp_path: Path) -> None:
    ini = text_of("testing/pytest.ini", {}).removeprefix("[pytest]\n")
    tests = """
def test_it(kafka_broker):
    kafka_broker.produce("made", ["x"])
    assert len(kafka_broker.topics()["made"].partitions) == 3
"""
    run = run_pytest(tmp_path, tests, ini=ini)
    assert run.counts["passed"] == 1, run.output


def test_a_test_with_types(tmp_path: Path) -> None:
    """mypy and pyright look at it in compat_tests/testing/test_types.py."""
    run = run_pytest(tmp_path, text_of("testing/typed.py", {}))
    assert run.counts == {"passed": 2}, run.output


def test_a_produce_that_timed_out_is_followed_through_three_logs(tmp_path: Path) -> None:
    def shape(text: str) -> str:
        return re.sub(r"[\d.]+", "N", text)

    printed = run_sample("logs/timed_out.py", tmp_path, {})
    shown = text_of("logs/timed_out.txt", {})
    assert shape(printed) == shape(shown)
    ids = re.findall(r"correlation_id=(\d+)", printed)
    assert len(ids) == 3  # the produce, and two fetches
