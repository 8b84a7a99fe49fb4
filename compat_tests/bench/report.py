"""Figures into words: the table of a run, and its place in docs/BENCHMARKS.md."""

from __future__ import annotations

import os
import re
import statistics
from dataclasses import dataclass
from datetime import UTC, datetime

from compat_tests.bench.brokers import KIND_NAMES
from compat_tests.bench.workloads import Sample, Workload
from compat_tests.deps import ROOT

PAGE = ROOT / "docs" / "BENCHMARKS.md"
BEGIN, END = "<!-- written by make bench: begin -->", "<!-- written by make bench: end -->"


@dataclass(frozen=True, slots=True)
class Result:
    """One line: the counted runs of each broker."""

    workload: Workload
    samples: dict[str, list[Sample]]

    def median(self, kind: str) -> float:
        return statistics.median(sample.value for sample in self.samples[kind])

    def cpu(self, kind: str) -> float | None:
        known = [sample.cpu for sample in self.samples[kind] if sample.cpu is not None]
        return statistics.median(known) if known else None

    @property
    def ratio(self) -> float:
        """Of kpybroker to Kafka; more is better. 1 where a client's clock is too coarse to tell."""
        ours, kafkas = self.median("kpybroker"), self.median("kafka")
        better, worse = (kafkas, ours) if self.workload.less_is_better else (ours, kafkas)
        return better / worse if worse else 1.0

    @property
    def cpu_ratio(self) -> float | None:
        """Of what kpybroker spends to what Kafka spends; less is better."""
        ours, kafkas = self.cpu("kpybroker"), self.cpu("kafka")
        return None if ours is None or not kafkas else ours / kafkas

    @property
    def meets_bar(self) -> bool:
        return self.ratio >= self.workload.bar

    def cell(self, kind: str) -> str:
        values = [sample.value for sample in self.samples[kind]]
        text = number(self.median(kind))
        return text if len(values) == 1 else f"{text} ({number(min(values))} to {number(max(values))})"

    def summary(self) -> str:
        name = f"{self.workload.name}, {self.workload.unit}"
        return f"{name:50} {self.cell('kafka'):28} {self.cell('kpybroker'):28} x {self.ratio:.2f}"


@dataclass(frozen=True, slots=True)
class Results:
    lines: list[Result]
    rounds: int
    share_of_others: float
    minutes: float
    rss_mb: dict[str, float]
    peak_rss_mb: dict[str, float]
    consumed_mb: float


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def markdown(results: Results) -> str:
    head = [
        "",
        "unit",
        KIND_NAMES["kafka"],
        KIND_NAMES["kpybroker"],
        "ratio",
        "bar",
        "broker CPU, Kafka",
        "ours",
        "share",
    ]
    rows = [head, ["---"] * len(head)]
    for line in results.lines:
        spent = [line.cpu("kafka"), line.cpu("kpybroker"), line.cpu_ratio]
        rows.append(
            [
                line.workload.name,
                line.workload.unit,
                line.cell("kafka"),
                line.cell("kpybroker"),
                f"{line.ratio:.2f}" + ("" if line.meets_bar else " **below**"),
                f"{line.workload.bar:g}",
                *("" if value is None else f"{value:.2f}" for value in spent),
            ]
        )
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return f"{_preface(results)}\n\n{table}\n\n{_memory(results)}"


def _preface(results: Results) -> str:
    runs = "one round" if results.rounds == 1 else f"median (range) of {results.rounds} alternating rounds"
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, of which other processes used "
        f"{results.share_of_others:.0%}, {results.minutes:.0f} minutes, {runs} after one that is not counted. "
        f"MB are 10^6 bytes of record values; "
        f"CPU is the broker's user and system time, seconds per GB or per million requests. The more the ratio the "
        f"better, the less the share of CPU the better."
    )


def _memory(results: Results) -> str:
    said = (
        f"{KIND_NAMES[kind]} {results.rss_mb[kind]:,.0f} MB (highest {results.peak_rss_mb[kind]:,.0f} MB)"
        for kind in results.rss_mb
    )
    return f"Resident memory of the broker process after all of it: {', '.join(said)}."


def write_page(results: Results) -> None:
    """Put the table between its two marks."""
    page = PAGE.read_text()
    pattern = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
    text = f"{BEGIN}\n{markdown(results)}\n{END}"
    assert pattern.search(page), f"{PAGE} has no place for the table"
    PAGE.write_text(pattern.sub(lambda _: text, page))
