"""The table of what clients have pushed: what is summed up, what is kept, what is forgotten."""

from __future__ import annotations

import math

import pytest

from kpybroker.metrics.clients import table as table_of
from kpybroker.metrics.clients.decoding import decode
from kpybroker.metrics.clients.series import COUNT_MAX, Client, Distribution, Sample, Series, SeriesKind
from kpybroker.metrics.clients.table import ENDED_MS, KEPT_MS_MIN, ClientTable, Push
from tests.support.metrics.pushes import CREATIONS, CUMULATIVE, LATENCY, QUEUE_TIME, gauge, metrics_data, total

NOW_MS = 1_000_000
INTERVAL_MS = 30_000


def push(
    table: ClientTable,
    data: bytes,
    now_ms: int = NOW_MS,
    instance: int = 1,
    client_id: str = "c",
    is_last: bool = False,
) -> Client:
    found = decode(data)
    known = Push(instance.to_bytes(16), client_id, "java", "4.3.1", "10.0.0.1", INTERVAL_MS, is_last)
    return table.push(known, found.resource, found.samples, found.left_out, now_ms)


def values(table: ClientTable, now_ms: int = NOW_MS, instance: int = 1) -> dict[str, object]:
    (found,) = (one for one in table.series(now_ms) if one.instance_id == instance.to_bytes(16))
    return {one.name: one.value for one in found.series}


def test_deltas_are_summed_up_and_whole_counts_kept() -> None:
    table = ClientTable()
    for delta, whole in ((3, 10), (2, 12), (0, 12)):
        push(table, metrics_data(total(CREATIONS, delta), total("whole", whole, CUMULATIVE)))
    assert values(table) == {CREATIONS: 5, "whole": 12}


def test_a_count_says_since_when_it_is_counted_where_that_is_known() -> None:
    table = ClientTable()
    data = metrics_data(total(CREATIONS, 1), total("whole", 9, CUMULATIVE))
    push(table, data, NOW_MS)
    push(table, data, NOW_MS + 7)
    (found,) = table.series(NOW_MS + 7)
    assert {one.name: one.start_ms for one in found.series} == {CREATIONS: NOW_MS, "whole": 0}


def test_series_differ_by_their_labels() -> None:
    table = ClientTable()
    for node in (1, 2, 1):
        push(table, metrics_data(total(CREATIONS, 1, node_id=node)))
    (found,) = table.series(NOW_MS)
    assert [(one.labels, one.value) for one in found.series] == [((("node_id", "1"),), 2), ((("node_id", "2"),), 1)]


def test_a_gauge_that_is_not_pushed_again_is_gone_and_a_count_stays() -> None:
    table = ClientTable()
    push(table, metrics_data(gauge(QUEUE_TIME, 1), total(CREATIONS, 4)))
    push(table, metrics_data(gauge(LATENCY, 2)))
    assert values(table) == {CREATIONS: 4, LATENCY: 2}
    push(table, metrics_data(total(CREATIONS, 1)))
    assert values(table) == {CREATIONS: 5}


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_spoils_no_sum(bad: float) -> None:
    table = ClientTable()
    for delta in (bad, 2.0, bad, 3.0):
        push(table, metrics_data(total(CREATIONS, delta)))
    assert values(table) == {CREATIONS: 5.0}


def test_histograms_are_added_and_begin_again_with_other_bounds() -> None:
    table = ClientTable()

    def take(value: Distribution, is_delta: bool = True) -> object:
        sample = Sample(Series("h", (), SeriesKind.HISTOGRAM, value), is_delta)
        table.push(Push(bytes(16), "c", "", "", "", INTERVAL_MS, False), (), [sample], 0, NOW_MS)
        (found,) = table.series(NOW_MS)
        return found.series[0].value

    take(Distribution(3, 4.5, (1.0,), (1, 2)))
    assert take(Distribution(2, math.nan, (1.0,), (2, 0))) == Distribution(5, 4.5, (1.0,), (3, 2))
    assert take(Distribution(1, 1.0, (9.0,), (1, 0))) == Distribution(1, 1.0, (9.0,), (1, 0))
    assert take(Distribution(7, 2.0, (9.0,), (7, 0)), is_delta=False) == Distribution(7, 2.0, (9.0,), (7, 0))
    assert take(Distribution(COUNT_MAX, 0, (9.0,), (COUNT_MAX, 0))) == Distribution(
        COUNT_MAX, 2.0, (9.0,), (COUNT_MAX, 0)
    )


def test_a_count_that_becomes_another_type_begins_again() -> None:
    table = ClientTable()
    push(table, metrics_data(total("x", 3)))
    falling = total("x", 4)
    falling.sum.is_monotonic = False
    push(table, metrics_data(falling))
    assert values(table) == {"x": 4}


def test_a_client_is_what_its_newest_push_says() -> None:
    table = ClientTable()
    push(table, metrics_data(gauge(QUEUE_TIME, 1), group_id="g", group_member_id="one"), NOW_MS)
    push(table, metrics_data(gauge(QUEUE_TIME, 1), group_id="g", group_member_id="two"), NOW_MS + 5, client_id="d")
    (found,) = table.clients(NOW_MS + 5)
    assert found.resource == (("group_id", "g"), ("group_member_id", "two"))
    assert (found.client_id, found.since_ms, found.pushed_ms, found.pushes) == ("d", NOW_MS, NOW_MS + 5, 2)
    assert found.series == ()


def test_series_are_found_by_client_and_by_name() -> None:
    table = ClientTable()
    push(table, metrics_data(gauge(QUEUE_TIME, 1), gauge(LATENCY, 2)), instance=1, client_id="a")
    push(table, metrics_data(gauge(QUEUE_TIME, 3)), instance=2, client_id="b")

    def found(**wanted: str) -> list[tuple[str, list[str]]]:
        return [(one.client_id, [series.name for series in one.series]) for one in table.series(NOW_MS, **wanted)]

    assert found() == [("a", [LATENCY, QUEUE_TIME]), ("b", [QUEUE_TIME])]
    assert found(client_id="b") == [("b", [QUEUE_TIME])]
    assert found(name=LATENCY) == [("a", [LATENCY]), ("b", [])]
    assert found(client_id="stranger") == []


def test_a_client_is_forgotten_after_three_intervals_and_begins_again_from_nothing() -> None:
    table = ClientTable()
    push(table, metrics_data(total(CREATIONS, 5)))
    end = NOW_MS + 3 * INTERVAL_MS
    assert 3 * INTERVAL_MS > KEPT_MS_MIN
    assert len(table.clients(end)) == 1
    assert table.clients(end + 1) == []
    push(table, metrics_data(total(CREATIONS, 5)))
    push(table, metrics_data(total(CREATIONS, 2)), end + 1)
    assert values(table, end + 1) == {CREATIONS: 2}


def test_a_client_that_has_ended_is_kept_for_a_while() -> None:
    table = ClientTable()
    push(table, metrics_data(total(CREATIONS, 5)), is_last=True)
    (found,) = table.clients(NOW_MS + ENDED_MS)
    assert found.is_terminated
    assert table.clients(NOW_MS + ENDED_MS + 1) == []


def test_series_of_a_client_are_bounded_and_those_of_the_newest_push_come_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table_of, "SERIES_MAX", 3)
    table = ClientTable()
    push(table, metrics_data(total("a", 1), total("b", 1)))
    found = push(table, metrics_data(*(gauge(f"g{n}", n) for n in range(5))))
    assert found.left_out == 2
    assert list(values(table)) == ["g0", "g1", "g2"]
    assert push(table, metrics_data(total("a", 1), total("c", 1))).left_out == 0
    assert list(values(table)) == ["a", "c"]


def test_the_first_of_two_equal_series_is_kept() -> None:
    table = ClientTable()
    assert push(table, metrics_data(gauge(QUEUE_TIME, 1), gauge(QUEUE_TIME, 2))).left_out == 1
    assert values(table) == {QUEUE_TIME: 1}


def test_the_size_of_a_client_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_of, "CLIENT_SIZE_MAX", 2_000)
    table = ClientTable()
    texts = {f"label{n}": "x" * 250 for n in range(4)}
    assert push(table, metrics_data(gauge("a", 1, **texts), gauge("b", 1, **texts))).left_out == 1
    assert list(values(table)) == ["a"]


def test_of_too_many_clients_those_that_pushed_longest_ago_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_of, "CLIENTS_MAX", 3)
    table = ClientTable()
    for instance in (1, 2, 3, 1, 4, 5):
        push(table, metrics_data(gauge(QUEUE_TIME, 1)), instance=instance)
    assert [int.from_bytes(one.instance_id) for one in table.clients(NOW_MS)] == [1, 4, 5]


def test_the_size_of_all_clients_is_bounded_and_one_is_always_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_of, "SIZE_MAX", 1_500)
    table = ClientTable()
    for instance in range(5):
        push(table, metrics_data(gauge(QUEUE_TIME, 1)), instance=instance)
    assert [int.from_bytes(one.instance_id) for one in table.clients(NOW_MS)] == [3, 4]
    push(table, metrics_data(*(gauge(f"g{n}", n) for n in range(9))), instance=9)
    assert [int.from_bytes(one.instance_id) for one in table.clients(NOW_MS)] == [9]


def test_room_is_made_by_clients_that_are_gone_before_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_of, "CLIENTS_MAX", 2)
    table = ClientTable()
    push(table, metrics_data(gauge(QUEUE_TIME, 1)), instance=1, is_last=False)
    later = NOW_MS + 3 * INTERVAL_MS
    push(table, metrics_data(gauge(QUEUE_TIME, 1)), later, instance=2)
    push(table, metrics_data(gauge(QUEUE_TIME, 1)), later + 1, instance=3)
    assert [int.from_bytes(one.instance_id) for one in table.clients(later + 1)] == [2, 3]


def test_what_is_removed_frees_its_size() -> None:
    table = ClientTable()
    for instance in range(50):
        push(table, metrics_data(gauge(QUEUE_TIME, 1), total(CREATIONS, 1)), instance=instance)
        push(table, metrics_data(gauge(QUEUE_TIME, 1)), instance=instance)
    assert table.clients(NOW_MS + 10**9) == []
    assert table._size == 0
