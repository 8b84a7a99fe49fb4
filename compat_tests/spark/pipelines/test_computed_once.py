"""What a row of a pipeline is made of is computed once for each record, and not again for each filter and column."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from compat_tests.bench.pipelines.input import INPUTS
from kpybroker.pipelines.catalogue import PIPELINES
from kpybroker.pipelines.runtime.options import parse

COLUMNS = "topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary"
HEADERS = "headers array<struct<key: string, value: binary>>"
EXPENSIVE = ("from_json", "regexp_extract", "as timestamp")


def plan(frame: DataFrame) -> list[str]:
    """What runs, the last step first."""
    whole: str = frame._jdf.queryExecution().executedPlan().toString()
    return whole.splitlines()


def is_expensive(step: str) -> bool:
    return any(word in step for word in EXPENSIVE)


@pytest.mark.parametrize("name", PIPELINES)
def test_a_filter_adds_no_expression_of_parse(spark: SparkSession, name: str) -> None:
    needed = ["--bootstrap-servers", "127.0.0.1:1", "--master", "local", "--input", "a", "--output", "topics:a"]
    pipeline = PIPELINES[name]
    folder = ["--output", "none"] if pipeline.folders else []
    own = parse(pipeline, [*needed, *folder, "--checkpoint", "none", *INPUTS[name].options]).own
    records = spark.createDataFrame([], f"{COLUMNS}, {HEADERS}")
    rows = pipeline.rows(records, own)
    understood = plan(rows.where(rows["reason"].isNull()).drop("reason"))
    barrier = next(number for number, step in enumerate(understood) if "Generate inline" in step)
    assert not any(map(is_expensive, understood[:barrier]))
    assert any(map(is_expensive, understood[barrier:]))
