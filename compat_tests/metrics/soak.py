"""A broker under load with `/metrics` scraped every second: does its memory stay flat?

    python -m compat_tests.metrics.soak --minutes 60 --rate 5000 [--partitions 100] [--keep-files]   (make soak-metrics)

A producer writes at a steady rate, a group reads and commits, retention removes what is old, and the page is read by
Prometheus' own parser. A line for each minute, or each tenth of a short run: memory, requests, records, and the time
of a scrape. It fails if the memory after the first tenth has grown by more than 5 %, or if a scrape failed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, Message, Producer

from compat_tests.alerts.scraped import Page, scrape, total
from compat_tests.support import quick
from compat_tests.support.services import Broker
from compat_tests.support.soaks import report, say

TOPIC = "load"
GROUP = "readers"
VALUE = b"x" * 200
GROWTH_MAX = 0.05
SCRAPE_EVERY_S = 1.0
PACE_S = 0.02
KEEP_MS = 60_000
"""How long records stay: the number of segments is steady long before a tenth of the hour has passed."""
REQUESTS = "kafka_network_requestmetrics_requests_total"
RESIDENT = "process_resident_memory_bytes"


class Sample(NamedTuple):
    """One scrape. `at_s` is from the begin of the load; `took_s` with the parsing."""

    at_s: float
    took_s: float
    resident: float
    requests: float
    records: float
    lag: float


class Load:
    """A producer and a consumer in a group, each in a thread."""

    def __init__(self, bootstrap: str, rate: int) -> None:
        self.problems: list[str] = []
        self._rate = rate
        self._ended = threading.Event()
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **quick.QUIET})
        group = {"group.id": GROUP, "auto.offset.reset": "earliest", "auto.commit.interval.ms": 1000}
        self._consumer = Consumer({"bootstrap.servers": bootstrap, **group, **quick.QUIET})
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._write, self._read)]

    def start(self) -> None:
        """Both begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Returns when both have ended."""
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _write(self) -> None:
        begun, sent = time.monotonic(), 0
        while not self._ended.is_set():
            for _ in range(int((time.monotonic() - begun) * self._rate) - sent):
                try:
                    self._producer.produce(TOPIC, VALUE, on_delivery=self._reported)
                except BufferError:
                    break
                sent += 1
            self._producer.poll(PACE_S)
        self._producer.flush(quick.DEADLINE_S)

    def _reported(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self.problems.append(f"a record was not written: {error}")

    def _read(self) -> None:
        self._consumer.subscribe([TOPIC])
        while not self._ended.is_set():
            for message in self._consumer.consume(1000, 0.2):
                if message.error() is not None:
                    self.problems.append(f"a consumer's error: {message.error()}")
        self._consumer.close()


def sample(broker: Broker, begun: float) -> Sample | None:
    """None: the page could not be read."""
    before = time.monotonic()
    page: Page = scrape({"broker": broker})
    after = time.monotonic()
    if not total(page, "up"):
        return None
    records = total(page, "kafka_log_log_logendoffset", topic=TOPIC)
    lag = total(page, "kafka_consumergroup_lag_sum", consumergroup=GROUP)
    return Sample(before - begun, after - before, total(page, RESIDENT), total(page, REQUESTS), records, lag)


def watch(broker: Broker, length_s: float, problems: list[str]) -> list[Sample]:
    """Scrape every second for so long, and print a line now and then."""
    begun = time.monotonic()
    samples: list[Sample] = []
    every_s = min(60.0, length_s / 10)
    said = 0
    while (elapsed := time.monotonic() - begun) < length_s:
        found = sample(broker, begun)
        if found is None:
            problems.append(f"the scrape after {elapsed:.0f} s failed")
            if not broker.service.running:
                break
        else:
            samples.append(found)
            if found.at_s >= (said + 1) * every_s:
                said = int(found.at_s / every_s)
                say(line(samples, every_s))
        time.sleep(max(0.0, SCRAPE_EVERY_S - (time.monotonic() - begun - elapsed)))
    return samples


def line(samples: list[Sample], window_s: float) -> str:
    """What the last seconds were like."""
    last = samples[-1]
    recent = [one for one in samples if one.at_s >= last.at_s - window_s]
    first = recent[0]
    elapsed_s = max(last.at_s - first.at_s, SCRAPE_EVERY_S)
    times_ms = sorted(one.took_s * 1000 for one in recent)
    return (
        f"{last.at_s / 60:6.1f} min  RSS {last.resident / 1e6:6.1f} MB"
        f"  {(last.requests - first.requests) / elapsed_s:7.0f} requests/s"
        f"  {(last.records - first.records) / elapsed_s:7.0f} records/s  lag {last.lag:6.0f}"
        f"  scrape {median(times_ms):5.0f} ms, longest {times_ms[-1]:5.0f} ms"
    )


def growth(samples: list[Sample]) -> tuple[float, float]:
    """Resident bytes after the first tenth of the time and at the end: medians of a tenth of the samples each."""
    tenth = max(len(samples) // 10, 1)
    after_first, at_end = samples[tenth : 2 * tenth] or samples, samples[-tenth:]
    return median(one.resident for one in after_first), median(one.resident for one in at_end)


def verdict(samples: list[Sample]) -> tuple[list[str], str]:
    """The problems, and what to say if there are none."""
    if len(samples) < 20:
        return [f"only {len(samples)} scrapes"], ""
    begin, end = growth(samples)
    change = f"RSS {begin / 1e6:.1f} MB after the first tenth, {end / 1e6:.1f} MB at the end: {end / begin - 1:+.1%}"
    done = f"{len(samples)} scrapes, {samples[-1].records:.0f} records; {change}"
    problems = [change] if end > begin * (1 + GROWTH_MAX) else []
    if samples[-1].records == samples[0].records:
        problems.append("no record was written")
    return problems, done


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rate", type=int, default=5000, help="records a second")
    parser.add_argument("--partitions", type=int, default=100)
    parser.add_argument("--keep-files", action="store_true")
    options = parser.parse_args()
    options.seed = 0
    directory = Path(tempfile.mkdtemp(prefix="soak-metrics-"))
    keys = {"kpybroker.metrics.port": "0", "log.retention.check.interval.ms": "5000"}
    broker = Broker("kpybroker", directory / "broker", None, keys)
    broker.start()
    try:
        config = {"retention_ms": KEEP_MS, "segment_ms": KEEP_MS // 4, "segment_bytes": 10_000_000}
        quick.create_topic(broker.bootstrap, TOPIC, options.partitions, **config)
        load = Load(broker.bootstrap, options.rate)
        load.start()
        problems: list[str] = []
        samples = watch(broker, options.minutes * 60, problems)
        load.stop()
        found, done = verdict(samples)
    finally:
        broker.service.stop()
    return report([*problems, *load.problems[:5], *found], directory, options, done)


if __name__ == "__main__":
    sys.exit(main())
