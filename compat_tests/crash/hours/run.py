"""Hours of mixed load on one broker: are memory and descriptors flat, and is the last hour as quick as the second?

    python -m compat_tests.crash.hours.run --hours 8 [--lives 8] [--no-java] [--keep-files]       (make soak-hours)

Clients of every kind (`clients`), compaction and retention, a console with a page that is asked for again and again, a
scraper every second, and a restart in order at the end of each of the `lives`. A line a minute, or a twentieth of a
life: memory, descriptors, what each client has done, and the median of one record at a time.

It fails if a life's memory or descriptors, by the median of its last third, are more than 5 % above the second life's
(or, within a life, above those of its second third), if a client saw a gap or a fatal error, or if one did nothing for
a whole life. Latencies of both lives are said, with the time that the host took away next to them, and judged only
where that was as much in both.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import NamedTuple

import psutil

from compat_tests.alerts.scraped import scrape, total
from compat_tests.bench.measuring.costs import Machine
from compat_tests.crash.hours.clients import Prober, Problems, Worker, ends, every_client, make_topics
from compat_tests.support.services import Broker, Service, kpybroker_executable
from compat_tests.support.soaks import report, say
from tests.support.network.ports import free_port

GROWTH_MAX, SLOWER_MAX = 0.05, 0.15
SCRAPE_EVERY_S, PAGE_EVERY = 1.0, 5
LINES_A_LIFE = 20
CONSOLE_PAGES = ("/", "/topics", "/groups")
STOLEN_DIFFERENCE_MAX = 0.05
SPARE_DESCRIPTORS = 5
KEYS = {
    "kpybroker.metrics.port": "0",
    "log.retention.check.interval.ms": "10000",
    "log.cleaner.backoff.ms": "5000",
    "log.segment.delete.delay.ms": "5000",
}


class Sample(NamedTuple):
    """One look at the broker's processes. `at_s` is from the begin of the life."""

    at_s: float
    memory: float
    descriptors: int


class Life(NamedTuple):
    """From a start of the broker to its stop."""

    samples: list[Sample]
    took_ms: list[float]
    stolen: float

    def third(self, number: int) -> list[Sample]:
        """The first (0) to the last (2)."""
        size = max(1, len(self.samples) // 3)
        return self.samples[number * size : (number + 1) * size] or self.samples[-1:]

    def memory(self, number: int) -> float:
        return median(one.memory for one in self.third(number))

    def descriptors(self, number: int) -> float:
        return median(one.descriptors for one in self.third(number))


class Soak:
    """A broker with everything that is attached to it."""

    def __init__(self, directory: Path, problems: Problems, java: bool) -> None:
        self.broker = Broker("kpybroker", directory / "broker", None, KEYS)
        self.broker.start()
        self._problems = problems
        make_topics(self.broker.bootstrap)
        self.clients: list[Worker] = list(every_client(self.broker.bootstrap, problems, java=java))
        self.prober = next(one for one in self.clients if isinstance(one, Prober))
        port = free_port()
        console = [str(kpybroker_executable()), "console", "--port", str(port), "-b", self.broker.bootstrap]
        self._console = Service("console", console, directory)
        self._console.start(lambda output: "http://" in output)
        self._pages = [f"http://127.0.0.1:{port}{path}" for path in CONSOLE_PAGES]
        for client in self.clients:
            client.start()

    def live(self, seconds: float, name: str) -> Life:
        """Look on for so long."""
        begin, machine = time.monotonic(), Machine()
        before = {client: client.done for client in self.clients}
        samples: list[Sample] = []
        took_ms: list[float] = []
        said, looks = 0, 0
        while (at_s := time.monotonic() - begin) < seconds:
            self._scrape(looks)
            looks += 1
            samples.append(self._sample(at_s))
            if at_s >= (said + 1) * seconds / LINES_A_LIFE:
                said = int(at_s * LINES_A_LIFE / seconds)
                recent = self.prober.taken()
                took_ms += recent
                self._say(name, samples[-1], recent)
            time.sleep(max(0.0, SCRAPE_EVERY_S - (time.monotonic() - begin - at_s)))
        for client, done in before.items():
            if client.done == done and client.name not in ("kcat", "Kafka's producer", "Kafka's consumer"):
                self._problems.add(f"{client.name} did nothing in {name}")
        return Life(samples, [*took_ms, *self.prober.taken()], machine.share_stolen())

    def _scrape(self, looks: int) -> None:
        if not total(scrape({"broker": self.broker}), "up"):
            self._problems.add("a scrape failed")
        if looks % PAGE_EVERY == 0:
            with suppress(OSError):
                urllib.request.urlopen(self._pages[looks // PAGE_EVERY % len(self._pages)], timeout=30).read()

    def _sample(self, at_s: float) -> Sample:
        process = psutil.Process(self.broker.service.pid)
        memory, descriptors = process.memory_info().rss, process.num_fds()
        for child in process.children(recursive=True):
            with suppress(psutil.Error):
                memory += child.memory_info().rss
                descriptors += child.num_fds()
        return Sample(at_s, memory / 1e6, descriptors)

    def _say(self, name: str, sample: Sample, took_ms: Sequence[float]) -> None:
        done = ", ".join(f"{client.name} {client.done}" for client in self.clients)
        p50 = f"{median(took_ms):.1f} ms" if took_ms else "-"
        say(
            f"{name} {sample.at_s / 60:6.1f} min  {sample.memory:6.1f} MB  {sample.descriptors} descriptors  "
            f"one record {p50}  ({done})"
        )

    def end(self) -> None:
        for client in self.clients:
            client.is_over.set()
        for client in self.clients:
            client.join()
        self._console.stop()
        self.broker.stop()


def growths(lives: Sequence[Life]) -> list[str]:
    """What grew by too much: from life to life, the first of which is still filling its caches, and within each."""
    found = []
    for number, life in enumerate(lives[1:], 2):
        for what, later, earlier in (
            ("memory at the end, to that of life 2", life.memory(2), lives[1].memory(2)),
            ("descriptors at the end, to those of life 2", life.descriptors(2), lives[1].descriptors(2)),
            ("memory, to that of its second third", life.memory(2), life.memory(1)),
            ("descriptors, to those of its second third", life.descriptors(2), life.descriptors(1)),
        ):
            spare = SPARE_DESCRIPTORS if what.startswith("descriptors") else 0
            if later > earlier * (1 + GROWTH_MAX) + spare:
                found.append(f"life {number}: {what}: {earlier:.1f} to {later:.1f}")
    return found


def slower(lives: Sequence[Life]) -> tuple[str, bool]:
    """How the median of the last life is to the second's, and whether that is too much."""
    if len(lives) < 3 or not lives[1].took_ms or not lives[-1].took_ms:
        return "latencies were not compared: fewer than three lives", False
    second, last = median(lives[1].took_ms), median(lives[-1].took_ms)
    host = f"the host took {lives[1].stolen:.0%} and {lives[-1].stolen:.0%}"
    text = f"p50 {second:.2f} ms in life 2, {last:.2f} in the last ({host})"
    is_comparable = abs(lives[1].stolen - lives[-1].stolen) <= STOLEN_DIFFERENCE_MAX
    return text, is_comparable and last > second * (1 + SLOWER_MAX)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=8)
    parser.add_argument("--lives", type=int, default=8, help="restarts, and one")
    parser.add_argument("--no-java", action="store_true", help="without Kafka's own tools")
    parser.add_argument("--keep-files", action="store_true")
    options = parser.parse_args()
    options.seed = 0
    directory = Path(tempfile.mkdtemp(prefix="soak-hours-"))
    problems = Problems()
    soak = Soak(directory, problems, not options.no_java)
    lives: list[Life] = []
    had: dict[str, int] = {}
    try:
        for number in range(options.lives):
            lives.append(soak.live(options.hours * 3600 / options.lives, f"life {number + 1}"))
            if number + 1 < options.lives:
                soak.broker.restart()
        had = ends(soak.broker.bootstrap)
    finally:
        soak.end()
    text, is_slower = slower(lives)
    found = [*problems.texts, *growths(lives), *([text] if is_slower else [])]
    last = lives[-1]
    held = f"{last.memory(2):.1f} MB, {last.descriptors(2):.0f} descriptors at the end"
    done = f"{sum(had.values())} records, {held}; {text}"
    return report(found, directory, options, done)


if __name__ == "__main__":
    sys.exit(main())
