"""OTLP's messages of a known reading."""

from __future__ import annotations

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric

from kpybroker.metrics.histogram import Histogram
from kpybroker.metrics.otlp import POINTS_MAX, SLICE_ROWS, Exported
from kpybroker.metrics.reading import Reading, Share, single
from kpybroker.metrics.spelling import Spelling
from kpybroker.metrics.tables import log, network, replication, requests, topics

START_NS, NOW_NS = 5_000_000_000, 9_000_000_000


def exported(readings: list[Reading], spelling: Spelling = Spelling.JMX_EXPORTER) -> list[ExportMetricsServiceRequest]:
    """Serialized and read back."""
    made = Exported({"service.name": "kpybroker"}, spelling, START_NS, NOW_NS).requests(readings)
    return [ExportMetricsServiceRequest.FromString(one.SerializeToString()) for one in made if one is not None]


def metrics(request: ExportMetricsServiceRequest) -> dict[str, Metric]:
    (of_resource,) = request.resource_metrics
    (of_scope,) = of_resource.scope_metrics
    assert of_scope.scope.name == "kpybroker"
    assert labels(of_resource.resource.attributes) == {"service.name": "kpybroker"}
    return {metric.name: metric for metric in of_scope.metrics}


def labels(attributes: list[KeyValue]) -> dict[str, str]:
    return {one.key: one.value.string_value for one in attributes}


def test_a_count_is_a_monotonic_sum_since_the_start() -> None:
    (request,) = exported([Reading([("",), ("orders",), ("idle",)], [(topics.BYTES_IN, [7, 5, None])])])
    metric = metrics(request)["kafka_server_brokertopicmetrics_bytesin_total"]
    assert (metric.description, metric.unit) == (topics.BYTES_IN.meaning, "")
    assert metric.sum.is_monotonic
    assert metric.sum.aggregation_temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
    assert [(labels(list(one.attributes)), one.as_int) for one in metric.sum.data_points] == [
        ({}, 7),
        ({"topic": "orders"}, 5),
    ]
    assert {(one.start_time_unix_nano, one.time_unix_nano) for one in metric.sum.data_points} == {(START_NS, NOW_NS)}


def test_a_number_is_a_gauge() -> None:
    (request,) = exported([single((replication.PARTITION_COUNT, 3), (network.NETWORK_IDLE, 0.5))])
    found = metrics(request)
    (point,) = found["kafka_server_replicamanager_partitioncount"].gauge.data_points
    assert (point.WhichOneof("value"), point.as_int) == ("as_int", 3)
    (point,) = found["kafka_network_socketserver_networkprocessoravgidle_percent"].gauge.data_points
    assert (point.WhichOneof("value"), point.as_double) == ("as_double", 0.5)


@pytest.mark.parametrize("spelling", Spelling)
def test_a_share_is_what_the_spelling_makes_of_it(spelling: Spelling) -> None:
    (request,) = exported([single((network.HANDLER_IDLE, Share(250, 0.75)))], spelling)
    (metric,) = metrics(request).values()
    if spelling is Spelling.METRICS_REPORTER:
        assert metric.sum.data_points[0].as_int == 250
    else:
        assert metric.gauge.data_points[0].as_double == 0.75


def test_a_distribution_is_a_summary() -> None:
    histogram = Histogram(scale=0.001)
    histogram.record(2000)
    (request,) = exported([Reading([("Produce",)], [(requests.TOTAL_TIME, [histogram])])])
    (point,) = metrics(request)["kafka_network_requestmetrics_totaltimems"].summary.data_points
    assert labels(list(point.attributes)) == {"request": "Produce"}
    assert (point.count, point.sum) == (1, 2.0)
    assert [one.quantile for one in point.quantile_values] == [0.5, 0.75, 0.95, 0.98, 0.99, 0.999]
    assert all(one.value == pytest.approx(2.0, rel=0.065) for one in point.quantile_values)


def test_a_large_reading_is_several_requests_and_loses_nothing() -> None:
    count = POINTS_MAX * 2 + 7
    rows = [(f"t{index}", "0") for index in range(count)]
    requests_made = exported([Reading(rows, [(log.SIZE, list(range(count)))])])
    points = [
        [one.as_int for metric in metrics(request).values() for one in metric.gauge.data_points]
        for request in requests_made
    ]
    assert [len(one) for one in points] == [POINTS_MAX, POINTS_MAX, 7]
    assert [value for one in points for value in one] == list(range(count))


def test_nothing_is_no_request() -> None:
    assert exported([]) == []
    assert exported([Reading([], [(log.SIZE, [])])]) == []


def test_labels_and_points_are_made_in_slices() -> None:
    rows = [(f"t{index}", "0") for index in range(SLICE_ROWS * 3 + 1)]
    made = Exported({}, Spelling.JMX_EXPORTER, START_NS, NOW_NS)
    assert len(list(made.requests([Reading(rows, [(log.SIZE, range(len(rows)))])]))) == 4 + 4 + 1
