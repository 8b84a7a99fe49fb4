"""Whose a checkpoint is: the pipeline, the topics with their ids, and the options that its state depends on.

Spark's checkpoint has offsets and state, and nothing that says to what they belong: with other options it would go on
and be wrong, and offsets in a topic that was deleted and created again name other records. So a first run notes these
in `job.json`, and later runs compare.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.sinks.files import Files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = "job.json"
ANOTHER = "Give this run a --checkpoint and an --output of its own."


def is_claimed(spark: SparkSession, place: str) -> bool:
    """Whether a job has run with this checkpoint."""
    return Files(spark, place).exists(_file(place))


def topics_of(spark: SparkSession, place: str, pipeline: str) -> list[str]:
    """The topics that the job of this checkpoint reads. Raises `PipelineError` if it is none of the pipeline's."""
    if not is_claimed(spark, place):
        raise PipelineError(f"{place} is not a checkpoint of a pipeline.", "Correct --checkpoint.", 2)
    found = json.loads(Files(spark, place).read(_file(place)))
    if found["pipeline"] != pipeline:
        cause = f"{place} is the checkpoint of the pipeline '{found['pipeline']}', not '{pipeline}'."
        raise PipelineError(cause, "Correct --checkpoint.", 2)
    return sorted(found["topics"])


def claim(spark: SparkSession, place: str, pipeline: str, topics: Mapping[str, str], kept: Mapping[str, object]) -> str:
    """The identity of the job of this checkpoint, which is a new one in a first run.

    `topics` are the ids by topic, empty where a broker has none. Raises `PipelineError` where the checkpoint is
    another job's.
    """
    now = {"pipeline": pipeline, "topics": dict(topics), "options": json.loads(json.dumps(dict(kept)))}
    files, file = Files(spark, place), _file(place)
    if files.exists(file):
        before = json.loads(files.read(file))
        _compare(place, before, now)
        return str(before["job"])
    if files.names(place):
        raise PipelineError(f"{place} is not a checkpoint of this pipeline.", ANOTHER, 2)
    job = uuid.uuid4().hex
    files.write(file, json.dumps({"job": job, **now}))
    return job


def _file(place: str) -> str:
    return f"{place.rstrip('/')}/{FILE}"


def _compare(place: str, before: dict[str, Any], now: dict[str, Any]) -> None:
    if before["pipeline"] != now["pipeline"]:
        cause = f"{place} is the checkpoint of the pipeline '{before['pipeline']}', not '{now['pipeline']}'."
        raise PipelineError(cause, ANOTHER, 2)
    old, new = before["topics"], now["topics"]
    if sorted(old) != sorted(new):
        raise PipelineError(f"{place} is the checkpoint of a run that reads {', '.join(sorted(old))}.", ANOTHER, 2)
    for topic, topic_id in old.items():
        if topic_id and new[topic] and topic_id != new[topic]:
            cause = f"The topic {topic} was deleted and created again since this checkpoint was made."
            raise PipelineError(cause, "Start over: give a new --checkpoint and a new --output.")
    for name, value in before["options"].items():
        if now["options"].get(name) != value:
            cause = f"{place} was made with --{name} {value}, and this run has {now['options'].get(name)}."
            raise PipelineError(cause, f"Give the same --{name}, or start over with a new --checkpoint.", 2)
