"""OTLP's messages of a reading, in slices. Needs the extra `otlp`; docs/decisions/otlp.md says why no SDK.

Names and attributes are those of `/metrics`, so that dashboards and alerts work on either way. A count is a monotonic
Sum, a distribution a Summary, all else a Gauge. Metrics have no unit: a Collector would append it to their names.

A request has at most `POINTS_MAX` points; one metric may be in several.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AggregationTemporality,
    NumberDataPoint,
    ScopeMetrics,
    SummaryDataPoint,
)

from kpybroker.metrics.histogram import Histogram
from kpybroker.metrics.mbeans import Family, Kind
from kpybroker.metrics.reading import Reading, Share, Tags, Value
from kpybroker.metrics.spelling import Spelled, Spelling, spell

POINTS_MAX: Final = 5000
"""Some 700 KB: a tenth of what servers take by default."""
SLICE_ROWS: Final = 250
SCOPE: Final = "kpybroker"


class Exported:
    """One reading as requests. `start_ns` is when counts began, `now_ns` the time of the reading, since the epoch."""

    def __init__(self, resource: Mapping[str, str], spelling: Spelling, start_ns: int, now_ns: int) -> None:
        self._resource = [_attribute(name, value) for name, value in resource.items()]
        self._spelling = spelling
        self._start_ns = start_ns
        self._now_ns = now_ns
        self._points = 0
        self._request, self._metrics = self._new()

    def requests(self, readings: Iterable[Reading]) -> Iterator[ExportMetricsServiceRequest | None]:
        """The requests; None after a slice of work that completes none."""
        for reading in readings:
            attributes: dict[tuple[str, ...], list[list[KeyValue]]] = {}
            for family, values in reading.columns:
                spelled = spell(family, self._spelling)
                of_rows = attributes.setdefault(spelled.labels, [])
                while len(of_rows) < len(reading.rows):
                    some = slice(len(of_rows), len(of_rows) + SLICE_ROWS)
                    of_rows += [_attributes(spelled.labels, row) for row in reading.rows[some]]
                    yield None
                for start in range(0, len(values), SLICE_ROWS):
                    some = slice(start, start + SLICE_ROWS)
                    self._add(family, spelled, of_rows[some], values[some])
                    yield self._full()
        if self._points:
            yield self._request

    def _full(self) -> ExportMetricsServiceRequest | None:
        if self._points + SLICE_ROWS <= POINTS_MAX:
            return None
        request = self._request
        self._points = 0
        self._request, self._metrics = self._new()
        return request

    def _new(self) -> tuple[ExportMetricsServiceRequest, ScopeMetrics]:
        request = ExportMetricsServiceRequest()
        of_resource = request.resource_metrics.add()
        of_resource.resource.attributes.extend(self._resource)
        metrics = of_resource.scope_metrics.add()
        metrics.scope.name = SCOPE
        return request, metrics

    def _add(
        self, family: Family, spelled: Spelled, attributes: Sequence[list[KeyValue]], values: Sequence[Value]
    ) -> None:
        """One metric with the values that are there."""
        pairs = [(one, value) for one, value in zip(attributes, values, strict=True) if value is not None]
        if not pairs:
            return
        self._points += len(pairs)
        metrics = self._metrics.metrics
        if not metrics or metrics[-1].name != spelled.name:  # not the next slice of the same
            metrics.add(name=spelled.name, description=family.meaning)
        metric = metrics[-1]
        if family.kind is Kind.HISTOGRAM:
            metric.summary.data_points.extend(self._summary(spelled, one, value) for one, value in pairs)
            return
        is_count = spelled.type in ("counter", "untyped")
        points = [self._number(one, _share(value, is_count=is_count)) for one, value in pairs]
        if not is_count:
            metric.gauge.data_points.extend(points)
            return
        metric.sum.is_monotonic = True
        metric.sum.aggregation_temporality = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
        metric.sum.data_points.extend(points)

    def _number(self, attributes: list[KeyValue], value: float) -> NumberDataPoint:
        point = NumberDataPoint(attributes=attributes, start_time_unix_nano=self._start_ns, time_unix_nano=self._now_ns)
        if isinstance(value, int):
            point.as_int = value
        else:
            point.as_double = value
        return point

    def _summary(self, spelled: Spelled, attributes: list[KeyValue], value: Value) -> SummaryDataPoint:
        assert isinstance(value, Histogram)
        quantiles = zip(map(float, spelled.quantiles), value.quantiles(), strict=True)
        return SummaryDataPoint(
            attributes=attributes,
            count=value.count,
            sum=value.sum,
            quantile_values=[
                SummaryDataPoint.ValueAtQuantile(quantile=quantile, value=number) for quantile, number in quantiles
            ],
            start_time_unix_nano=self._start_ns,
            time_unix_nano=self._now_ns,
        )


def _share(value: Value, *, is_count: bool) -> int | float:
    if isinstance(value, Share):
        return value.total_ns if is_count else value.one_minute
    assert isinstance(value, int | float)
    return value


def _attributes(names: Sequence[str], row: Tags) -> list[KeyValue]:
    """Without those whose value is empty."""
    return [_attribute(name, value) for name, value in zip(names, row, strict=True) if value]


def _attribute(name: str, value: str) -> KeyValue:
    return KeyValue(key=name, value=AnyValue(string_value=value))
