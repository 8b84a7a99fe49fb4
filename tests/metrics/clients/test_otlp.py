"""Series of clients as OTLP's messages, read back."""

from __future__ import annotations

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric

from kpybroker.metrics.clients.otlp import requests_of_clients
from kpybroker.metrics.clients.series import Client, Distribution, Labels, Series, SeriesKind
from kpybroker.metrics.otlp import POINTS_MAX, SLICE_ROWS

PUSHED_MS, START_MS = 9_000, 5_000
INSTANCE = "AAAAAAAAAAAAAAAAAAAAAQ"


def client(*series: Series, instance: int = 1, resource: Labels = ()) -> Client:
    known = (instance.to_bytes(16), "orders", "librdkafka", "2.16.1", "10.0.0.1")
    return Client(*known, resource, START_MS, PUSHED_MS, 1, False, 0, series)


def exported(*clients: Client) -> list[ExportMetricsServiceRequest]:
    made = requests_of_clients(clients)
    return [ExportMetricsServiceRequest.FromString(one.SerializeToString()) for one in made if one is not None]


def labels(attributes: list[KeyValue]) -> dict[str, str]:
    return {one.key: one.value.string_value for one in attributes}


def metrics(*series: Series) -> dict[str, Metric]:
    (request,) = exported(client(*series))
    return {one.name: one for one in request.resource_metrics[0].scope_metrics[0].metrics}


def test_the_resource_is_what_the_client_says_and_what_the_broker_knows() -> None:
    resource = (("client_id", "a lie"), ("client.rack", "r"), ("service.name", "shop"))
    (request,) = exported(client(Series("a", (), SeriesKind.GAUGE, 1), resource=resource))
    (of_resource,) = request.resource_metrics
    assert labels(list(of_resource.resource.attributes)) == {
        "service.name": "shop",
        "service.instance.id": INSTANCE,
        "client.rack": "r",
        "client_id": "orders",
        "client_instance_id": INSTANCE,
        "client_software_name": "librdkafka",
        "client_software_version": "2.16.1",
    }


def test_values_keep_their_names_types_and_units() -> None:
    found = metrics(
        Series("count", (("node_id", "1"),), SeriesKind.COUNT, 3, start_ms=START_MS),
        Series("gauge", (), SeriesKind.GAUGE, 0.5, "ms", "of a queue"),
        Series("histogram", (), SeriesKind.HISTOGRAM, Distribution(6, 9.5, (1.0,), (2, 4))),
        Series("summary", (), SeriesKind.SUMMARY, Distribution(2, 3.0, (0.5,), (5.0,))),
    )
    count, gauge = found["count"].sum, found["gauge"]
    assert (count.is_monotonic, count.aggregation_temporality) == (
        True,
        AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE,
    )
    (point,) = count.data_points
    assert (point.as_int, labels(list(point.attributes))) == (3, {"node_id": "1"})
    assert (point.start_time_unix_nano, point.time_unix_nano) == (START_MS * 10**6, PUSHED_MS * 10**6)
    assert (gauge.unit, gauge.description, gauge.gauge.data_points[0].as_double) == ("ms", "of a queue", 0.5)
    (bucket,) = found["histogram"].histogram.data_points
    assert (bucket.count, bucket.sum, list(bucket.explicit_bounds), list(bucket.bucket_counts)) == (6, 9.5, [1], [2, 4])
    (summary,) = found["summary"].summary.data_points
    assert [(one.quantile, one.value) for one in summary.quantile_values] == [(0.5, 5.0)]


def test_a_count_that_no_integer_of_otlp_holds_is_a_double() -> None:
    (point,) = metrics(Series("a", (), SeriesKind.COUNT, 2**70))["a"].sum.data_points
    assert (point.WhichOneof("value"), point.as_double) == ("as_double", 2.0**70)


def test_series_of_a_name_are_points_of_a_metric() -> None:
    found = metrics(*(Series("a", (("n", str(n)),), SeriesKind.GAUGE, n) for n in range(3)))
    assert [point.as_int for point in found["a"].gauge.data_points] == [0, 1, 2]


def test_many_series_are_several_requests_and_none_is_lost() -> None:
    count = 400
    clients = [
        client(*(Series(f"a{n}", (), SeriesKind.GAUGE, n) for n in range(count)), instance=instance)
        for instance in range(30)
    ]
    requests = exported(*clients)
    sizes = [
        sum(len(scope.metrics) for one in request.resource_metrics for scope in one.scope_metrics)
        for request in requests
    ]
    assert max(sizes) <= POINTS_MAX
    assert sum(sizes) == 30 * count
    steps = sum(1 for one in requests_of_clients(clients))
    assert steps >= 30 * count / SLICE_ROWS


def test_nothing_is_no_request() -> None:
    assert exported() == []
    assert exported(client()) == []
