"""Ten thousand partitions: pages stay small, and cost the console and the broker little."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from typing import NamedTuple

import psutil
import pytest
from confluent_kafka.admin import NewTopic

from compat_tests.console.conftest import START_S
from kpybroker.testing import Broker

TOPICS, PARTITIONS = 100, 100
PAGE_BYTES_MAX = 100_000
CONSOLE_CPU_S_MAX = 2.0
"""Of a page; measured are 0.02 to 0.2 s. So wide because the machine may be busy with other tests."""
CONSOLE_BYTES_MAX = 300 << 20


class Crowded(NamedTuple):
    address: str
    console: psutil.Process


@pytest.fixture(scope="module")
def crowded() -> Iterator[Crowded]:
    """A console of a broker with a hundred topics of a hundred partitions."""
    with Broker(start_timeout=START_S) as broker:
        admin = broker.admin()
        names = [f"t{number:03}" for number in range(TOPICS)]
        for first in range(0, TOPICS, 10):
            new = [NewTopic(name, PARTITIONS) for name in names[first : first + 10]]
            for future in admin.create_topics(new, operation_timeout=START_S, request_timeout=START_S).values():
                future.result()
        command = [sys.executable, "-m", "kpybroker", "console", "--port", "0", "-b", broker.bootstrap_servers]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            yield Crowded(process.stdout.readline().split()[-1].rstrip("/"), psutil.Process(process.pid))
            process.terminate()


PATHS = (
    "/",
    "/topics",
    "/topics?sizes=1",
    "/topics?page=2&problems=1",
    "/topics/t000",
    "/topics/t000/messages",
    "/topics/t000/groups",
    "/replication",
    "/log-dirs",
    "/groups?lag=1",
    "/transactions?topic=t000",
)


@pytest.mark.wide
@pytest.mark.parametrize("path", PATHS)
def test_a_page(crowded: Crowded, path: str) -> None:
    before = crowded.console.cpu_times()
    with urllib.request.urlopen(crowded.address + path) as response:
        page = response.read()
    after = crowded.console.cpu_times()
    spent = after.user + after.system - before.user - before.system
    print(f"{path}: {len(page)} bytes, {spent:.2f} s of the console's processor time")
    assert b"did not respond" not in page
    assert len(page) < PAGE_BYTES_MAX
    assert spent < CONSOLE_CPU_S_MAX
    assert crowded.console.memory_info().rss < CONSOLE_BYTES_MAX
