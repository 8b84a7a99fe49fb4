"""Prometheus' text format, in slices: docs/decisions/metrics-text.md says why this is not `prometheus_client`.

All lines of a name are in one group, as the format demands, so a family is in one Reading only.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Final

from kpybroker.metrics.histogram import Histogram
from kpybroker.metrics.mbeans import Family, Kind
from kpybroker.metrics.reading import Reading, Share, Tags, Value
from kpybroker.metrics.spelling import Spelled, Spelling, spell

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
SLICE_LINES: Final = 1000
"""Lines that are written between two yields: about a millisecond."""
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_HELP_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n"})


def exposition(readings: Iterable[Reading], spelling: Spelling) -> Iterator[str]:
    """The text, a slice at a time. A slice without lines gives time to others as well."""
    for reading in readings:
        labels: dict[tuple[str, ...], list[str]] = {}
        for family, values in reading.columns:
            spelled = spell(family, spelling)
            rendered = labels.get(spelled.labels)
            if rendered is None:
                rendered = labels[spelled.labels] = yield from _labels(spelled.labels, reading.rows)
            yield from _family(family, spelled, rendered, values)


def _labels(names: Sequence[str], rows: Sequence[Tags]) -> Generator[str, None, list[str]]:
    """What each line has between its name and its value."""
    rendered: list[str] = []
    for start in range(0, len(rows), SLICE_LINES):
        rendered += [label_text(names, row) for row in rows[start : start + SLICE_LINES]]
        if len(rendered) < len(rows):
            yield ""
    return rendered


def label_text(names: Sequence[str], values: Sequence[str]) -> str:
    """`{topic="t",partition="0"}`; without those whose value is empty."""
    pairs = [f'{name}="{value.translate(_ESCAPES)}"' for name, value in zip(names, values, strict=True) if value]
    return f"{{{','.join(pairs)}}}" if pairs else ""


def help_text(meaning: str) -> str:
    """A meaning as the rest of a HELP line."""
    return meaning.translate(_HELP_ESCAPES)


def _family(family: Family, spelled: Spelled, labels: Sequence[str], values: Sequence[Value]) -> Iterator[str]:
    name = spelled.name
    head = f"# HELP {name} {help_text(family.meaning)}\n# TYPE {name} {spelled.type}\n"
    if spelled.quantiles:
        yield head
        for label, value in zip(labels, values, strict=True):
            if isinstance(value, Histogram):
                yield _summary(spelled, label, value)
        return
    for start in range(0, max(len(labels), 1), SLICE_LINES):
        some = values[start : start + SLICE_LINES]
        if family.kind is Kind.SHARE:
            some = [_share(value, spelled) for value in some]
        lines = [
            f"{name}{label} {value}\n"
            for label, value in zip(labels[start : start + SLICE_LINES], some, strict=True)
            if value is not None
        ]
        yield head + "".join(lines)
        head = ""


def _share(value: Value, spelled: Spelled) -> Value:
    if not isinstance(value, Share):
        return value
    return value.total_ns if spelled.type == "counter" else value.one_minute


def _summary(spelled: Spelled, label: str, histogram: Histogram) -> str:
    name = spelled.name
    opened = f"{label[:-1]}," if label else "{"
    lines = [
        f'{name}{opened}quantile="{quantile}"}} {value:.6g}\n'
        for quantile, value in zip(spelled.quantiles, histogram.quantiles(), strict=True)
    ]
    return f"{''.join(lines)}{name}_sum{label} {histogram.sum:.10g}\n{name}_count{label} {histogram.count}\n"
