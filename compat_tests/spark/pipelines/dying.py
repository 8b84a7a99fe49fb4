"""A run of a pipeline that stops at a point, where it waits to be killed: the command of the test `surviving.die`.

    python -m compat_tests.spark.pipelines.dying POINT RESULT FILE run NAME [options of the run]

It is `python -m kpybroker.pipelines`, but for the point. The first batch of RESULT with rows that comes there goes no
further, and FILE is made. Nothing of the product knows of this.

    files        the batch is in the directories, and not in the topics
    transaction  a writer of the topics has produced its rows, and has not committed them
    written      the batch is in all outputs, and Spark has not noted it in the checkpoint
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kpybroker.pipelines.__main__ import main
from kpybroker.pipelines.runtime.outputs import Outputs
from kpybroker.pipelines.sinks import topic_output

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

POINTS = FILES, TRANSACTION, WRITTEN = ("files", "transaction", "written")


def stop(file: Path) -> None:
    """Say that the point is reached, and go no further."""
    file.touch()
    while True:
        signal.pause()


def _last_of(rows: Iterator[Row], file: Path) -> Iterator[Row]:
    """The rows; a caller that has taken all of them, and asks for more, stops."""
    any_rows = False
    for row in rows:
        any_rows = True
        yield row
    if any_rows:
        stop(file)


def _write_and_stop(target: topic_output.Target, file: Path, rows: Iterator[Row]) -> None:
    """`topic_output.write_rows`, in a process of Spark's, up to its commit."""
    topic_output.write_rows(target, _last_of(rows, file))


def arm(point: str, chosen: str, file: Path) -> None:
    """Put the point into the outputs of this process."""
    keep, write_topics = Outputs.keep, Outputs._write_topics

    def stopping_keep(self: Outputs, result: str, frame: DataFrame, batch_id: int) -> None:
        before = self.rows[result]
        keep(self, result, frame, batch_id)
        if result == chosen and self.rows[result] > before:
            stop(file)

    def stopping_topics(self: Outputs, result: str, frame: DataFrame, batch_id: int) -> None:
        if result == chosen and point == FILES:
            stop(file)
        if result != chosen:
            write_topics(self, result, frame, batch_id)
            return
        plain = topic_output.write

        def write(frame: DataFrame, target: topic_output.Target) -> None:
            parts = frame.repartition(topic_output.WRITERS, "key")
            parts.foreachPartition(partial(_write_and_stop, target, file))

        topic_output.write = write
        try:
            write_topics(self, result, frame, batch_id)
        finally:
            topic_output.write = plain

    if point == WRITTEN:
        Outputs.keep = stopping_keep  # type: ignore[method-assign]
    else:
        Outputs._write_topics = stopping_topics  # type: ignore[method-assign]


if __name__ == "__main__":
    at, of_result, made, *rest = sys.argv[1:]
    assert at in POINTS, at
    arm(at, of_result, Path(made))
    sys.exit(main(rest))
