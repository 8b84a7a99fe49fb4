"""What a run says of each batch: records, rate, lag and watermark."""

from __future__ import annotations

from typing import Any

from kpybroker.pipelines.runtime.progress import RECORDS, Report

EPOCH = "1970-01-01T00:00:00.000Z"


def progress(batch: int, records: int, mark: str | None, **more: Any) -> dict[str, Any]:
    ends = {"endOffset": "{'lines': {'0': 30, '1': 7}}", "latestOffset": "{'lines': {'0': 35, '1': 12, '2': 4}}"}
    return {
        "batchId": batch,
        "numInputRows": records,
        "processedRowsPerSecond": 12.6,
        "sources": [ends],
        "eventTime": {"watermark": mark} if mark else {},
        "observedMetrics": {},
        **more,
    }


def test_a_line_has_records_rate_lag_of_all_partitions_and_the_watermark() -> None:
    said: list[str] = []
    report = Report({"dead_letters": 0})
    report.note("pages", progress(0, 100, EPOCH), said.append)
    report.note("pages", progress(1, 5, "2024-03-05T08:00:00.000Z"), said.append)
    report.note("balances", progress(0, 5, None, sources=[{"endOffset": "{}", "latestOffset": "None"}]), said.append)
    assert said == [
        "pages: 100 records, 13 a second, lag 14",
        "pages: 5 records, 13 a second, lag 14, watermark 2024-03-05T08:00:00.000Z",
        "balances: 5 records, 13 a second, lag 0",
    ]


def test_a_watermark_that_moves_in_a_batch_without_records_is_said_once() -> None:
    """And Spark reports the same batch, and the one that has not begun, more than once."""
    said: list[str] = []
    report = Report({"dead_letters": 0})
    first = progress(0, 100, EPOCH, observedMetrics={RECORDS: {"read": 99, "heartbeats": 1}})
    moved = progress(1, 0, "2024-03-05T08:00:00.000Z")
    for one in (first, first, moved, moved, progress(2, 0, "2024-03-05T08:00:00.000Z")):
        report.note("pages", one, said.append)
    report.note("pages", progress(2, 7, "2024-03-05T08:00:00.000Z"), said.append)
    assert said == [
        "pages: 100 records, 13 a second, lag 14",
        "pages: watermark 2024-03-05T08:00:00.000Z",
        "pages: 7 records, 13 a second, lag 14, watermark 2024-03-05T08:00:00.000Z",
    ]
    assert (report.read, report.heartbeats) == (99, 1)
