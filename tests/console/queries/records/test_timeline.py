"""Partitions are one list by time, in both ways, whatever is read of them at once."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from kpybroker.client.records.offsets import Bounds
from kpybroker.client.records.record import Record
from kpybroker.console.queries.records.timeline import NEWER, OLDER, Cursor, Timeline

Partitions = list[list[int]]
"""By partition, the timestamps of its records. Every third offset has none: a marker, or what compaction removed."""

TIMES = st.lists(st.lists(st.integers(0, 50), max_size=12), min_size=1, max_size=4)
IN_ORDER = TIMES.map(lambda partitions: [sorted(times) for times in partitions])
EACH = st.integers(1, 7)


def records_of(partitions: Partitions) -> dict[int, dict[int, Record]]:
    return {
        number: {
            n + n // 2: Record("t", None, None, [], number, n + n // 2, timestamp) for n, timestamp in enumerate(times)
        }
        for number, times in enumerate(partitions)
    }


def bounds_of(partitions: Partitions) -> dict[int, Bounds]:
    return {number: Bounds(0, len(times) + len(times) // 2 + 1) for number, times in enumerate(partitions)}


def start_of(partitions: Partitions, way: int) -> Cursor:
    return {number: one.start if way == NEWER else one.end for number, one in bounds_of(partitions).items()}


def read(
    partitions: Partitions,
    cut: Cursor,
    way: int,
    each: int,
    limit: int = 10**6,
    accepts: Callable[[Record], bool] | None = None,
) -> tuple[list[Record], Timeline]:
    """At most `limit` records, and the timeline after them."""
    stored = records_of(partitions)
    timeline = Timeline(bounds_of(partitions), cut, way, is_exact=accepts is None)
    found: list[Record] = []
    while len(found) < limit:
        record = timeline.pop()
        if record is not None:
            found.append(record)
            continue
        ranges = timeline.wanted(each)
        if not ranges:
            break
        for number, one in ranges.items():
            scanned = [stored[number][at] for at in range(one.start, one.end) if at in stored[number]]
            edge = (scanned[-1] if way == NEWER else scanned[0]).timestamp_ms if scanned else None
            timeline.take(number, [one for one in scanned if accepts is None or accepts(one)], one, edge)
    return found, timeline


def merged(partitions: Partitions) -> list[Record]:
    """The plain way: the earliest of the first records, again and again."""
    rest = {number: list(of.values()) for number, of in records_of(partitions).items()}
    found = []
    while any(rest.values()):
        heads = [records[0] for records in rest.values() if records]
        first = min(heads, key=lambda one: (one.timestamp_ms or 0, one.partition or 0))
        found.append(rest[first.partition or 0].pop(0))
    return found


@given(TIMES, EACH)
def test_newer_is_a_merge_by_time_within_which_offsets_stay_in_order(partitions: Partitions, each: int) -> None:
    found, timeline = read(partitions, start_of(partitions, NEWER), NEWER, each)
    assert found == merged(partitions)
    assert timeline.is_done
    assert timeline.left == 0


@given(IN_ORDER, EACH)
def test_older_is_newer_in_reverse(partitions: Partitions, each: int) -> None:
    found, _ = read(partitions, start_of(partitions, OLDER), OLDER, each)
    assert found == merged(partitions)[::-1]


@given(TIMES, EACH, st.integers(1, 5), st.sampled_from([NEWER, OLDER]), st.booleans())
def test_pages_leave_nothing_out_and_show_nothing_twice(
    partitions: Partitions, each: int, limit: int, way: int, has_filter: bool
) -> None:
    accepts = (lambda record: (record.offset or 0) % 2 == 0) if has_filter else None
    whole, _ = read(partitions, start_of(partitions, way), way, each, accepts=accepts)
    cut, pages = start_of(partitions, way), []
    while True:
        page, timeline = read(partitions, cut, way, each, limit, accepts)
        if not page:
            break
        pages.append(page)
        cut = timeline.cut()
    shown = [record for page in pages for record in page]
    key = [(record.partition, record.offset) for record in shown]
    assert len(set(key)) == len(key)
    assert sorted(key) == sorted((record.partition, record.offset) for record in whole)
    if has_filter is False and way == NEWER:
        assert shown == merged(partitions)


@given(IN_ORDER, EACH, st.sampled_from([NEWER, OLDER]))
def test_a_filter_keeps_the_order_of_time(partitions: Partitions, each: int, way: int) -> None:
    def accepts(record: Record) -> bool:
        return (record.offset or 0) % 2 == 0

    found, _ = read(partitions, start_of(partitions, way), way, each, accepts=accepts)
    times = [way * (record.timestamp_ms or 0) for record in found]
    assert times == sorted(times)


@given(IN_ORDER, EACH, st.integers(0, 5), st.sampled_from([NEWER, OLDER]))
def test_what_is_left_and_up_to_when_is_known(partitions: Partitions, each: int, limit: int, way: int) -> None:
    found, timeline = read(partitions, start_of(partitions, way), way, each, limit)
    cut, bounds = timeline.cut(), bounds_of(partitions)
    rest, _ = read(partitions, cut, way, each)
    assert len(found) + len(rest) == sum(map(len, partitions))
    left = sum(one.end - cut[number] if way == NEWER else cut[number] - one.start for number, one in bounds.items())
    assert left >= len(rest)
    if timeline.time_ms is not None and found:
        assert all(way * (one.timestamp_ms or 0) >= way * (found[-1].timestamp_ms or 0) for one in rest)


def test_a_filter_reads_the_partitions_that_are_behind() -> None:
    partitions = [[1, 2, 3], [100, 101, 102]]
    timeline = Timeline(bounds_of(partitions), start_of(partitions, NEWER), NEWER, is_exact=False)
    assert set(timeline.wanted(1)) == {0, 1}
    timeline.take(0, [], Bounds(0, 1), 1)
    timeline.take(1, [], Bounds(0, 1), 100)
    assert timeline.time_ms == 1
    timeline.take(0, [Record("t", None, None, [], 0, 1, 2)], Bounds(1, 2), 2)
    assert timeline.pop() is not None
