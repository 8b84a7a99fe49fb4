"""What the stream has committed: read from Spark's checkpoint of the query `facts`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from kpybroker.pipelines.errors import PipelineError
from kpybroker.pipelines.runtime import checkpoint
from kpybroker.pipelines.sinks.files import Files
from kpybroker.pipelines.warehouse.pipeline import WAREHOUSE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Position(NamedTuple):
    """The last batch that is committed, and where the records after it begin: topic -> partition -> offset."""

    batch: int
    offsets: dict[str, dict[str, int]]


def position(spark: SparkSession, place: str) -> Position:
    """Of the checkpoint at `place`. Raises `PipelineError` if it is none, or nothing is committed."""
    checkpoint.topics_of(spark, place, WAREHOUSE.name)
    place = f"{place.rstrip('/')}/facts"
    files = Files(spark, place)
    batches = [int(name) for name in files.names(f"{place}/commits") if name.isdecimal()]
    if not batches:
        raise PipelineError(f"The stream of {place} has committed nothing yet.", "Run it first.")
    *_, offsets = files.read(f"{place}/offsets/{max(batches)}").strip().splitlines()
    return Position(max(batches), json.loads(offsets))
