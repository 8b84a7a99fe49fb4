"""Completion of names from the cluster."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.client.conftest import Run


def completed(words: str, bootstrap: str) -> list[str]:
    """What bash would offer for the last word."""
    environment = {
        **os.environ,
        "_KPYBROKER_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
        "KPYBROKER_BOOTSTRAP_SERVERS": bootstrap,
    }
    done = subprocess.run([sys.executable, "-m", "kpybroker"], env=environment, capture_output=True, text=True)
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_commands_options_and_topics(run: Run, bootstrap: str, name: str) -> None:
    run("topic", "create", name)
    assert completed("kpybroker tra", bootstrap) == ["transaction"]
    assert completed("kpybroker topic c", bootstrap) == ["consume", "create"]
    assert completed("kpybroker topic describe --f", bootstrap) == ["--format"]
    assert completed(f"kpybroker topic describe {name[:5]}", bootstrap) == [name]


def test_no_cluster_is_no_error() -> None:
    assert completed("kpybroker topic describe x", "127.0.0.1:1") == []


@pytest.mark.parametrize("words", ["kpybroker group describe ", "kpybroker group seek "])
def test_groups(run: Run, bootstrap: str, name: str, words: str) -> None:
    run("topic", "create", name)
    run("topic", "produce", name, stdin=b"x\n")
    assert run("topic", "consume", name, "-g", name, "-n", "1").code == 0
    assert completed(words + name[:6], bootstrap) == [name]
