"""A broker that the whole folder shares, and a console for it without a socket."""

from __future__ import annotations

import gc
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer
from starlette.testclient import TestClient

from kpybroker.client.connect.admin import THREAD
from kpybroker.client.connect.settings import Settings
from kpybroker.console.app import make_app
from kpybroker.console.options import ConsoleOptions
from kpybroker.console.queries import messages
from kpybroker.console.web.live import REQUEST_S_MAX, Live
from kpybroker.testing import Broker
from tests.support.programs.command_line import Result, invoke

MakeClient = Callable[..., TestClient]
HERE = "http://127.0.0.1:8080"
START_S = 180.0
"""A machine that is busy with other tests starts a broker slowly."""


def settings_for(bootstrap: str) -> Settings:
    return Settings(bootstrap, {}, START_S, "the test")


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left_to_later_tests() -> Iterator[None]:
    """Kafka clients end here and not some time later: tests elsewhere count descriptors."""
    of_others = set(threading.enumerate())
    yield
    for thread in threading.enumerate():
        if thread.name == THREAD and thread not in of_others:
            thread.join(START_S)
    gc.collect()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(topics={"orders": 3}, config={"kpybroker.metrics.port": 0}, start_timeout=START_S) as started:
        started.produce("orders", [(f"k{number}", f'{{"total": {number}}}') for number in range(60)])
        yield started


@pytest.fixture
def client(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeClient]:
    """Makes a browser without JavaScript, of a console with the given options; time bounds nothing."""
    monkeypatch.setattr(messages, "SCAN_S_MAX", START_S)
    made: list[TestClient] = []

    def make(peer: str = "127.0.0.1", **options: Any) -> TestClient:
        wanted = ConsoleOptions(settings_for(options.pop("bootstrap", broker.bootstrap_servers)), **options)
        is_reachable = wanted.settings.bootstrap == broker.bootstrap_servers
        live = Live(wanted.settings, page_s_max=START_S, request_s_max=START_S if is_reachable else REQUEST_S_MAX)
        app = make_app(wanted, live)
        made.append(TestClient(app, base_url=HERE, follow_redirects=False, client=(peer, 50_000)))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture(scope="module")
def served(broker: Broker) -> Iterator[str]:
    """The address of a console as a process, without a slash at its end."""
    command = [sys.executable, "-m", "kpybroker", "console", "--port", "0", "-b", broker.bootstrap_servers]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1].rstrip("/")
        process.terminate()


def token_of(page: str) -> str:
    """The token in a page's forms."""
    return page.split('name="token" value="', 1)[1].split('"', 1)[0]


def text_of(page: str) -> str:
    """A page, or a part of one, without its tags."""
    return re.sub(r"<[^>]*>", "", page)


def facts_of(page: str) -> dict[str, str]:
    """What a page sums up: names, and their values as text."""
    return {name: text_of(value) for name, value in re.findall(r"<dt>([^<]+)</dt><dd[^>]*>(.*?)</dd>", page)}


def assigned(broker: Broker, member: Consumer) -> None:
    """Poll until the member has its partitions: librdkafka may not return from `close` with their callback unserved."""

    def has_partitions() -> bool:
        member.poll(0)
        return bool(member.assignment())

    broker.wait_for(has_partitions, 60, "partitions of the member")


def rows_of(page: str, label: str) -> list[list[str]]:
    """The cells of a table's body, without their tags."""
    (body,) = re.findall(rf'aria-label="{label}".*?<tbody>(.*?)</tbody>', page, re.DOTALL)
    rows = re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)
    return [
        [re.sub(r"<[^>]+>", "", cell).strip() for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL)]
        for row in rows
    ]


RunCommand = Callable[[str], Result]


@pytest.fixture
def run_command(monkeypatch: pytest.MonkeyPatch) -> RunCommand:
    """Runs a command as a shell reads it, in this process."""

    def run(text: str) -> Result:
        program, *arguments = shlex.split(text)
        assert program == "kpybroker"
        return invoke(monkeypatch, *arguments)

    return run
