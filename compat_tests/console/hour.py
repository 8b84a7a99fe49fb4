"""`make console-hour`: a console of a large cluster for an hour, without a page and with ten that follow.

    python -m compat_tests.console.hour [--minutes 60] [--topics 100] [--groups 1000]

The cluster has 100 topics of 100 partitions and 1 000 groups; a producer writes RECORDS_S records a second. In the
first half no page is open. In the second there are ten: each follows a topic, and asks every LIVE_S for the live part
of a page, as a browser does. Then a browser opens pages one after the other.

Prints a line a minute, then a verdict of each limit, and exits with 1 where one is broken: memory and how much it grew
over the last two thirds of a half, processor time, first paint (median). Memory and processor time are those of the
console and its children.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import Final, NamedTuple
from urllib.parse import quote

import psutil
from confluent_kafka.admin import NewTopic
from playwright.sync_api import Page, sync_playwright

from compat_tests.console.conftest import CHROMIUM, START_S
from kpybroker.client.connect.settings import Settings
from kpybroker.client.connect.wire import GROUP, WireCluster
from kpybroker.testing import Broker
from kpybroker.wire.api import ApiKey
from kpybroker.wire.messages.offset_commit import OffsetCommitRequest

PARTITIONS: Final = 100
VIEWERS: Final = 10
RECORDS_S: Final = 20
LIVE_S: Final = 5.0
SAMPLE_S: Final = 5.0
PAINTS: Final = 11
PAINTED: Final = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
PAGES: Final = ("/", "/topics?sizes=1", "/groups?lag=1", "/topics/t000", "/topics/t000/messages", "/replication")
MEMORY_MIB_MAX: Final = 150.0
GROWTH_MIB_MAX: Final = 5.0
"""Between the means of the second and of the last third of a half."""
IDLE_CPU_MAX, BUSY_CPU_MAX = 0.05, 0.30
PAINT_S_MAX: Final = 0.5


class Sample(NamedTuple):
    """Of the console and its children: resident memory, and processor time since they started."""

    at: float
    mib: float
    cpu_s: float


class Half(NamedTuple):
    """What a half used."""

    name: str
    samples: list[Sample]

    @property
    def most_mib(self) -> float:
        """The largest sample."""
        return max(one.mib for one in self.samples)

    @property
    def growth_mib(self) -> float:
        """From the second third to the last."""
        third = max(1, len(self.samples) // 3)
        early, late = self.samples[third : 2 * third] or self.samples[:1], self.samples[-third:]
        return sum(one.mib for one in late) / len(late) - sum(one.mib for one in early) / len(early)

    @property
    def cores(self) -> float:
        """Processor time of each second."""
        first, last = self.samples[0], self.samples[-1]
        return (last.cpu_s - first.cpu_s) / max(1e-9, last.at - first.at)


@contextmanager
def crowded(topics: int, groups: int) -> Iterator[Broker]:
    """A broker with so many topics and groups."""
    with Broker(start_timeout=START_S) as broker:
        names = [f"t{number:03}" for number in range(topics)]
        admin = broker.admin()
        for first in range(0, topics, 10):
            new = [NewTopic(name, PARTITIONS) for name in names[first : first + 10]]
            for future in admin.create_topics(new, operation_timeout=START_S, request_timeout=START_S).values():
                future.result()
        _commit(broker.bootstrap_servers, names, groups)
        yield broker


def _commit(bootstrap: str, topics: Sequence[str], groups: int) -> None:
    """Groups without members, each with a committed offset in ten partitions of a topic."""
    parts = [
        OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=number, committed_offset=0)
        for number in range(10)
    ]
    with WireCluster(Settings(bootstrap, {}, START_S, "the hour")) as wire:
        for number in range(groups):
            topic = topics[number % len(topics)]
            request = OffsetCommitRequest(
                group_id=f"g{number:04}",
                topics=[OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=parts)],
            )
            wire.coordinator(request.group_id, GROUP).request(ApiKey.OFFSET_COMMIT, request)


@contextmanager
def written(broker: Broker) -> Iterator[None]:
    """Records go into all partitions of the first topic."""
    over = threading.Event()

    def write() -> None:
        producer = broker.producer(linger_ms=0)
        number = 0
        while not over.wait(1 / RECORDS_S):
            producer.produce("t000", f'{{"number": {number}}}', f"key-{number}", partition=number % PARTITIONS)
            producer.poll(0)
            number += 1
        producer.flush()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Viewer:
    """One open page: its events are read, and its live part is asked for again and again."""

    def __init__(self, address: str, number: int, over: threading.Event) -> None:
        self.events = 0
        self.pages = 0
        self.failures: list[str] = []
        self._over = over
        self._follow = f"{address}/topics/t000/follow?partitions={quote(f'{number * 10}-{number * 10 + 9}')}"
        self._page = address + PAGES[number % len(PAGES)]
        self._threads = [threading.Thread(target=one, daemon=True) for one in (self._read_events, self._read_pages)]
        for thread in self._threads:
            thread.start()

    def _read_events(self) -> None:
        while not self._over.is_set():
            try:
                with urllib.request.urlopen(self._follow, timeout=30) as response:
                    for line in response:
                        self.events += line.startswith(b"event: message")
                        if b"event: failed" in line:
                            self.failures.append("following failed")
                        if self._over.is_set():
                            return
            except OSError as error:
                self.failures.append(f"{self._follow}: {error}")
                self._over.wait(1)

    def _read_pages(self) -> None:
        while not self._over.wait(LIVE_S):
            try:
                with urllib.request.urlopen(self._page, timeout=30) as response:
                    response.read()
                self.pages += 1
            except OSError as error:
                self.failures.append(f"{self._page}: {error}")

    def join(self) -> None:
        """Wait until it has gone."""
        for thread in self._threads:
            thread.join(timeout=40)


def sampled(console: psutil.Process, name: str, seconds: float) -> Half:
    """Look at the console for so long."""
    half = Half(name, [])
    end, said = time.monotonic() + seconds, time.monotonic()
    while True:
        half.samples.append(_sample(console))
        if time.monotonic() - said >= 60:
            said = time.monotonic()
            print(f"{name}: {half.samples[-1].mib:.1f} MiB, {half.cores:.3f} cores", flush=True)
        if time.monotonic() >= end:
            return half
        time.sleep(SAMPLE_S)


def _sample(console: psutil.Process) -> Sample:
    mib = cpu_s = 0.0
    for process in (console, *console.children(recursive=True)):
        times = process.cpu_times()
        mib += process.memory_info().rss / (1 << 20)
        cpu_s += times.user + times.system
    return Sample(time.monotonic(), mib, cpu_s)


def paints(address: str) -> dict[str, float]:
    """Seconds until each page is first painted, the median of some visits of one browser."""
    found: dict[str, float] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for path in PAGES:
            visits = []
            for _ in range(PAINTS):
                page = browser.new_page()
                page.goto(address + path)
                visits.append(painted_s(page))
                page.close()
            found[path] = median(visits)
        browser.close()
    return found


def painted_s(page: Page) -> float:
    """Seconds from the navigation to the first paint; the page's policy lets no function be waited for."""
    while (at := page.evaluate(PAINTED)) is None:
        page.wait_for_timeout(50)
    return float(at) / 1000


def judged(halves: Sequence[Half], painted: dict[str, float]) -> bool:
    """Print what was measured next to its limit; whether all limits hold."""
    rows: list[tuple[str, float, float, str]] = []
    for half, cores_max in zip(halves, (IDLE_CPU_MAX, BUSY_CPU_MAX), strict=True):
        rows.append((f"{half.name}: memory", half.most_mib, MEMORY_MIB_MAX, "MiB"))
        rows.append((f"{half.name}: growth", half.growth_mib, GROWTH_MIB_MAX, "MiB"))
        rows.append((f"{half.name}: processor", half.cores * 100, cores_max * 100, "% of a core"))
    rows += [(f"first paint of {path}", seconds, PAINT_S_MAX, "s") for path, seconds in painted.items()]
    for name, value, most, unit in rows:
        print(f"{'holds ' if value <= most else 'BROKEN'} {name}: {value:.2f} {unit}, at most {most:g}")
    return all(value <= most for _, value, most, _ in rows)


def main(arguments: Sequence[str]) -> int:
    """The command. 1 where a limit is broken or a viewer saw a failure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--groups", type=int, default=1000)
    options = parser.parse_args(arguments)
    with ExitStack() as stack:
        broker = stack.enter_context(crowded(options.topics, options.groups))
        stack.enter_context(written(broker))
        command = [sys.executable, "-m", "kpybroker", "console", "--port", "0", "-b", broker.bootstrap_servers]
        process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        stack.callback(process.terminate)
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1].rstrip("/")
        console = psutil.Process(process.pid)
        for path in PAGES:  # what a first visit loads is not counted as growth
            urllib.request.urlopen(address + path, timeout=30).read()
        idle = sampled(console, "no page", options.minutes * 30)
        over = threading.Event()
        viewers = [Viewer(address, number, over) for number in range(VIEWERS)]
        busy = sampled(console, f"{VIEWERS} that follow", options.minutes * 30)
        over.set()
        for viewer in viewers:
            viewer.join()
        print(f"events {[one.events for one in viewers]}, pages {[one.pages for one in viewers]}")
        failures = [text for one in viewers for text in one.failures]
        print("failures:", *(failures[:10] or ["none"]), sep="\n  ")
        is_right = judged((idle, busy), paints(address))
    return 0 if is_right and not failures and all(one.events and one.pages for one in viewers) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
