"""Figures into words: the tables of a run, their place in docs/internals/benchmarks, and the data of the charts."""

from __future__ import annotations

import json
import os
import re
import statistics
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from compat_tests.bench.load.workloads import Figure, Sample, Workload
from compat_tests.bench.measuring.brokers import KIND_NAMES
from compat_tests.bench.measuring.costs import SHARE_OF_OTHERS_MAX
from compat_tests.deps import ROOT

PAGES = ROOT / "docs" / "internals" / "benchmarks"
DATA = ROOT / "docs" / "speed" / "data"
AGREEMENT = 0.05
LINE_LENGTH = 118
MISSED = " **missed**"
COLUMNS_MAX = 9


@dataclass(frozen=True, slots=True)
class Line:
    """One figure of a workload: its values in the counted runs of each broker."""

    figure: Figure
    values: dict[str, list[float]]

    def median(self, kind: str) -> float:
        return statistics.median(self.values[kind])

    @property
    def ratio(self) -> float:
        """Of kpybroker to Kafka; more is better. 1 where a client's clock is too coarse to tell."""
        ours, kafkas = self.median("kpybroker"), self.median("kafka")
        better, worse = (kafkas, ours) if self.figure.less_is_better else (ours, kafkas)
        return better / worse if worse else 1.0

    @property
    def missed(self) -> bool:
        return self.figure.floor is not None and self.ratio < self.figure.floor

    @property
    def disagreement(self) -> float:
        """The range of the counted rounds as a share of their median, of the broker whose rounds differ more."""
        return max(spread(values) for values in self.values.values())

    def cell(self, kind: str) -> str:
        values = self.values[kind]
        text = number(self.median(kind))
        return text if len(values) == 1 else f"{text} ({number(min(values))} to {number(max(values))})"

    def summary(self) -> str:
        name = f"{self.figure.name}, {self.figure.unit}"
        return f"{name:58} {self.cell('kafka'):28} {self.cell('kpybroker'):28} x {self.ratio:.2f}"


@dataclass(frozen=True, slots=True)
class Result:
    """A workload's runs; those counted are the last `rounds` of each broker."""

    workload: Workload
    samples: dict[str, list[Sample]]
    rounds: int

    def counted(self, kind: str) -> list[Sample]:
        return self.samples[kind][-self.rounds :]

    @property
    def lines(self) -> list[Line]:
        return [
            Line(figure, {kind: [sample.values[n] for sample in self.counted(kind)] for kind in self.samples})
            for n, figure in enumerate(self.workload.figures)
        ]

    @property
    def agrees(self) -> bool:
        return all(line.disagreement <= AGREEMENT for line in self.lines)

    def cpu(self, kind: str) -> float | None:
        known = [sample.cpu for sample in self.counted(kind) if sample.cpu is not None]
        return statistics.median(known) if known else None

    @property
    def cpu_share(self) -> float | None:
        """What kpybroker spends of what Kafka spends; less is better."""
        ours, kafkas = self.cpu("kpybroker"), self.cpu("kafka")
        return None if ours is None or not kafkas else ours / kafkas

    @property
    def cpu_missed(self) -> bool:
        most, share = self.workload.cpu_share_max, self.cpu_share
        return most is not None and share is not None and share > most

    @property
    def missed(self) -> list[str]:
        names = [line.figure.name for line in self.lines if line.missed]
        return [*names, *([f"CPU of {self.workload.figures[0].name}"] if self.cpu_missed else [])]


@dataclass(frozen=True, slots=True)
class Fact:
    """What has a floor of its own, whatever Kafka's is. A limit of None: it is only reported."""

    name: str
    unit: str
    kafka: float | None
    ours: float
    most: float | None = None

    @property
    def missed(self) -> bool:
        return self.most is not None and self.ours > self.most


@dataclass(frozen=True, slots=True)
class Conditions:
    """Under which all of it was measured."""

    rounds: int
    share_of_others: float
    share_stolen: float
    minutes: float

    @property
    def quiet(self) -> bool:
        return self.share_of_others <= SHARE_OF_OTHERS_MAX

    def sentence(self) -> str:
        runs = "one round" if self.rounds == 1 else f"median (range) of {self.rounds} alternating rounds"
        return (
            f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, of which other processes used "
            f"{self.share_of_others:.0%} and the host took away {self.share_stolen:.0%} of what was wanted, "
            f"{self.minutes:.0f} minutes, {runs}."
        )


def spread(values: Sequence[float]) -> float:
    middle = statistics.median(values)
    return (max(values) - min(values)) / middle if middle else 0.0


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


class Table(NamedTuple):
    """What a command measured, as text: a figure is `median` or `median (least to most)`."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """The table as Markdown. One that is wider than a page is two, each with the names of the rows."""
        if len(self.head) > COLUMNS_MAX:
            at = next((n for n, head in enumerate(self.head) if "CPU" in head), COLUMNS_MAX)
            return "\n\n".join(table.markdown() for table in (self._columns(1, at), self._columns(at)))
        return "\n".join("| " + " | ".join(row) + " |" for row in (self.head, ["---"] * len(self.head), *self.rows))

    def _columns(self, begin: int, end: int | None = None) -> Table:
        """The rows that have something in these columns, with their names."""
        cut = [[row[0], *row[begin:end]] for row in self.rows]
        return Table([self.head[0], *self.head[begin:end]], [row for row in cut if any(row[1:])])


Part = str | Table
"""A paragraph, a heading (`### ...`) or a table."""


def results_table(results: Sequence[Result], kafka: str = KIND_NAMES["kafka"]) -> Table:
    """One row a line. `kafka`: the release next to which it was measured."""
    ours = KIND_NAMES["kpybroker"]
    head = ["", "unit", kafka, ours, "ratio", "floor", "rounds agree", "CPU, Kafka", "CPU, ours", "share", "most"]
    return Table(head, [row for result in results for row in _rows(result)])


def _rows(result: Result) -> list[list[str]]:
    rows = []
    for line in result.lines:
        rows.append(
            [
                line.figure.name,
                line.figure.unit,
                line.cell("kafka"),
                line.cell("kpybroker"),
                f"{line.ratio:.2f}" + MISSED * line.missed,
                _given(line.figure.floor, "g"),
                _agreement(line) if result.rounds > 1 else "",
                _given(result.cpu("kafka")),
                _given(result.cpu("kpybroker")),
                _given(result.cpu_share) + MISSED * result.cpu_missed,
                _given(result.workload.cpu_share_max if result.cpu_share is not None else None, "g"),
            ]
        )
    return rows


def _agreement(line: Line) -> str:
    return "yes" if line.disagreement <= AGREEMENT else f"no: {line.disagreement:.0%}"


def facts_table(facts: Sequence[Fact], kafka: str = KIND_NAMES["kafka"]) -> Table:
    """One row a fact. `kafka`: the release next to which it was measured."""
    rows = [
        [
            f"{fact.name}, {fact.unit}",
            "" if fact.kafka is None else number(fact.kafka),
            number(fact.ours) + MISSED * fact.missed,
            _given(fact.most, "g"),
        ]
        for fact in facts
    ]
    return Table(["", kafka, KIND_NAMES["kpybroker"], "most"], rows)


def _given(value: float | None, form: str = ".2f") -> str:
    return "" if value is None else f"{value:{form}}"


def markdown(parts: Sequence[Part]) -> str:
    """The parts as one piece of Markdown, in lines that the docs allow."""
    return "\n\n".join(part.markdown() if isinstance(part, Table) else _wrapped(part) for part in parts)


def _wrapped(text: str) -> str:
    return textwrap.fill(text, LINE_LENGTH, break_long_words=False, break_on_hyphens=False)


def data(command: str, parts: Sequence[Part]) -> dict[str, object]:
    """The parts as a command's data file: the first paragraph, and each table with the heading before it."""
    tables, title = [], ""
    for part in parts[1:]:
        if isinstance(part, Table):
            tables.append({"title": title, "head": list(part.head), "rows": [list(row) for row in part.rows]})
        elif part.startswith("#"):
            title = part.lstrip("# ")
    return {"command": command, "conditions": parts[0], "tables": tables}


def write_page(command: str, parts: Sequence[Part]) -> None:
    """Put what `make <command>` found between its two marks on the page, and into its data file."""
    begin, end = f"<!-- written by make {command}: begin -->", f"<!-- written by make {command}: end -->"
    pages = [page for page in PAGES.glob("*.md") if begin in page.read_text()]
    assert len(pages) == 1, f"{PAGES} has {len(pages)} places for {command}"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    pages[0].write_text(pattern.sub(lambda _: f"{begin}\n{markdown(parts)}\n{end}", pages[0].read_text()))
    (DATA / f"{command}.json").write_text(json.dumps(data(command, parts), indent=1, ensure_ascii=False) + "\n")
