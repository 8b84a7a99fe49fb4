"""OTLP of clients, of a known content and of strangers."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, MetricsData

from kpybroker.metrics.clients.decoding import (
    BUCKETS_MAX,
    LABELS_MAX,
    NAME_CHARS_MAX,
    SAMPLES_MAX,
    STEPS_MAX,
    TEXT_CHARS_MAX,
    Decoded,
    NotOtlp,
    decode,
)
from kpybroker.metrics.clients.series import Distribution, SeriesKind
from tests.support.metrics.pushes import CREATIONS, CUMULATIVE, LATENCY, QUEUE_TIME, gauge, metrics_data, total

PUSH = metrics_data(
    gauge(QUEUE_TIME, 2.5), total(CREATIONS, 3), gauge(LATENCY, 1.0, node_id=1), group_id="g", client_rack="r"
)


def nested(field: int, content: bytes) -> bytes:
    """A field of protobuf that has a length; what no library would write."""
    size, length = len(content), bytearray()
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([field << 3 | 2, *length, size]) + content


def of_metric(content: bytes) -> bytes:
    return nested(1, nested(2, nested(2, content)))


def test_names_labels_values_and_the_resource() -> None:
    found = decode(PUSH)
    assert found.resource == (("client_rack", "r"), ("group_id", "g"))
    assert [(one.series.name, one.series.labels, one.series.value) for one in found.samples] == [
        (QUEUE_TIME, (), 2.5),
        (CREATIONS, (), 3),
        (LATENCY, (("node_id", "1"),), 1.0),
    ]
    kinds = [(one.series.kind, one.is_delta) for one in found.samples]
    assert kinds == [(SeriesKind.GAUGE, False), (SeriesKind.COUNT, True), (SeriesKind.GAUGE, False)]
    assert found.left_out == 0


def test_a_cumulative_sum_is_no_delta_and_one_that_may_fall_is_a_gauge() -> None:
    falling = total("app.open", 3)
    falling.sum.is_monotonic = False
    whole, fallen = decode(metrics_data(total(CREATIONS, 3, CUMULATIVE), falling)).samples
    assert (whole.series.kind, whole.is_delta) == (SeriesKind.COUNT, False)
    assert (fallen.series.kind, fallen.is_delta) == (SeriesKind.GAUGE, True)


def test_distributions() -> None:
    histogram, exponential, summary = Metric(name="h"), Metric(name="e"), Metric(name="s")
    histogram.histogram.data_points.add(count=6, sum=9.5, explicit_bounds=[1, 2], bucket_counts=[1, 2, 3])
    exponential.exponential_histogram.data_points.add(count=4, sum=2.5, scale=3)
    point = summary.summary.data_points.add(count=2, sum=3.0)
    point.quantile_values.add(quantile=0.99, value=7)
    point.quantile_values.add(quantile=0.5, value=5)
    found = decode(metrics_data(histogram, exponential, summary)).samples
    assert [one.series.value for one in found] == [
        Distribution(6, 9.5, (1, 2), (1, 2, 3)),
        Distribution(4, 2.5),
        Distribution(2, 3.0, (0.5, 0.99), (5, 7)),
    ]


@pytest.mark.parametrize(
    ("bounds", "counts"),
    [
        ([1, 2], [1, 2]),
        ([2, 1], [1, 1, 1]),
        ([1, 1], [1, 1, 1]),
        ([math.nan], [1, 1]),
        ([math.inf], [1, 1]),
        ([], [1, 1]),
        ([1], []),
        (list(range(BUCKETS_MAX)), [1] * (BUCKETS_MAX + 1)),
    ],
)
def test_a_histogram_without_sense_is_left_out(bounds: list[float], counts: list[int]) -> None:
    metric = Metric(name="h")
    metric.histogram.data_points.add(count=1, explicit_bounds=bounds, bucket_counts=counts)
    assert decode(metrics_data(metric, gauge("g", 1))).left_out == 1


def test_points_without_a_value_or_a_name_are_left_out() -> None:
    empty = Metric(name="x")
    empty.gauge.data_points.add()
    found = decode(metrics_data(empty, gauge("", 1), gauge("n" * (NAME_CHARS_MAX + 1), 1), Metric(name="no data")))
    assert (found.samples, found.left_out) == ([], 3)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_none_are_kept_as_values(value: float) -> None:
    (sample,) = decode(metrics_data(gauge(QUEUE_TIME, value))).samples
    assert str(sample.series.value) == str(value)


def test_attributes_of_each_type() -> None:
    data = MetricsData.FromString(metrics_data(gauge(QUEUE_TIME, 1)))
    attributes = data.resource_metrics[0].scope_metrics[0].metrics[0].gauge.data_points[0].attributes
    attributes.add(key="flag").value.bool_value = True
    attributes.add(key="double").value.double_value = 0.5
    attributes.add(key="bytes").value.bytes_value = b"\xff\x00"
    attributes.add(key="list").value.array_value.values.add(string_value="x")
    attributes.add(key="none")
    attributes.add(key="").value.string_value = "no name"
    (sample,) = decode(data.SerializeToString()).samples
    assert dict(sample.series.labels) == {"flag": "true", "double": "0.5", "bytes": "/wA="}


def test_texts_and_numbers_of_labels_are_bounded() -> None:
    labels: dict[str, str | int] = {f"label-{n:03}": "v" * 1000 for n in range(LABELS_MAX + 50)}
    (sample,) = decode(metrics_data(gauge(QUEUE_TIME, 1, **labels))).samples
    assert len(sample.series.labels) == LABELS_MAX
    assert {len(value) for _, value in sample.series.labels} == {TEXT_CHARS_MAX}


def test_samples_are_bounded() -> None:
    found = decode(metrics_data(*(gauge(f"g{n}", n) for n in range(SAMPLES_MAX + 5))))
    assert (len(found.samples), found.left_out) == (SAMPLES_MAX, 5)


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a\x00" * STEPS_MAX * 2,
        nested(1, b"\x12\x00" * STEPS_MAX * 2),
        nested(1, nested(2, b"\x12\x00" * STEPS_MAX * 2)),
        of_metric(nested(1, b"a") + nested(5, b"\x0a\x00" * STEPS_MAX * 2)),
    ],
    ids=["resources", "scopes", "metrics", "points"],
)
def test_enormous_numbers_of_empty_elements_are_looked_at_up_to_a_bound(data: bytes) -> None:
    found = decode(data)
    assert found.samples == []
    assert found.left_out <= STEPS_MAX


def test_what_is_cut_is_refused_or_is_less() -> None:
    """A cut between two fields is no error of protobuf: it is a push with less."""
    whole = len(decode(PUSH).samples)
    refused = 0
    for end in range(len(PUSH)):
        try:
            assert len(decode(PUSH[:end]).samples) <= whole
        except NotOtlp:
            refused += 1
    assert refused > len(PUSH) // 2


@pytest.mark.parametrize(
    "data",
    [
        b"\xff" * 100,
        b"not OTLP at all",
        of_metric(nested(1, b"\xff\xfe")),
        nested(1, nested(1, nested(1, nested(1, b"\xc3\x28")))),
        of_metric(nested(5, nested(1, nested(7, nested(1, b"k") + nested(2, nested(1, b"\x80")))))),
        b"\x0a\xff\xff\xff\xff\x0f",
        b"\x53" * 1000,
    ],
    ids=["ones", "text", "name", "resource", "label", "length", "groups"],
)
def test_what_is_no_otlp_is_refused(data: bytes) -> None:
    with pytest.raises(NotOtlp):
        decode(data)


def test_attributes_that_are_nested_without_end_are_refused() -> None:
    value = nested(1, b"x")
    for _ in range(500):
        value = nested(5, nested(1, value))
    with pytest.raises(NotOtlp):
        decode(nested(1, nested(1, nested(1, nested(1, b"k") + nested(2, value)))))


def refused_or_decoded(data: bytes) -> Decoded | None:
    try:
        return decode(data)
    except NotOtlp:
        return None


@given(st.binary(max_size=400))
def test_random_bytes_are_refused_or_decoded(data: bytes) -> None:
    refused_or_decoded(data)


@given(st.randoms(use_true_random=False), st.integers(1, 8))
def test_a_push_with_changed_bytes_is_refused_or_decoded(chance: random.Random, changes: int) -> None:
    data = bytearray(PUSH)
    for _ in range(changes):
        data[chance.randrange(len(data))] = chance.randrange(256)
    found = refused_or_decoded(bytes(data))
    assert found is None or len(found.samples) + found.left_out <= STEPS_MAX
