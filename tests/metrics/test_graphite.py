"""Graphite's lines of a known reading, one by one. compat_tests/metrics compares the names with Yammer's own."""

from __future__ import annotations

import re

import pytest

from kpybroker.config.keys.own import ROWS
from kpybroker.metrics.graphite import DIMENSIONS, SLICE_ROWS, Layout, lines
from kpybroker.metrics.histogram import Histogram
from kpybroker.metrics.mbeans import Family
from kpybroker.metrics.rates import TICK_S, Rates
from kpybroker.metrics.reading import Reading, Share, Tags, single
from kpybroker.metrics.tables import controller, exporter, log, network, process, replication, requests, topics

Ratings = dict[tuple[Family, Tags], Rates]


def sent(readings: list[Reading], layout: Layout | None = None, rates: Ratings | None = None) -> list[str]:
    return "".join(lines(readings, layout or Layout("kafka"), rates or {}, 10.0, 1700000000)).splitlines()


def distribution() -> Histogram:
    """Of 1, 3 and 5, each exact."""
    histogram = Histogram()
    for value in (1, 3, 5):
        histogram.record(value)
    return histogram


def test_a_gauge_has_one_line_with_the_value_as_java_writes_it() -> None:
    reading = single((replication.PARTITION_COUNT, 12), (network.NETWORK_IDLE, 0.5), (controller.ACTIVE, 1e-5))
    assert sent([reading]) == [
        "kafka.kafka.server.ReplicaManager.PartitionCount.value 12 1700000000",
        "kafka.kafka.network.SocketServer.NetworkProcessorAvgIdlePercent.value 0.5 1700000000",
        "kafka.kafka.controller.KafkaController.ActiveControllerCount.value 1.0E-5 1700000000",
    ]


def test_a_meter_has_its_count_and_with_the_ticker_its_rates() -> None:
    reading = Reading([("",), ("orders",)], [(topics.MESSAGES_IN, [70, 50])])
    rates = Rates(0, 0.0)
    rates.tick(50)
    assert sent([reading], rates={(topics.MESSAGES_IN, ("orders",)): rates}) == [
        "kafka.kafka.server.BrokerTopicMetrics.MessagesInPerSec.count 70 1700000000",
        "kafka.kafka.server.BrokerTopicMetrics.topic.orders.MessagesInPerSec.count 50 1700000000",
        "kafka.kafka.server.BrokerTopicMetrics.topic.orders.MessagesInPerSec.meanRate 5.00 1700000000",
        *(
            f"kafka.kafka.server.BrokerTopicMetrics.topic.orders.MessagesInPerSec.{minutes}MinuteRate "
            f"{50 / TICK_S:.2f} 1700000000"
            for minutes in (1, 5, 15)
        ),
    ]


def test_a_histogram_has_no_count_and_a_timer_has_one() -> None:
    values = (
        *(("min", "1.00"), ("max", "5.00"), ("mean", "3.00"), ("sum", "9.00"), ("median", "3.00")),
        *((f"{digits}percentile", "5.00") for digits in ("75", "95", "98", "99", "999")),
    )
    name = "kafka.kafka.network.RequestMetrics.request.Produce.TotalTimeMs"
    assert sent([Reading([("Produce",)], [(requests.TOTAL_TIME, [distribution()])])]) == [
        f"{name}.{suffix} {value} 1700000000" for suffix, value in values
    ]
    name = "kafka.kafka.log.LogFlushStats.LogFlushRateAndTimeMs"
    assert sent([single((log.FLUSH_TIME, distribution()))]) == [
        f"{name}.{suffix} {value} 1700000000" for suffix, value in (("count", "3"), *values)
    ]


def test_a_share_of_the_time_has_its_nanoseconds_and_the_last_minute() -> None:
    name = "kafka.kafka.server.KafkaRequestHandlerPool.RequestHandlerAvgIdlePercent"
    assert sent([single((network.HANDLER_IDLE, Share(250, 0.754)))]) == [
        f"{name}.count 250 1700000000",
        f"{name}.1MinuteRate 0.75 1700000000",
    ]


def test_tags_are_in_order_and_dots_and_spaces_do_not_make_levels() -> None:
    reading = Reading([("my.topic", "0")], [(log.SIZE, [1])])
    name = "my-group.kafka.log.Log.partition.0.topic.my_topic.Size"
    assert sent([reading], Layout("my group")) == [f"{name}.value 1 1700000000"]
    (line,) = sent([Reading([("/data/a b\nc",)], [(log.DIRECTORY_OFFLINE, [0])])])
    assert line == "kafka.kafka.log.LogManager.logDirectory./data/a-b-c.LogDirectoryOffline.value 0 1700000000"


def test_what_is_not_of_yammer_is_not_sent() -> None:
    readings = [
        Reading([("listener", "0")], [(network.CONNECTION_COUNT, [1])]),
        single((exporter.BROKERS, 1), (process.RESIDENT, 1)),
        Reading([("t",)], [(topics.BYTES_IN, [None])]),
    ]
    assert sent(readings) == []


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        (r"kafka.server.BrokerTopicMetrics.topic.*", ["BytesInPerSec"]),
        (r"kafka\.server\.BrokerTopicMetrics\.BytesInPerSec", ["topic.orders.BytesInPerSec"]),
        (r"BytesInPerSec", ["BytesInPerSec", "topic.orders.BytesInPerSec"]),
        (r".*\.count", ["BytesInPerSec", "topic.orders.BytesInPerSec"]),
        (r"(kafka.network.*|kafka.server.*)", []),
        (r"(?!.*orders).*", ["topic.orders.BytesInPerSec"]),
    ],
)
def test_an_mbean_is_excluded_by_its_whole_name_without_group_and_dimension(pattern: str, left: list[str]) -> None:
    reading = Reading([("",), ("orders",)], [(topics.BYTES_IN, [1, 1])])
    names = [f"kafka.kafka.server.BrokerTopicMetrics.{name}.count 1 1700000000" for name in left]
    assert sent([reading], Layout("kafka", re.compile(pattern))) == names


def test_dimensions_that_are_off_are_left_out_but_of_gauges() -> None:
    layout = Layout("k", suffixes=frozenset(("75percentile",)))
    readings = [
        Reading([("Fetch",)], [(requests.TOTAL_TIME, [distribution()])]),
        single((replication.PARTITION_COUNT, 1)),
    ]
    assert sent(readings, layout) == [
        "k.kafka.network.RequestMetrics.request.Fetch.TotalTimeMs.75percentile 5.00 1700000000",
        "k.kafka.server.ReplicaManager.PartitionCount.value 1 1700000000",
    ]


def test_every_dimension_has_a_key() -> None:
    start = "kafka.graphite.dimension.enabled."
    assert [row[0].removeprefix(start) for row in ROWS if row[0].startswith(start)] == list(DIMENSIONS)


def test_long_columns_come_in_slices() -> None:
    count = SLICE_ROWS * 3 + 1
    rows = [(f"t{index}", "0") for index in range(count)]
    slices = list(lines([Reading(rows, [(log.SIZE, list(range(count)))])], Layout("k"), {}, 0.0, 0))
    assert [text.count("\n") for text in slices] == [*[0] * 4, SLICE_ROWS, SLICE_ROWS, SLICE_ROWS, 1]
