"""The Kafka connector of a Spark session."""

from __future__ import annotations

from pathlib import Path

import pytest

from kpybroker.pipelines.runtime.errors import PipelineError
from kpybroker.pipelines.runtime.session import connector, jar_files


def test_jars_are_a_directory_or_files(tmp_path: Path) -> None:
    one, two = tmp_path / "a.jar", tmp_path / "b.jar"
    for file in (one, two, tmp_path / "notes.txt"):
        file.touch()
    assert jar_files(str(tmp_path)) == [str(one), str(two)]
    assert jar_files(f"{two},{tmp_path}/a*.jar") == [str(two), str(one)]
    assert connector(str(tmp_path), None) == {"spark.jars": f"{one},{two}"}
    with pytest.raises(PipelineError, match="No jar files in"):
        jar_files(str(tmp_path / "none"))


def test_without_jars_the_connector_has_the_version_of_pyspark() -> None:
    pyspark = pytest.importorskip("pyspark")
    assert connector(None, "g:n:1") == {"spark.jars.packages": "g:n:1"}
    expected = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
    assert connector(None, None) == {"spark.jars.packages": expected}
