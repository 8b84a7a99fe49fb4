"""Series of clients as OTLP's messages, as the clients named them: a resource for each client. Needs the extra `otlp`.

A resource has what the client says of itself (`group_id` ...), and what the broker knows of it under the names that
`/metrics` has. `service.name` and `service.instance.id`, which receivers tell resources apart by, are the client id and
the instance id where the client has no such attributes. Times are the broker's: librdkafka's are no times of day.

Counts are cumulative, whatever the client pushed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Final

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AggregationTemporality,
    HistogramDataPoint,
    Metric,
    NumberDataPoint,
    ScopeMetrics,
    SummaryDataPoint,
)

from kpybroker.metrics.clients.series import Client, Distribution, Series, SeriesKind
from kpybroker.metrics.clients.text import known_of
from kpybroker.metrics.otlp import POINTS_MAX, SLICE_ROWS

SCOPE: Final = "kpybroker.client_metrics"
_CUMULATIVE: Final = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
_INT64: Final = 1 << 63


def requests_of_clients(clients: Iterable[Client]) -> Iterator[ExportMetricsServiceRequest | None]:
    """Requests of at most `POINTS_MAX` points; None after a slice of work that completes none."""
    request, points = ExportMetricsServiceRequest(), 0
    for client in clients:
        for start in range(0, len(client.series), SLICE_ROWS):
            some = client.series[start : start + SLICE_ROWS]
            _add(_scope(request, client), client, some)
            points += len(some)
            if points + SLICE_ROWS > POINTS_MAX:
                yield request
                request, points = ExportMetricsServiceRequest(), 0
            else:
                yield None
    if points:
        yield request


def _scope(request: ExportMetricsServiceRequest, client: Client) -> ScopeMetrics:
    of_resource = request.resource_metrics.add()
    of_resource.resource.attributes.extend(_attributes(_resource(client)))
    scope: ScopeMetrics = of_resource.scope_metrics.add()
    scope.scope.name = SCOPE
    return scope


def _resource(client: Client) -> dict[str, str]:
    """The broker's word counts more than the client's, but for the names that tell resources apart."""
    known = known_of(client)
    service = {"service.name": client.client_id, "service.instance.id": known["client_instance_id"]}
    return {**service, **dict(client.resource), **known}


def _add(scope: ScopeMetrics, client: Client, series: Iterable[Series]) -> None:
    for (name, kind), some in groupby(series, key=lambda one: (one.name, one.kind)):
        metric: Metric | None = None
        for one in some:
            if metric is None:
                metric = scope.metrics.add(name=name, description=one.description, unit=one.unit)
            _ADD[kind](metric, one, client)


def _add_gauge(metric: Metric, series: Series, client: Client) -> None:
    metric.gauge.data_points.append(_number(series, client))


def _add_count(metric: Metric, series: Series, client: Client) -> None:
    metric.sum.is_monotonic = True
    metric.sum.aggregation_temporality = _CUMULATIVE
    metric.sum.data_points.append(_number(series, client))


def _number(series: Series, client: Client) -> NumberDataPoint:
    point = NumberDataPoint()
    _begin(point, series, client)
    value = series.number
    if isinstance(value, int) and -_INT64 <= value < _INT64:
        point.as_int = value
    else:
        point.as_double = value
    return point


def _add_histogram(metric: Metric, series: Series, client: Client) -> None:
    value = series.value
    assert isinstance(value, Distribution)
    metric.histogram.aggregation_temporality = _CUMULATIVE
    counts = [int(one) for one in value.values]
    point = HistogramDataPoint(count=value.count, sum=value.sum, explicit_bounds=value.at, bucket_counts=counts)
    _begin(point, series, client)
    metric.histogram.data_points.append(point)


def _add_summary(metric: Metric, series: Series, client: Client) -> None:
    value = series.value
    assert isinstance(value, Distribution)
    point = SummaryDataPoint(count=value.count, sum=value.sum)
    for at, one in zip(value.at, value.values, strict=True):
        point.quantile_values.add(quantile=at, value=one)
    _begin(point, series, client)
    metric.summary.data_points.append(point)


_ADD: Final = {
    SeriesKind.GAUGE: _add_gauge,
    SeriesKind.COUNT: _add_count,
    SeriesKind.HISTOGRAM: _add_histogram,
    SeriesKind.SUMMARY: _add_summary,
}


def _begin(point: NumberDataPoint | HistogramDataPoint | SummaryDataPoint, series: Series, client: Client) -> None:
    """Labels and times, in nanoseconds; a start of 0 is one that is not known."""
    point.attributes.extend(_attributes(dict(series.labels)))
    point.start_time_unix_nano = series.start_ms * 1_000_000
    point.time_unix_nano = client.pushed_ms * 1_000_000


def _attributes(labels: Mapping[str, str]) -> list[KeyValue]:
    return [KeyValue(key=name, value=AnyValue(string_value=value)) for name, value in labels.items() if value]
