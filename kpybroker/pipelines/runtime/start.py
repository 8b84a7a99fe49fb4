"""Where a run begins and ends, as options of Spark's Kafka source."""

from __future__ import annotations

import json
from collections.abc import Mapping

from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.runtime import arguments as is_a

NAMED = ("earliest", "latest")
EARLIEST = -2
"""The offset by which Spark's source knows the start of a partition."""


def named_topics(start: str) -> set[str]:
    """The topics whose offsets `--starting-offsets` gives."""
    return set(is_a.offsets(start)) if is_offsets(start) else set()


def is_offsets(start: str) -> bool:
    """Whether these are offsets, and no time."""
    return start not in NAMED and is_a.is_offset(start.split(",")[0])


def beginning(start: str, zone: str, partitions: Mapping[str, int]) -> dict[str, str]:
    """The options of a start that `arguments.start` has accepted. `partitions` are those of each topic that is read.

    A partition without a record of that time or later is read from its end. Raises `PipelineError` for a partition that
    there is not.
    """
    if start in NAMED:
        return {"startingOffsets": start}
    if not is_offsets(start):
        latest = {"startingOffsetsByTimestampStrategy": "latest"}
        return {"startingTimestamp": str(is_a.milliseconds(start, zone)), **latest}
    given = is_a.offsets(start)
    for topic, numbers in given.items():
        if missing := [number for number in numbers if number >= partitions[topic]]:
            cause = f"{topic} has {partitions[topic]} partitions, and --starting-offsets names {topic}:{missing[0]}."
            raise PipelineError(cause, "Correct --starting-offsets: partitions are counted from 0.", 2)
    every = {
        topic: {str(number): given.get(topic, {}).get(number, EARLIEST) for number in range(count)}
        for topic, count in partitions.items()
    }
    return {"startingOffsets": json.dumps(every)}


def ending(until: str | None, zone: str) -> dict[str, str]:
    """The options of an end: the first record of that time, or of a later one, is not read."""
    return {} if until is None else {"endingTimestamp": str(is_a.milliseconds(until, zone))}
