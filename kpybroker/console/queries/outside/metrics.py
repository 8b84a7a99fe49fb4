"""What brokers say of themselves at `/metrics`: rates, sizes and lag, added up over the brokers.

The names are those of Kafka's JMX exporters in the spellings that `kpybroker.metrics.spelling` knows: `_total`,
`persec` and `persec_total` are endings of one name. Lines that no chart needs are not kept, so a page of a broker with
10 000 partitions costs little. One scrape serves all charts for FRESH_S.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from kpybroker.client.connect.errors import CommandError
from kpybroker.client.schemas import http
from kpybroker.console.queries.samples import Samples

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
    """A sample: its name without an ending, and its topic, if it has one."""

    name: str
    topic: str
    number: float


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
        self._lock = threading.Lock()
        self._read_at = -math.inf
        self._values: list[Value] = []
        self._failure: CommandError | None = None

    def now(self, page: str, topic: str = "") -> list[Now]:
        """Every chart of a page with its newest number. Raises CommandError."""
        values = self._fresh()
        return [self._remember(values, page, key, topic) for key in CHARTS[page]]

    def points(self, page: str, key: str, topic: str = "") -> tuple[list[float], list[float]]:
        """Times in seconds, and numbers: those that are remembered where the metrics are away."""
        try:
            self._remember(self._fresh(), page, key, topic)
        except CommandError:
            pass
        kept = f"metrics/{page}/{key}/{topic}"
        found = self._samples.rates(kept) if CHARTS[page][key].is_rate else self._samples.points(kept)
        return [point.at for point in found], [round(point.value, 3) for point in found]

    def _remember(self, values: Sequence[Value], page: str, key: str, topic: str) -> Now:
        chart = CHARTS[page][key]
        numbers = [one.number for one in values if one.name == chart.name and one.topic == topic]
        kept = f"metrics/{page}/{key}/{topic}"
        if numbers:
            self._samples.add(kept, chart.combine(numbers))
        points = self._samples.points(kept)
        newest = self._samples.rate(kept) if chart.is_rate else points[-1].value if points else None
        return Now(key, chart, newest)

    def _fresh(self) -> list[Value]:
        with self._lock:
            if time.monotonic() - self._read_at >= FRESH_S:
                self._values, self._failure = [], None
                try:
                    self._values = [value for url in self._addresses() for value in self._scraped(url)]
                except CommandError as error:
                    self._failure = error
                self._read_at = time.monotonic()
            if self._failure is not None:
                raise self._failure
            return self._values

    def _scraped(self, url: str) -> list[Value]:
        wanted = [line for line in http.lines(self._client, url, PAGE_BYTES_MAX) if line.startswith(NAMES)]
        try:
            found = parsed(wanted)
        except (ValueError, IndexError) as error:
            raise CommandError(f"{http.shown(url)} has no metrics: {error}", "check the address") from None
        if not found:
            raise CommandError(f"{http.shown(url)} has no metrics of Kafka", "name where the brokers serve them")
        return found
