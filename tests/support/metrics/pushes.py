"""OTLP as clients encode it: one metric a point, as Java's client and librdkafka do; franz-go leaves out zeros."""

from __future__ import annotations

from collections.abc import Mapping

from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric, MetricsData

from kpybroker.broker.client_metrics.receiver import Pushed

DELTA = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE

QUEUE_TIME = "org.apache.kafka.producer.record.queue.time.avg"
CREATIONS = "org.apache.kafka.producer.connection.creation.total"
LATENCY = "org.apache.kafka.producer.node.request.latency.avg"


def metrics_data(*metrics: Metric, **resource: str) -> bytes:
    """A push with these metrics."""
    data = MetricsData()
    of_resource = data.resource_metrics.add()
    of_resource.resource.attributes.extend(attributes(resource))
    of_resource.scope_metrics.add().metrics.extend(metrics)
    return bytes(data.SerializeToString())


def gauge(name: str, value: float, **labels: str | int) -> Metric:
    """A gauge as Java has it: a double, whatever it is."""
    metric = Metric(name=name)
    metric.gauge.data_points.add(as_double=value, attributes=attributes(labels), time_unix_nano=1)
    return metric


def total(name: str, value: float, temporality: int = DELTA, **labels: str | int) -> Metric:
    """A sum that only grows; an integer as librdkafka has it."""
    metric = Metric(name=name)
    metric.sum.is_monotonic = True
    metric.sum.aggregation_temporality = temporality  # type: ignore[assignment]
    point = metric.sum.data_points.add(attributes=attributes(labels))
    if isinstance(value, int):
        point.as_int = value
    else:
        point.as_double = value
    return metric


def attributes(labels: Mapping[str, str | int]) -> list[KeyValue]:
    """Texts and integers."""
    found = []
    for name, value in labels.items():
        one = KeyValue(key=name)
        if isinstance(value, int):
            one.value.int_value = value
        else:
            one.value.string_value = value
        found.append(one)
    return found


def pushed(metrics: bytes, client_id: str = "orders", instance: int = 1, terminating: bool = False) -> Pushed:
    """A push of a client at 10.0.0.1."""
    known = (instance.to_bytes(16), client_id, "apache-kafka-java", "4.3.1", "10.0.0.1")
    return Pushed(*known, terminating=terminating, metrics=metrics, interval_ms=30_000)
