"""OTLP's MetricsData as samples. Needs the extra `otlp`.

The bytes are a stranger's: what is read of them is bounded by `STEPS_MAX`, whatever they say. Strings that are no UTF-8
are refused by protobuf itself, as is what is cut. A point that has no sense is left out, and counted.

Java's client has a resource for each metric, always the same: the attributes of the first are the client's. Scopes are
left out, and attributes that are lists or maps: KIP-714 has texts and numbers only.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any, Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AggregationTemporality,
    HistogramDataPoint,
    Metric,
    MetricsData,
    SummaryDataPoint,
)

from kpybroker.metrics.clients.series import Distribution, Labels, Sample, Series, SeriesKind, Value
from kpybroker.wire.records.pauses import pausing

STEPS_MAX: Final = 20_000
"""Elements of a push that are looked at."""
SAMPLES_MAX: Final = 4_000
NAME_CHARS_MAX: Final = 256
TEXT_CHARS_MAX: Final = 256
"""Of a name of a label, its value, or a description; more is cut off."""
LABELS_MAX: Final = 32
BUCKETS_MAX: Final = 160
_DELTA: Final = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA


class NotOtlp(ValueError):
    """The bytes are no MetricsData."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """What a push has. `left_out`: points that were not taken."""

    resource: Labels
    samples: Sequence[Sample]
    left_out: int


@dataclass(frozen=True, slots=True)
class _Found:
    metric: Metric
    kind: str
    point: Any


def decode(data: bytes) -> Decoded:
    """The samples of a push. Raises NotOtlp."""
    try:
        found = MetricsData.FromString(data)
    except DecodeError as error:
        raise NotOtlp(str(error)) from None
    resource = _labels(of for one in islice(found.resource_metrics, 1) for of in one.resource.attributes)
    samples: list[Sample] = []
    left_out = 0
    for _, step in zip(pausing(STEPS_MAX), _steps(found), strict=False):
        if step is None:
            continue
        sample = _sample(step) if len(samples) < SAMPLES_MAX else None
        if sample is None:
            left_out += 1
        else:
            samples.append(sample)
    return Decoded(resource, samples, left_out)


def _steps(data: MetricsData) -> Iterator[_Found | None]:
    """Every point; None after a step that finds none, so that a caller can count all of them."""
    for of_resource in data.resource_metrics:
        yield None
        for of_scope in of_resource.scope_metrics:
            yield None
            for metric in of_scope.metrics:
                yield None
                kind = metric.WhichOneof("data")
                if kind is not None:
                    for point in getattr(metric, kind).data_points:
                        yield _Found(metric, kind, point)


def _sample(found: _Found) -> Sample | None:
    """None for a point without sense."""
    metric, kind = found.metric, found.kind
    if not 0 < len(metric.name) <= NAME_CHARS_MAX:
        return None
    of_metric = getattr(metric, kind)
    is_delta = kind not in ("gauge", "summary") and of_metric.aggregation_temporality == _DELTA
    made = _VALUES[kind](found.point)
    if made is None:
        return None
    series_kind = _KINDS[kind]
    if kind == "sum":
        series_kind = SeriesKind.COUNT if of_metric.is_monotonic else SeriesKind.GAUGE
    labels = _labels(found.point.attributes)
    texts = metric.unit[:TEXT_CHARS_MAX], metric.description[:TEXT_CHARS_MAX]
    return Sample(Series(metric.name, labels, series_kind, made, *texts), is_delta)


def _number(point: Any) -> Value | None:
    kind = point.WhichOneof("value")
    value: int | float | None = None if kind is None else getattr(point, kind)
    return value


def _histogram(point: HistogramDataPoint) -> Value | None:
    bounds, buckets = len(point.explicit_bounds), len(point.bucket_counts)
    if buckets > BUCKETS_MAX or (bounds, buckets) not in ((0, 0), (buckets - 1, buckets)):
        return None
    at, values = tuple(point.explicit_bounds), tuple(point.bucket_counts)
    if not all(map(math.isfinite, at)) or any(a >= b for a, b in pairwise(at)):
        return None
    return Distribution(point.count, point.sum, at, values)


def _exponential(point: Any) -> Value | None:
    return Distribution(point.count, point.sum)


def _summary(point: SummaryDataPoint) -> Value | None:
    if len(point.quantile_values) > BUCKETS_MAX:
        return None
    values = {one.quantile: one.value for one in point.quantile_values if 0 <= one.quantile <= 1}
    at = tuple(sorted(values))
    return Distribution(point.count, point.sum, at, tuple(values[quantile] for quantile in at))


_VALUES: Final = {
    "gauge": _number,
    "sum": _number,
    "histogram": _histogram,
    "exponential_histogram": _exponential,
    "summary": _summary,
}
_KINDS: Final = {
    "gauge": SeriesKind.GAUGE,
    "sum": SeriesKind.COUNT,
    "histogram": SeriesKind.HISTOGRAM,
    "exponential_histogram": SeriesKind.HISTOGRAM,
    "summary": SeriesKind.SUMMARY,
}


def _labels(attributes: Iterable[KeyValue]) -> Labels:
    found = ((one.key[:TEXT_CHARS_MAX], _text(one.value)) for one in islice(attributes, LABELS_MAX))
    return tuple(sorted({name: value for name, value in found if name and value}.items()))


def _text(value: AnyValue) -> str:
    """Empty for anything but text, number or bytes."""
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return value.string_value[:TEXT_CHARS_MAX]
    if kind == "bool_value":
        return "true" if value.bool_value else "false"
    if kind == "int_value":
        return str(value.int_value)
    if kind == "double_value":
        return f"{value.double_value:.15g}"
    if kind == "bytes_value":
        return base64.b64encode(value.bytes_value[:TEXT_CHARS_MAX]).decode()
    return ""
