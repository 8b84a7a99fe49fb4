"""The samples of the guide to tests in Python do what the guide says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pytest_runs import run_pytest
from tests.support.samples import environment, run_sample, text_of

needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


@pytest.mark.parametrize(
    ("sample", "printed"),
    [
        ("first.py", "0 None first\n1 b'key' {\"amount\": 5}\n"),
        (
            "look.py",
            "3\n['1', '4', '7']\n{'orders': {0: 3, 1: 3, 2: 3}}\n{'orders': (0, 1, 2)}\nanswered\n",
        ),
        (
            "faults.py",
            "errors: 2\nlost responses: 1\nbefore: 2\nafter: ['tried three times', 'written once', 'late']\n",
        ),
        ("clock.py", "[]\n"),
        ("snapshot.py", "['kept']\n"),
        ("waiting.py", "b'one'\n"),
    ],
)
def test_a_sample_prints_what_it_should(tmp_path: Path, sample: str, printed: str) -> None:
    assert run_sample(f"testing/{sample}", tmp_path, {}) == printed


@needs_curl
def test_the_channel_in_a_shell(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kpybroker", "dev", "--port", "0", "--control", "0", "--ephemeral"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment(tmp_path / "data")) as broker:
        assert broker.stdout is not None
        try:
            control = re.search(r"control=http://(\S+)", broker.stdout.readline())
            assert control is not None
            printed = run_sample("testing/control.sh", tmp_path, {"127.0.0.1:9099": control[1]})
        finally:
            broker.terminate()
    assert '[{"partition": 0, "offset": 0}]' in printed
    assert '"value": "one"' in printed
    assert '"error"' not in printed


def test_the_settings_of_pytest(tmp_path: Path) -> None:
    ini = text_of("testing/pytest.ini", {}).removeprefix("[pytest]\n")
    tests = """
def test_it(kafka_broker):
    kafka_broker.produce("made", ["x"])
    assert len(kafka_broker.topics()["made"].partitions) == 3
"""
    run = run_pytest(tmp_path, tests, ini=ini)
    assert run.counts["passed"] == 1, run.output
