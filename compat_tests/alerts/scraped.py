"""Pages of /metrics with the labels that Prometheus adds, and their course as promtool's tests take it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from compat_tests.support.services import Broker

JOB = "kafka"
STEP_S = 15
"""Between two samples, as between two scrapes of docs/samples/metrics/prometheus.yml."""
TIMEOUT_S = 120.0


class Series(NamedTuple):
    """One line of a page without its value. `labels` are in the order of their names."""

    name: str
    labels: tuple[tuple[str, str], ...]

    def text(self) -> str:
        pairs = ",".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in self.labels)
        return f"{self.name}{{{pairs}}}"


Page = Mapping[Series, float]


def metrics_url(broker: Broker) -> str:
    """Where the page of a broker is that runs: its log says it."""
    found = re.findall(r"Metrics at (http\S+)", broker.service.output())
    assert found, f"it serves no metrics:\n{broker.service.tail()}"
    return str(found[-1])


def scrape(brokers: Mapping[str, Broker]) -> Page:
    """What Prometheus has after a scrape of these instances: `up` is 0 for one that does not respond."""
    page: dict[Series, float] = {}
    for instance, broker in brokers.items():
        own = {"instance": instance, "job": JOB}
        try:
            found = dict(_read(broker, own)) if broker.service.running else {}
        except (URLError, ConnectionError, TimeoutError):
            found = {}
        page |= found
        page[_series("up", own)] = float(bool(found))
    return page


def _read(broker: Broker, own: dict[str, str]) -> Iterator[tuple[Series, float]]:
    with urlopen(metrics_url(broker), timeout=TIMEOUT_S) as response:
        text = response.read().decode()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            yield _series(sample.name, {**sample.labels, **own}), sample.value


def _series(name: str, labels: Mapping[str, str]) -> Series:
    return Series(name, tuple(sorted(labels.items())))


def total(page: Page, name: str, **labels: str) -> float:
    """The sum over all series of that name that have these labels."""
    return sum(
        value for series, value in page.items() if series.name == name and labels.items() <= dict(series.labels).items()
    )


class Course:
    """What was scraped, one page after the other, each for some minutes."""

    def __init__(self) -> None:
        self._pages: list[Page] = []

    def hold(self, page: Page, minutes: int) -> Course:
        """The page is what every scrape of these minutes finds."""
        self._pages += [page] * (minutes * 60 // STEP_S)
        return self

    @property
    def end_s(self) -> int:
        """When the last sample is, from the first one."""
        return (len(self._pages) - 1) * STEP_S

    def input_series(self, names: Iterable[str]) -> list[dict[str, str]]:
        """As a test of promtool has them. A series that ends is stale from then on, as after a failed scrape."""
        wanted = set(names)
        found = dict.fromkeys(series for page in self._pages for series in page if series.name in wanted)
        return [{"series": series.text(), "values": " ".join(self._values(series))} for series in found]

    def _values(self, series: Series) -> Iterator[str]:
        was_there = False
        for page in self._pages:
            value = page.get(series)
            if value is not None:
                yield _number(value)
            else:
                yield "stale" if was_there else "_"
            was_there = value is not None


def _number(value: float) -> str:
    """Without an exponent, whose sign promtool would take for a step."""
    return str(int(value)) if value == int(value) else f"{value:.9f}"
