"""The Spark session of a run: its master, its Kafka connector, and logging of errors only."""

from __future__ import annotations

import glob
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kpybroker.pipelines.runtime.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"
STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

JOB_SETTINGS = {
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.streaming.noDataMicroBatches.enabled": "true",
    # windows and sessions that are open are on disk, not in the memory of the JVM
    "spark.sql.streaming.stateStore.providerClass": STATE_STORE,
}
"""Settings that the transformations need in any session."""
LOCAL_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
}


def jar_files(text: str) -> list[str]:
    """The files of a directory, a glob or a list. Raises `PipelineError` if there are none."""
    found: list[str] = []
    for one in text.split(","):
        pattern = str(Path(one) / "*.jar") if Path(one).is_dir() else one
        files = sorted(glob.glob(pattern))
        if not files:
            raise PipelineError(f"No jar files in '{one}'.", "Correct --jars: a directory, or files with commas.", 2)
        found += files
    return found


def connector(jars: str | None, packages: str | None) -> dict[str, str]:
    """The setting that gives Spark its Kafka connector; by default the one of the version of pyspark."""
    if jars is not None:
        return {"spark.jars": ",".join(os.path.abspath(file) for file in jar_files(jars))}
    if packages is not None:
        return {"spark.jars.packages": packages}
    import pyspark

    return {"spark.jars.packages": f"{CONNECTOR}:{pyspark.__version__}"}


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (home and Path(home, "bin", "java").is_file()):
        raise PipelineError("Spark needs Java, which is not installed.", "Install Java 17, or set JAVA_HOME.")


def open_spark(master: str, jars: str | None, packages: str | None) -> SparkSession:
    """A new session, which the caller stops. Raises `PipelineError` without Java or pyspark."""
    _check_java()
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise PipelineError("pyspark is not installed.", "pip install 'kpybroker[spark]'") from None
    # Spark's workers are the same Python, with the same packages
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("kpybroker pipelines")
    local = LOCAL_SETTINGS if master.startswith("local") else {}
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    for key, value in {**local, **JOB_SETTINGS, **connector(jars, packages)}.items():
        builder = builder.config(key, value)
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
