"""What a run has done, and what it says of each batch of a stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kpybroker.pipelines.runtime.event_time import HEARTBEAT
from kpybroker.pipelines.runtime.pipeline import DEAD_LETTERS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NO_WATERMARK = "1970-01-01T00:00:00"
RECORDS = "records"
"""The metric of the records that were read. The query of dead letters has it, which reads every record once."""


@dataclass(slots=True)
class Report:
    """What a run did: rows written by result, records read without heartbeats, and those of them that were broken."""

    rows: Mapping[str, int]
    read: int = 0
    heartbeats: int = 0
    _last: dict[str, int] = field(default_factory=dict)

    @property
    def broken(self) -> int:
        """Records that were not understood."""
        return self.rows[DEAD_LETTERS]

    def note(self, query: str, progress: Any, say: Callable[[str], None]) -> None:
        """Take in one batch, once however often it is reported."""
        if progress["batchId"] <= self._last.get(query, -1) or not progress["numInputRows"]:
            return
        self._last[query] = progress["batchId"]
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
    sources = progress["sources"]
    lag = sum(int(float((source["metrics"] or {}).get("maxOffsetsBehindLatest", 0))) for source in sources)
    parts = [f"{query}: {progress['numInputRows']} records", f"{progress['processedRowsPerSecond'] or 0:.0f} a second"]
    parts.append(f"lag {lag}")
    watermark = (progress["eventTime"] or {}).get("watermark")
    if watermark is not None and not watermark.startswith(NO_WATERMARK):
        parts.append(f"watermark {watermark}")
    return ", ".join(parts)
