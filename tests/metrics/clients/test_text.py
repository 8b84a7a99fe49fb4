"""Series of clients as Prometheus reads them: its own parser is the judge."""

from __future__ import annotations

import math
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from kpybroker.metrics.clients.series import Client, Distribution, Labels, Series, SeriesKind, Value
from kpybroker.metrics.clients.text import SLICE_LINES, exposition_of_clients, number_text, prometheus_name

KNOWN = {
    "client_id": "orders",
    "client_instance_id": "AAAAAAAAAAAAAAAAAAAAAQ",
    "client_software_name": "apache-kafka-java",
    "client_software_version": "4.3.1",
}


def client(*series: Series, instance: int = 1, client_id: str = "orders", resource: Labels = ()) -> Client:
    known = (instance.to_bytes(16), client_id, "apache-kafka-java", "4.3.1", "10.0.0.1")
    return Client(*known, resource, 0, 0, 1, False, 0, series)


def series(
    name: str, value: Value = 1, kind: SeriesKind = SeriesKind.GAUGE, labels: Labels = (), unit: str = ""
) -> Series:
    return Series(name, labels, kind, value, unit)


def parsed(*clients: Client) -> dict[str, Metric]:
    text = "".join(exposition_of_clients(clients))
    families = list(text_string_to_metric_families(text))
    assert len({one.name for one in families}) == len(families)
    return {one.name: one for one in families}


@pytest.mark.parametrize(
    ("name", "kind", "unit", "expected"),
    [
        ("org.apache.kafka.producer.queue.time.avg", "gauge", "", "org_apache_kafka_producer_queue_time_avg"),
        ("org.apache.kafka.producer.creation.total", "count", "", "org_apache_kafka_producer_creation_total"),
        ("org.apache.kafka.producer.connections", "count", "", "org_apache_kafka_producer_connections_total"),
        ("org.apache.kafka.consumer.total", "gauge", "", "org_apache_kafka_consumer_total"),
        ("app.queue-time", "gauge", "ms", "app_queue_time_milliseconds"),
        ("app.queue_milliseconds", "gauge", "ms", "app_queue_milliseconds"),
        ("app.bytes.total", "count", "By", "app_bytes_total"),
        ("app.sent.total", "count", "By", "app_sent_bytes_total"),
        ("app.share", "gauge", "1", "app_share_ratio"),
        ("app.share", "count", "1", "app_share_total"),
        ("app.things", "gauge", "{things}", "app_things"),
        ("a..b__c/", "gauge", "", "a_b_c"),
        ("größe", "gauge", "", "gr_e"),
        ("äöü", "gauge", "", "_"),
        ("9lives", "gauge", "", "client_9lives"),
        ("kafka.server.replicamanager", "gauge", "", "client_kafka_server_replicamanager"),
        ("process_cpu_seconds", "count", "", "client_process_cpu_seconds_total"),
        ("..kafka.server", "gauge", "", "client_kafka_server"),
    ],
)
def test_names_are_those_of_opentelemetry_and_none_is_one_of_the_broker(
    name: str, kind: str, unit: str, expected: str
) -> None:
    assert prometheus_name(series(name, kind=SeriesKind(kind), unit=unit)) == expected


def test_labels_are_the_clients_its_resources_and_those_of_the_series() -> None:
    found = parsed(client(series("a.b", 2.5, labels=(("node-id", "1"),)), resource=(("group_id", "g"),)))
    (sample,) = found["a_b"].samples
    assert sample.labels == {**KNOWN, "group_id": "g", "node_id": "1"}
    assert (found["a_b"].type, sample.value) == ("gauge", 2.5)


def test_a_count_is_a_counter() -> None:
    found = parsed(client(series("a.total", 7, SeriesKind.COUNT)))
    assert (found["a"].type, found["a"].samples[0].name, found["a"].samples[0].value) == ("counter", "a_total", 7)


def test_clients_share_a_family() -> None:
    found = parsed(client(series("a", 1), series("b", 2)), client(series("a", 3), instance=2))
    assert [sample.value for sample in found["a"].samples] == [1, 3]
    assert len({sample.labels["client_instance_id"] for sample in found["a"].samples}) == 2


def test_a_histogram_has_buckets_that_add_up() -> None:
    value = Distribution(6, 9.5, (1.0, 2.5), (1, 2, 3))
    found = parsed(client(series("h", value, SeriesKind.HISTOGRAM)))["h"]
    assert found.type == "histogram"
    assert [(one.name, one.labels.get("le"), one.value) for one in found.samples] == [
        ("h_bucket", "1.0", 1),
        ("h_bucket", "2.5", 3),
        ("h_bucket", "+Inf", 6),
        ("h_sum", None, 9.5),
        ("h_count", None, 6),
    ]


def test_a_histogram_whose_count_is_a_lie_has_no_bucket_above_it() -> None:
    found = parsed(client(series("h", Distribution(2, 0, (1.0,), (5, 5)), SeriesKind.HISTOGRAM)))["h"]
    assert [one.value for one in found.samples if one.name == "h_bucket"] == [2, 2]


def test_a_histogram_without_buckets_and_a_summary() -> None:
    summary = Distribution(2, 3.0, (0.5, 0.99), (5.0, math.nan))
    found = parsed(
        client(series("h", Distribution(4, 2.5), SeriesKind.HISTOGRAM), series("s", summary, SeriesKind.SUMMARY))
    )
    assert [(one.name, one.value) for one in found["h"].samples] == [("h_bucket", 4), ("h_sum", 2.5), ("h_count", 4)]
    assert [(one.labels.get("quantile"), f"{one.value:g}") for one in found["s"].samples] == [
        ("0.5", "5"),
        ("0.99", "nan"),
        (None, "3"),
        (None, "2"),
    ]


@pytest.mark.parametrize(
    ("number", "text"),
    [(1, "1"), (2**70, str(2**70)), (0.1, "0.1"), (math.nan, "NaN"), (math.inf, "+Inf"), (-math.inf, "-Inf")],
)
def test_numbers_are_written_as_prometheus_does(number: float, text: str) -> None:
    assert number_text(number) == text


def test_hostile_texts_stay_within_their_label() -> None:
    evil = '"} 1\nkafka_server_forged{x="'
    found = parsed(
        client(
            series("a", labels=((evil, evil), ("v", "\\"))),
            client_id=evil,
            resource=(("r", evil),),
        )
    )
    (sample,) = found["a"].samples
    assert list(found) == ["a"]
    assert (sample.labels["client_id"], sample.labels["r"], sample.labels["v"]) == (evil, evil, "\\")
    assert sorted(sample.labels.values()).count(evil) == 3


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("__name__", "key_name__"),
        ("__address__", "key_address__"),
        ("1st", "key_1st"),
        ("le", "exported_le"),
        ("quantile", "exported_quantile"),
        ("client_id", "exported_client_id"),
        ("client.instance.id", "exported_client_instance_id"),
        ("group_id", "exported_group_id"),
        ("é", "_"),
        ("", "_"),
    ],
)
def test_labels_take_no_name_of_prometheus_or_the_broker(label: str, expected: str) -> None:
    found = parsed(client(series("a", labels=((label or "?", "mine"),)), resource=(("group_id", "g"),)))
    (sample,) = found["a"].samples
    assert sample.labels[expected] == "mine"
    assert sample.labels["client_id"] == "orders"
    assert sample.labels["group_id"] == "g"


def test_names_that_become_the_same_are_one_line_of_one_type() -> None:
    found = parsed(
        client(
            series("a.b", 1),
            series("a-b", 2),
            series("x", 3, labels=(("l.1", "v"),)),
            series("x", 4, labels=(("l-1", "v"),)),
            series("y.total", 5, SeriesKind.GAUGE),
            series("y", 6, SeriesKind.COUNT),
        )
    )
    assert {name: [one.value for one in family.samples] for name, family in found.items()} == {
        "a_b": [1],
        "x": [3],
        "y_total": [5],
    }


def test_descriptions_are_help() -> None:
    described = Series("a", (), SeriesKind.GAUGE, 1, "", "of the\nqueue \\ x")
    assert parsed(client(described))["a"].documentation == "of the\nqueue \\ x"
    assert "HELP" not in "".join(exposition_of_clients([client(series("a"))]))


def test_the_text_is_made_in_slices() -> None:
    many = [series(f"a{n}", n) for n in range(SLICE_LINES * 2)]
    same = [series("b", n, labels=(("n", str(n)),)) for n in range(SLICE_LINES * 2)]
    pieces = list(exposition_of_clients([client(*many, *same)]))
    assert pieces[:5] == [""] * 5
    assert max(piece.count("\n") for piece in pieces) <= SLICE_LINES


TEXTS = st.text(st.characters(blacklist_categories=["Cs"]), max_size=20)
PAIRS = st.dictionaries(TEXTS.filter(bool), TEXTS, max_size=4).map(lambda found: tuple(sorted(found.items())))


@given(st.lists(st.tuples(TEXTS.filter(bool), PAIRS, st.floats()), max_size=8), TEXTS, PAIRS)
def test_any_texts_are_a_page_that_prometheus_reads(
    found: list[tuple[str, Labels, float]], client_id: str, resource: Labels
) -> None:
    page = parsed(
        client(
            *(series(name, value, labels=labels) for name, labels, value in found),
            client_id=client_id,
            resource=resource,
        )
    )
    allowed = set(string.ascii_letters + string.digits + "_:")
    for name, family in page.items():
        assert set(name) <= allowed
        assert not name.startswith(("kafka_", "process_"))
        assert len({tuple(sorted(one.labels.items())) for one in family.samples}) == len(family.samples)
    assert sum(len(family.samples) for family in page.values()) <= len(found)
