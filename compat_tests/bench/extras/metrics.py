"""`make bench-metrics`: what metrics cost a request, and what a scrape of 10 000 partitions costs.

    python -m compat_tests.bench.extras.metrics [--quick] [--rounds N] [--only WORDS] [--dir DIRECTORY]

Two brokers run at the same time on one core, one without and one with `kpybroker.metrics.port`, whose page is read
every second; one client at a time has another core. They take turns; the broker that begins does too. The first table
has the median over the rounds of the rate and of the broker's CPU with metrics, divided by those without.

The second part reads the page of a broker with 10 000 partitions, and asks the broker how long its loop was held
for it: no request waits longer. Exits with 1 when a bar is missed; the bar of the first table is of its CPU, which
other work on the machine changes less.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from operator import truediv
from pathlib import Path
from statistics import median
from urllib.request import urlopen

from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.bench.load.clients import Run
from compat_tests.bench.load.workloads import (
    RAW_BATCH,
    Sample,
    Workload,
    consume,
    fill_consumed_topic,
    kcat_consumer,
    one_record,
    produce,
    raw_batches,
)
from compat_tests.bench.measuring import command
from compat_tests.bench.measuring.brokers import Cores, scratch_directory, stock_broker
from compat_tests.bench.measuring.costs import come_to_rest, loop_stall
from compat_tests.bench.measuring.report import Table
from compat_tests.support.services import Broker
from compat_tests.support.waiting import eventually
from tests.support.network.ports import free_port

ROUNDS = 15
SCALE, QUICK_SCALE = 0.4, 0.02
COST_MAX = 0.02
SCRAPE_EVERY_S = 1.0
TOPICS, PARTITIONS_EACH = 10, 1000
SCRAPES = 20
SCRAPE_MS_MAX, WAIT_MS_MAX = 300.0, 20.0
OFF, ON = "off", "on"

WORKLOADS = (
    produce("one-record requests, 1 connection, /s", one_record(1)),
    produce("one-record requests, 32 connections, /s", one_record(32)),
    produce("produce, 16 KB batches, MB/s", raw_batches(**RAW_BATCH)),
    consume("kcat fetch, warm, MB/s", kcat_consumer(cold=False)),
)
BOUNDED = "one-record"
"""The workloads that the bar is for."""

Samples = dict[tuple[str, str], list[Sample]]
"""By the name of a workload's figure and of the broker."""


class Scraping:
    """Reads a page every second until it is left, on a thread."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_exc: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(SCRAPE_EVERY_S):
            page_bytes(self._url)


def page_bytes(url: str) -> int:
    """The size of the page, all of it read."""
    with urlopen(url) as page:
        return len(page.read())


@contextmanager
def measured_broker(directory: Path, core: tuple[int, ...], port: int | None) -> Iterator[Broker]:
    """Running, with metrics at the port."""
    overrides = {} if port is None else {"kpybroker.metrics.port": str(port)}
    broker = stock_broker("kpybroker", directory, None, core, overrides)
    broker.start()
    try:
        yield broker
    finally:
        broker.service.kill()


def compare(
    directory: Path, cores: Cores, clock: command.Clock, rounds: int, scale: float, chosen: list[Workload]
) -> Samples:
    """Every round's samples but those of the first."""
    found: Samples = {}
    port = free_port()
    with (
        measured_broker(directory / OFF, cores.broker, None) as off,
        measured_broker(directory / ON, cores.broker, port) as on,
        Scraping(f"http://127.0.0.1:{port}/metrics"),
    ):
        running: Mapping[str, Broker] = {OFF: off, ON: on}
        for name, broker in running.items():
            fill_consumed_topic(Run(broker, cores.client, f"fill-{name}", scale))
        for number in range(1 + rounds):
            for workload in chosen:
                figure = workload.figures[0].name
                for name in (OFF, ON) if number % 2 else (ON, OFF):
                    sample = workload.run(Run(running[name], cores.client, f"metrics-{number}", scale))
                    if number:
                        found.setdefault((figure, name), []).append(sample)
            clock.say(f"round {number}")
    return found


def costs(found: Samples, chosen: list[Workload]) -> tuple[Table, list[str]]:
    """A line for each workload, and what misses its bar."""
    rows, missed = [], []
    for workload in chosen:
        figure = workload.figures[0].name
        off, on = found[figure, OFF], found[figure, ON]
        rate = median(truediv(b.values[0], a.values[0]) for a, b in zip(off, on, strict=True))
        cpu = median(truediv(b.cpu or 0.0, a.cpu or 1.0) for a, b in zip(off, on, strict=True))
        rows.append([figure, f"{median(sample.values[0] for sample in off):,.1f}", f"{rate:.3f}", f"{cpu:.3f}"])
        if figure.startswith(BOUNDED) and cpu > 1 + COST_MAX:
            missed.append(f"{figure}: {cpu - 1:.1%} more CPU")
    return Table(["", "without metrics", "rate with metrics, x", "CPU with metrics, x"], rows), missed


def scrapes(directory: Path, cores: Cores) -> tuple[Table, list[str]]:
    """Of 10 000 partitions: the table, and what misses its bar."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/metrics"
    with measured_broker(directory / "many", cores.broker, port) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for number in range(TOPICS):
            made = admin.create_topics([NewTopic(f"many-{number}", PARTITIONS_EACH, 1)], request_timeout=120)
            made[f"many-{number}"].result()
        last = f"kafka_server_replicamanager_partitioncount {TOPICS * PARTITIONS_EACH}".encode()
        eventually(lambda: last in urlopen(url).read(), "all partitions")
        come_to_rest([broker.service.pid])
        loop_stall(broker)
        size = page_bytes(url)
        times = []
        for _ in range(SCRAPES):
            began_s = time.perf_counter()
            page_bytes(url)
            times.append((time.perf_counter() - began_s) * 1000)
            time.sleep(SCRAPE_EVERY_S / 2)
        stall = loop_stall(broker)
    rows = [[f"{size / 1e6:.1f}", f"{min(times):.0f}", f"{median(times):.0f}", f"{max(times):.0f}"]]
    rows[0] += [f"{stall.p99_9_ms:g}", f"{stall.longest_ms:.1f}"]
    missed = []
    if median(times) > SCRAPE_MS_MAX:
        missed.append(f"a scrape takes {median(times):.0f} ms")
    if stall.longest_ms > WAIT_MS_MAX:
        missed.append(f"the loop was held for {stall.longest_ms:.1f} ms")
    head = ["MB of the page", "ms, least", "median", "most", "loop held, p99.9 ms", "longest, ms"]
    return Table(head, rows), missed


def main() -> int:
    """Measure and print; nothing is written."""
    options = command.parser(__doc__, ROUNDS).parse_args()
    rounds = options.rounds or (1 if options.quick else ROUNDS)
    scale = QUICK_SCALE if options.quick else SCALE
    chosen = [workload for workload in WORKLOADS if options.only in workload.figures[0].name]
    clock, apart, _ = command.prepare()
    missed: list[str] = []
    with scratch_directory(options.dir) as scratch:
        if chosen:
            table, missed = costs(compare(scratch, apart, clock, rounds, scale, chosen), chosen)
            print(table.markdown(), flush=True)
        table, late = scrapes(scratch, apart)
        print(table.markdown())
    for line in missed + late:
        print(f"bench-metrics: missed: {line}", file=sys.stderr)
    return 1 if missed or late else 0


if __name__ == "__main__":
    sys.exit(main())
