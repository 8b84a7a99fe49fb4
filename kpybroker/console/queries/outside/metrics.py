"""What brokers say of themselves at `/metrics`: rates, sizes and lag, added up over the brokers.

The names are those of Kafka's JMX exporters in the spellings that `kpybroker.metrics.spelling` knows: `_total`,
`persec` and `persec_total` are endings of one name. Lines that no chart needs are not kept, so a page of a broker with
10 000 partitions costs little. One scrape serves all charts for FRESH_S.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from kpybroker.client.connect.errors import CommandError
from kpybroker.client.schemas import http
from kpybroker.console.queries.samples import DEFAULT, KEYS_MAX, Point, Samples

PAGE_BYTES_MAX: Final = 64 << 20
FRESH_S: Final = 1.0
TOPIC_METRICS: Final = "kafka_server_brokertopicmetrics_"


class Chart(NamedTuple):
    """A number over time. `name` without its ending; a counter is shown as a rate."""

    title: str
    unit: str
    name: str
    is_rate: bool = True
    combine: Callable[[Sequence[float]], float] = math.fsum


CHARTS: Final[dict[str, dict[str, Chart]]] = {
    "cluster": {
        "messages": Chart("Messages in", "messages/s", f"{TOPIC_METRICS}messagesin"),
        "bytes-in": Chart("Bytes in", "bytes/s", f"{TOPIC_METRICS}bytesin"),
        "bytes-out": Chart("Bytes out", "bytes/s", f"{TOPIC_METRICS}bytesout"),
    },
    "topic": {
        "messages": Chart("Messages in", "messages/s", f"{TOPIC_METRICS}messagesin"),
        "bytes-in": Chart("Bytes in", "bytes/s", f"{TOPIC_METRICS}bytesin"),
        "bytes-out": Chart("Bytes out", "bytes/s", f"{TOPIC_METRICS}bytesout"),
        "size": Chart("Size of all replicas", "bytes", "kafka_log_log_size", is_rate=False),
    },
    "replication": {
        "under-replicated": Chart(
            "Under-replicated partitions", "partitions", "kafka_server_replicamanager_underreplicatedpartitions", False
        ),
        "max-lag": Chart(
            "Furthest behind", "records", "kafka_server_replicafetchermanager_maxlag", is_rate=False, combine=max
        ),
        "bytes-in": Chart("Bytes replicated", "bytes/s", f"{TOPIC_METRICS}replicationbytesin"),
        "shrinks": Chart("ISR shrinks", "shrinks/s", "kafka_server_replicamanager_isrshrinks"),
    },
}
"""By the page and the key of the chart."""

NAMES: Final = tuple(sorted({chart.name for charts in CHARTS.values() for chart in charts.values()}))


class Value(NamedTuple):
    """A sample: its name without an ending, its topic, if it has one, and where it was read."""

    name: str
    topic: str
    number: float
    broker: str = ""


class _Scrape(NamedTuple):
    """What all brokers said, and when, in seconds since 1970."""

    values: list[Value]
    at: float


class _Counter(NamedTuple):
    """A sum over brokers, and what each of them said last."""

    at: float = -math.inf
    total: float = 0.0
    numbers: Mapping[str, float] = MappingProxyType({})


class Now(NamedTuple):
    """A chart and its newest number; None where there is none yet."""

    key: str
    chart: Chart
    number: float | None


def base_name(name: str) -> str:
    """Without the endings of the spellings."""
    return name.removesuffix("_total").removesuffix("persec")


def parsed(lines: Sequence[str]) -> list[Value]:
    """The samples of lines in Prometheus' text format. Raises ValueError."""
    return [
        Value(base_name(one.name), one.labels.get("topic", ""), one.value)
        for family in text_string_to_metric_families("\n".join(lines) + "\n")
        for one in family.samples
        if math.isfinite(one.value)
    ]


class Metrics:
    """`addresses` says where the brokers serve their metrics now; it may raise CommandError."""

    def __init__(self, addresses: Callable[[], Sequence[str]], samples: Samples) -> None:
        self._addresses = addresses
        self._samples = samples
        self._client = http.new_client()
        self._reading = threading.Lock()
        self._lock = threading.Lock()
        self._read_at = -math.inf
        self._scrape = _Scrape([], 0.0)
        self._counters: dict[str, _Counter] = {}
        self._failure: CommandError | None = None

    def now(self, page: str, topic: str = "") -> list[Now]:
        """Every chart of a page with its newest number. Raises CommandError."""
        read = self._fresh()
        return [self._remember(read, page, key, topic) for key in CHARTS[page]]

    def points(self, page: str, key: str, topic: str = "", kept: str = DEFAULT) -> list[Point]:
        """What a chart shows: what is remembered where the metrics are away."""
        try:
            self._remember(self._fresh(), page, key, topic)
        except CommandError:
            pass
        name = f"metrics/{page}/{key}/{topic}"
        is_rate = CHARTS[page][key].is_rate
        return self._samples.rates(name, kept) if is_rate else self._samples.points(name, kept)

    def _remember(self, read: _Scrape, page: str, key: str, topic: str) -> Now:
        chart = CHARTS[page][key]
        name = f"metrics/{page}/{key}/{topic}"
        numbers: dict[str, list[float]] = {}
        for one in read.values:
            if one.name == chart.name and one.topic == topic:
                numbers.setdefault(one.broker, []).append(one.number)
        if numbers:
            by_broker = {broker: chart.combine(of_broker) for broker, of_broker in numbers.items()}
            value = (
                self._counted(name, by_broker, read.at) if chart.is_rate else chart.combine(list(by_broker.values()))
            )
            self._samples.add(name, value, read.at)
        points = self._samples.points(name)
        newest = self._samples.rate(name) if chart.is_rate else points[-1].value if points else None
        return Now(key, chart, newest)

    def _counted(self, name: str, numbers: Mapping[str, float], at: float) -> float:
        """A sum that only grows: what each broker has counted since it was read before. A broker that begins again, or
        is seen for the first time, adds nothing, since what it counted before is no growth of now.
        """
        with self._lock:
            counted = self._counters.pop(name, None) or _Counter()
            if at > counted.at:
                grown = sum(max(0.0, new - counted.numbers.get(broker, new)) for broker, new in numbers.items())
                counted = _Counter(at, counted.total + grown, {**counted.numbers, **numbers})
            self._counters[name] = counted
            while len(self._counters) > KEYS_MAX:
                self._counters.pop(next(iter(self._counters)))
            return counted.total

    def _fresh(self) -> _Scrape:
        with self._reading:
            if time.monotonic() - self._read_at >= FRESH_S:
                self._scrape, self._failure = _Scrape([], 0.0), None
                try:
                    began = self._samples.now()
                    values = [value for url in self._addresses() for value in self._scraped(url)]
                    self._scrape = _Scrape(values, (began + self._samples.now()) / 2)
                except CommandError as error:
                    self._failure = error
                self._read_at = time.monotonic()
            if self._failure is not None:
                raise self._failure
            return self._scrape

    def _scraped(self, url: str) -> list[Value]:
        wanted = [line for line in http.lines(self._client, url, PAGE_BYTES_MAX) if line.startswith(NAMES)]
        try:
            found = [one._replace(broker=url) for one in parsed(wanted)]
        except (ValueError, IndexError) as error:
            raise CommandError(f"{http.shown(url)} has no metrics: {error}", "check the address") from None
        if not found:
            raise CommandError(f"{http.shown(url)} has no metrics of Kafka", "name where the brokers serve them")
        return found
