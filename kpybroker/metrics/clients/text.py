"""Series of clients in Prometheus' text format, named as OpenTelemetry's exporter for Prometheus names them.

`org.apache.kafka.producer.record.queue.time.avg` is `org_apache_kafka_producer_record_queue_time_avg`; a count ends in
`_total`, a unit is appended. Labels are the client's (`client_id`, `client_instance_id`, `client_software_name`,
`client_software_version`), what it says of itself (`group_id` ...), and those of the series; one of a series that has
a name of the first ones begins with `exported_`.

Names and texts are a stranger's. So none can be taken for a metric of the broker: those that begin as its own do, begin
with `client_`. A series whose name and labels are those of another after that is left out, as is one of another type.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from kpybroker.metrics.clients.series import Client, Distribution, Labels, Series, SeriesKind
from kpybroker.metrics.text import help_text, label_text
from kpybroker.wire.znodes.topics import encode_uuid

OWN: Final = ("kafka_", "kpybroker_", "process_")
"""What names of the broker's own metrics begin with."""
SLICE_LINES: Final = 250
"""Series between two yields: about five milliseconds."""
_UNITS: Final = {
    "ns": "nanoseconds",
    "us": "microseconds",
    "ms": "milliseconds",
    "s": "seconds",
    "min": "minutes",
    "h": "hours",
    "By": "bytes",
    "KiBy": "kibibytes",
    "MiBy": "mebibytes",
    "By/s": "bytes_per_second",
    "%": "percent",
}
_TYPES: Final = {
    SeriesKind.GAUGE: "gauge",
    SeriesKind.COUNT: "counter",
    SeriesKind.HISTOGRAM: "histogram",
    SeriesKind.SUMMARY: "summary",
}


@dataclass(slots=True)
class _Family:
    kind: SeriesKind
    description: str
    lines: dict[str, str] = field(default_factory=dict)
    """By labels."""


def exposition_of_clients(clients: Iterable[Client]) -> Iterator[str]:
    """The text, a slice at a time. A slice without lines gives time to others as well."""
    families: dict[str, _Family] = {}
    for client in clients:
        known = _with(known_of(client), client.resource)
        for number, series in enumerate(client.series, 1):
            name = prometheus_name(series)
            family = families.setdefault(name, _Family(series.kind, series.description))
            if family.kind is series.kind:
                labels = _with(known, series.labels)
                family.lines.setdefault(label_text(tuple(labels), tuple(labels.values())), _lines(name, labels, series))
            if number % SLICE_LINES == 0:
                yield ""
        yield ""
    for name, family in families.items():
        meaning = f"# HELP {name} {help_text(family.description)}\n" if family.description else ""
        yield f"{meaning}# TYPE {name} {_TYPES[family.kind]}\n"
        lines = list(family.lines.values())
        for start in range(0, len(lines), SLICE_LINES):
            yield "".join(lines[start : start + SLICE_LINES])


def prometheus_name(series: Series) -> str:
    """The name of a metric, without the suffixes of a histogram's lines."""
    name = re.sub("_+", "_", re.sub("[^a-zA-Z0-9_:]", "_", series.name)).strip("_") or "_"
    unit = _UNITS.get(series.unit, "ratio" if series.unit == "1" and series.kind is SeriesKind.GAUGE else "")
    stem = name.removesuffix("_total") if series.kind is SeriesKind.COUNT else name
    if unit and not stem.endswith(f"_{unit}"):
        stem += f"_{unit}"
    name = f"{stem}_total" if series.kind is SeriesKind.COUNT else stem
    return f"client_{name}" if name.startswith(OWN) or name[0].isdigit() else name


def known_of(client: Client) -> dict[str, str]:
    """What the broker knows of a client, as labels."""
    return {
        "client_id": client.client_id,
        "client_instance_id": encode_uuid(client.instance_id),
        "client_software_name": client.software_name,
        "client_software_version": client.software_version,
    }


def _with(known: Mapping[str, str], labels: Labels) -> dict[str, str]:
    found = dict(known)
    for name, value in labels:
        name = _label_name(name)
        found.setdefault(f"exported_{name}" if name in known else name, value)
    return found


def _label_name(name: str) -> str:
    """Names that begin with two underscores are Prometheus' own; `le` and `quantile` those of its distributions."""
    name = re.sub("[^a-zA-Z0-9_]", "_", name)
    if name[0].isdigit() or name.startswith("__"):
        return f"key_{name.lstrip('_')}"
    return f"exported_{name}" if name in ("le", "quantile") else name


def _lines(name: str, labels: Mapping[str, str], series: Series) -> str:
    value = series.value
    if not isinstance(value, Distribution):
        return f"{name}{_text(labels)} {number_text(value)}\n"
    if series.kind is SeriesKind.SUMMARY:
        pairs = zip(value.at, value.values, strict=True)
        lines = [f"{name}{_text(labels, quantile=number_text(at))} {number_text(one)}\n" for at, one in pairs]
    else:
        lines = [
            f"{name}_bucket{_text(labels, le=at)} {count}\n"
            for at, count in zip([*map(number_text, value.at), "+Inf"], _cumulated(value), strict=True)
        ]
    ends = f"{name}_sum{_text(labels)} {number_text(value.sum)}\n{name}_count{_text(labels)} {value.count}\n"
    return "".join(lines) + ends


def _cumulated(value: Distribution) -> list[int]:
    """How many are at or below each bound; the last is the count, which a client may say otherwise."""
    counts: list[int] = []
    for one in value.values[:-1]:
        counts.append((counts[-1] if counts else 0) + int(one))
    return [*(min(count, value.count) for count in counts), value.count]


def _text(labels: Mapping[str, str], **more: str) -> str:
    every = {**labels, **more}
    return label_text(tuple(every), tuple(every.values()))


def number_text(number: int | float) -> str:
    """As Prometheus writes it."""
    if isinstance(number, int) or math.isfinite(number):
        return repr(number)
    return "NaN" if math.isnan(number) else "+Inf" if number > 0 else "-Inf"
