"""Results, read back with librdkafka and shown as tables of text."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kpybroker.pipelines.errors import PipelineError

if TYPE_CHECKING:
    from confluent_kafka import Consumer

READ_SECONDS_MAX = 30.0
POLL_S = 0.1
TEXT_MAX = 48
BARS = "▁▂▃▄▅▆▇█"

Row = dict[str, Any]


def read_json(bootstrap: str, topic: str) -> list[Row]:
    """Every committed record of `topic` as JSON; none if the topic is empty or missing. Raises `PipelineError`."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    settings = {"bootstrap.servers": bootstrap, "group.id": "demo", "enable.auto.commit": False}
    consumer = Consumer({**settings, "enable.partition.eof": True})
    try:
        found = consumer.list_topics(timeout=READ_SECONDS_MAX).topics.get(topic)
        partitions = list(found.partitions) if found is not None else []
        _await_commits(bootstrap, topic, partitions)
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
        return _to_the_end(consumer, topic, len(partitions))
    finally:
        consumer.close()


def _await_commits(bootstrap: str, topic: str, partitions: Sequence[int]) -> None:
    """Wait until what is committed is to be read: a commit is acknowledged before it is in the partitions."""
    from confluent_kafka import IsolationLevel, TopicPartition
    from confluent_kafka.admin import AdminClient, OffsetSpec

    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 4})
    wanted = {TopicPartition(topic, number): OffsetSpec.latest() for number in partitions}
    levels = (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
    deadline = time.monotonic() + READ_SECONDS_MAX
    while wanted and time.monotonic() < deadline:
        found = [admin.list_offsets(wanted, isolation_level=level) for level in levels]
        committed, all_there = ([one.result().offset for one in level.values()] for level in found)
        if committed == all_there:
            return
        time.sleep(POLL_S)


def _to_the_end(consumer: Consumer, topic: str, partitions: int) -> list[Row]:
    from confluent_kafka import KafkaError

    rows: list[Row] = []
    while partitions:
        message = consumer.poll(READ_SECONDS_MAX)
        error = message.error() if message is not None else "no response"
        if message is not None and error is None:
            rows.append(json.loads(message.value() or b"null"))
        elif isinstance(error, KafkaError) and error.code() == KafkaError._PARTITION_EOF:
            partitions -= 1
        else:
            raise PipelineError(f"{topic} cannot be read back: {error}.", "Check that the broker runs.")
    return rows


def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table as text, its columns as wide as their content, with numbers to the right."""
    texts = [[short(cell) for cell in row] for row in rows]
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


def short(cell: object) -> str:
    """The text of a cell, cut at `TEXT_MAX` characters."""
    text = str(cell)
    return text if len(text) <= TEXT_MAX else text[: TEXT_MAX - 1] + "…"


def sparkline(numbers: Sequence[float]) -> str:
    """A line of bars, from the least to the most of `numbers`, at most `TEXT_MAX` of the last ones."""
    shown = numbers[-TEXT_MAX:]
    least, most = min(shown, default=0.0), max(shown, default=0.0)
    step = (most - least) / (len(BARS) - 1) or 1.0
    return "".join(BARS[round((number - least) / step)] for number in shown)
