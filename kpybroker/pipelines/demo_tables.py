"""The output of the demo: the result topics, read with librdkafka and shown as tables."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from kpybroker.pipelines.errors import PipelineError

RESULTS = ("page-counts", "top-pages", "sessions")
READ_SECONDS_MAX = 30.0
BATCH_MAX = 1000
ROWS_MAX = 10
TEXT_MAX = 48

Row = dict[str, Any]


def read_json(bootstrap: str, topic: str) -> list[Row]:
    """Every record of `topic` as JSON; none if the topic is empty or missing. Raises `PipelineError`."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "demo", "enable.auto.commit": False})
    rows: list[Row] = []
    try:
        partitions = consumer.list_topics(timeout=READ_SECONDS_MAX).topics.get(topic)
        for number in partitions.partitions if partitions is not None else ():
            part = TopicPartition(topic, number, 0)
            low, high = consumer.get_watermark_offsets(part, timeout=READ_SECONDS_MAX)
            part.offset = low
            consumer.assign([part])
            position = low
            while position < high:
                # the client waits until it has as many as are requested
                batch = consumer.consume(min(high - position, BATCH_MAX), READ_SECONDS_MAX)
                problem = next((message.error() for message in batch if message.error() is not None), None)
                if not batch or problem is not None:
                    raise PipelineError(
                        f"{topic} cannot be read back: {problem or 'no response'}.", "Check that the broker runs."
                    )
                rows += (json.loads(message.value() or b"null") for message in batch)
                position += len(batch)
    finally:
        consumer.close()
    return rows


def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table as text, its columns as wide as their content, with numbers to the right."""
    texts = [[_short(cell) for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(heads, *texts, strict=True)]

    def line(cells: Sequence[str], values: Sequence[object]) -> str:
        aligned = (
            cell.rjust(width) if isinstance(value, int) else cell.ljust(width)
            for cell, width, value in zip(cells, widths, values, strict=True)
        )
        return "  " + "  ".join(aligned).rstrip()

    kinds = rows[0] if rows else heads
    body = [line(text, row) for text, row in zip(texts, rows, strict=True)]
    return "\n".join([title, line(heads, kinds), "  " + "  ".join("-" * width for width in widths), *body])


def _short(cell: object) -> str:
    text = str(cell)
    return text if len(text) <= TEXT_MAX else text[: TEXT_MAX - 1] + "…"


def _time(text: str) -> str:
    return text[:19].replace("T", " ")


def tables(results: Mapping[str, Sequence[Row]], lines: int) -> str:
    """The text that the demo prints: the top pages, windows and sessions of `results`, and their totals."""
    counts, tops, sessions = (results[name] for name in RESULTS)
    pages: Counter[str] = Counter()
    windows: Counter[tuple[str, str]] = Counter()
    for row in counts:
        pages[row["page"]] += row["events"]
        windows[row["window_start"], row["window_end"]] += row["events"]
    first = {row["window_start"]: row for row in tops if row["rank"] == 1}
    events = sum(pages.values())
    busiest = [
        (_time(start), _time(end), count, first[start]["page"], first[start]["events"])
        for (start, end), count in windows.most_common(ROWS_MAX)
    ]
    longest = sorted(sessions, key=lambda row: (-row["events"], row["session_start"]))[:ROWS_MAX]
    parts = [
        table("Pages with the most events, in the whole log", ("page", "events"), pages.most_common(ROWS_MAX)),
        table("Busiest windows, and each one's first page", ("from", "to", "events", "page", "its events"), busiest),
        table(
            "Sessions with the most events",
            ("visitor", "from", "to", "events", "pages", "first page", "last page"),
            [
                (
                    row["visitor"],
                    _time(row["session_start"]),
                    _time(row["session_end"]),
                    row["events"],
                    row["pages"],
                    row["first_page"],
                    row["last_page"],
                )
                for row in longest
            ],
        ),
        f"{lines} lines, {events} events; {len(pages)} pages in {len(windows)} windows; {len(sessions)} sessions.",
    ]
    return "\n\n".join(parts)
