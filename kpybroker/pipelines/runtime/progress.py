"""What a run has done, and what it says of each batch of a stream."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kpybroker.pipelines.runtime.event_time import HEARTBEAT
from kpybroker.pipelines.runtime.pipeline import DEAD_LETTERS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NO_WATERMARK = "1970-01-01T00:00:00"
ENDS = ("endOffset", "latestOffset")
RECORDS = "records"
"""The metric of the records that were read. The query of dead letters has it, which reads every record once."""


@dataclass(slots=True)
class Report:
    """What a run did: rows written by result, records read without heartbeats, and those of them that were broken."""

    rows: Mapping[str, int]
    read: int = 0
    heartbeats: int = 0
    _last: dict[str, int] = field(default_factory=dict)
    _watermarks: dict[str, str] = field(default_factory=dict)

    @property
    def broken(self) -> int:
        """Records that were not understood."""
        return self.rows[DEAD_LETTERS]

    def note(self, query: str, progress: Any, say: Callable[[str], None]) -> None:
        """Take in one batch, once however often it is reported.

        The watermark moves after a batch with records, in one without: that is said too.
        """
        if progress["batchId"] <= self._last.get(query, -1):
            return
        mark = watermark(progress)
        if not progress["numInputRows"]:
            if mark is not None and mark != self._watermarks.get(query):
                say(f"{query}: watermark {mark}")
                self._watermarks[query] = mark
            return
        self._last[query] = progress["batchId"]
        if mark is not None:
            self._watermarks[query] = mark
        say(line(query, progress))
        metrics = progress["observedMetrics"].get(RECORDS)
        if metrics is not None:
            self.read += metrics["read"]
            self.heartbeats += metrics["heartbeats"]


def counted(rows: DataFrame) -> DataFrame:
    """`rows` of `Pipeline.parse`, with the metric."""
    from pyspark.sql import functions as F

    heartbeat = F.col(HEARTBEAT)
    return rows.observe(RECORDS, F.count_if(~heartbeat).alias("read"), F.count_if(heartbeat).alias("heartbeats"))


def line(query: str, progress: Any) -> str:
    """Rows, rate, lag and watermark of a batch, in one line."""
    lag = sum(behind(source) for source in progress["sources"])
    parts = [f"{query}: {progress['numInputRows']} records", f"{progress['processedRowsPerSecond'] or 0:.0f} a second"]
    parts.append(f"lag {lag}")
    mark = watermark(progress)
    if mark is not None:
        parts.append(f"watermark {mark}")
    return ", ".join(parts)


def watermark(progress: Any) -> str | None:
    """The watermark of a batch, None before there is one."""
    found: str | None = (progress["eventTime"] or {}).get("watermark")
    return None if found is None or found.startswith(NO_WATERMARK) else found


def behind(source: Any) -> int:
    """How many records the topics of a source had, of all partitions, after those of the batch."""
    end, latest = (_offsets(str(source[name])) for name in ENDS)
    return sum(
        max(offset - end.get(topic, {}).get(partition, 0), 0)
        for topic, partitions in latest.items()
        for partition, offset in partitions.items()
    )


def _offsets(text: str) -> dict[str, dict[str, int]]:
    """By topic and partition. pyspark gives them as the text of a dict; the name of a topic has no quotes."""
    return json.loads(text.replace("'", '"')) if text.startswith("{") else {}
