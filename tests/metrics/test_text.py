"""The text, as Prometheus' own parser reads it."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kpybroker.metrics.histogram import Histogram
from kpybroker.metrics.reading import Reading, Share, single
from kpybroker.metrics.spelling import Spelling
from kpybroker.metrics.tables import log, network, requests, topics
from kpybroker.metrics.text import SLICE_LINES, exposition

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def parsed(readings: list[Reading], spelling: Spelling = Spelling.JMX_EXPORTER) -> tuple[Samples, dict[str, str]]:
    text = "".join(exposition(readings, spelling))
    families = list(text_string_to_metric_families(text))
    samples = {(one.name, frozenset(one.labels.items())): one.value for family in families for one in family.samples}
    return samples, {family.name: family.type for family in families}


def labelled(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset(labels.items())


@pytest.mark.parametrize("spelling", Spelling)
def test_every_kind_is_read_back(spelling: Spelling) -> None:
    histogram = Histogram(scale=0.001)
    histogram.record(1500)
    readings = [
        Reading([("",), ("t",)], [(topics.BYTES_IN, [7, 5]), (topics.BYTES_OUT, [3, None])]),
        single((network.HANDLER_IDLE, Share(250, 0.75))),
        Reading([("Produce",)], [(requests.TOTAL_TIME, [histogram])]),
    ]
    samples, types = parsed(readings, spelling)
    prefix = "kafka_server_brokertopicmetrics_bytes"
    suffix = {Spelling.JMX_EXPORTER: "_total", Spelling.METRICS_REPORTER: "persec_total"}.get(spelling, "persec")
    assert samples[labelled(f"{prefix}in{suffix}")] == 7
    assert samples[labelled(f"{prefix}in{suffix}", topic="t")] == 5
    assert labelled(f"{prefix}out{suffix}", topic="t") not in samples
    assert types[f"{prefix}in{suffix}".removesuffix("_total")] in ("counter", "unknown")
    idle = next(value for (name, _), value in samples.items() if "requesthandleravgidle" in name)
    assert idle == (250 if spelling is Spelling.METRICS_REPORTER else 0.75)
    time = "kafka_network_requestmetrics_totaltimems"
    assert samples[labelled(f"{time}_count", request="Produce")] == 1
    assert samples[labelled(f"{time}_sum", request="Produce")] == 1.5
    quantile = "0.5" if spelling is Spelling.METRICS_REPORTER else "0.50"
    assert samples[labelled(time, request="Produce", quantile=quantile)] == pytest.approx(1.5, rel=0.065)


@pytest.mark.parametrize("name", ['quote "', "back\\slash", "new\nline", "naïve", '{a="b"} 1', "\\n"])
def test_any_text_may_be_a_label(name: str) -> None:
    samples, _ = parsed([Reading([(name, "0")], [(log.SIZE, [1])])])
    assert samples == {labelled("kafka_log_log_size", topic=name, partition="0"): 1}


def test_long_columns_come_in_slices_and_in_one_group() -> None:
    count = SLICE_LINES * 3 + 1
    rows = [("t", str(index)) for index in range(count)]
    pieces = list(
        exposition([Reading(rows, [(log.SIZE, range(count)), (log.SEGMENTS, range(count))])], Spelling("jmx-exporter"))
    )
    assert max(piece.count("\n") for piece in pieces) <= SLICE_LINES + 2
    lines = "".join(pieces).splitlines()
    assert [line for line in lines if line.startswith("# TYPE")] == [
        "# TYPE kafka_log_log_size gauge",
        "# TYPE kafka_log_log_numlogsegments gauge",
    ]
    assert len(lines) == 2 * (count + 2)
    samples, _ = parsed([Reading(rows, [(log.SIZE, range(count))])])
    assert sum(samples.values()) == sum(range(count))


def test_a_reading_without_rows_has_only_its_heads() -> None:
    samples, types = parsed([Reading([], [(log.SIZE, []), (requests.TOTAL_TIME, [])])])
    assert samples == {}
    assert types == {"kafka_log_log_size": "gauge", "kafka_network_requestmetrics_totaltimems": "summary"}
